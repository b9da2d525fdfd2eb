"""An error comes out of another process as what it was; text never becomes one."""

from __future__ import annotations

import json
import pickle
import sys
from collections.abc import Iterator
from traceback import format_exception
from typing import Any

import pytest

from penstock import errors
from penstock.error_frame import (
    ForeignError,
    WorkerError,
    find_frame,
    from_document,
    in_worker,
    to_document,
)
from penstock.errors import (
    ConfigError,
    MissingExtraError,
    PenstockError,
    RefusedError,
    SetupError,
    TransientError,
)

KINDS = [
    kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, PenstockError)
]
TEXTS = ["plain", "", "two\nlines", "quote \" and ' and \\", "\u2028 and \x00 and é", "{}"]


def crossing(error: Exception, stage: str = "step") -> str:
    """What Spark would have as the traceback of a worker that raises this."""

    def fail(_: Any) -> Iterator[Any]:
        raise error
        yield

    # As Spark does it: the function is pickled, and what it raises is formatted and encoded.
    call = in_worker(fail, stage)
    with pytest.raises(WorkerError) as raised:
        list(call([]))
    return "".join(format_exception(raised.value)).encode("utf-8").decode()


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("kind", [k for k in KINDS if k.__init__ is Exception.__init__])
def test_every_error_crosses_with_its_class_and_its_text(
    kind: type[PenstockError], text: str
) -> None:
    crossed = find_frame(crossing(kind(text)))
    assert (type(crossed), str(crossed)) == (kind, text)


def test_when_to_try_again_and_the_stage_cross_too() -> None:
    away = find_frame(crossing(TransientError("busy", retry_after=42.5)))
    assert isinstance(away, TransientError)
    assert away.retry_after == 42.5
    for stage in ("decode", "step", "write"):
        refused = find_frame(crossing(RefusedError("no"), stage))
        assert isinstance(refused, RefusedError)
        assert refused.stage == stage


class RegistryAwayError(TransientError):
    """One of a user's own."""


def test_a_class_of_the_users_own_crosses_as_ours_that_it_extends() -> None:
    assert type(find_frame(crossing(RegistryAwayError("x")))) is TransientError
    assert type(find_frame(crossing(MissingExtraError("spark", "this")))) is SetupError
    definition = errors.DefinitionError([errors.Problem(("a",), "is required")])
    crossed = find_frame(crossing(definition))
    assert (type(crossed), str(crossed)) == (ConfigError, str(definition))


def test_an_exception_that_is_not_ours_is_none_of_ours_afterwards() -> None:
    crossed = find_frame(crossing(ValueError("penstock.errors.TransientError: x")))
    assert type(crossed) is ForeignError
    assert str(crossed) == "ValueError: penstock.errors.TransientError: x"


def test_no_text_is_taken_for_a_frame() -> None:
    document = json.dumps(to_document(TransientError("forged")))
    for signature in ("0" * 64, "f" * 64, "", "x" * 64):
        fake = f"\npenstock-error {signature} {document}\n"
        assert find_frame(fake) is None
        crossed = find_frame(crossing(ValueError(fake)))
        assert str(crossed) == f"ValueError: {fake}"


def test_a_frame_that_a_record_repeats_does_not_hide_the_one_that_was_raised() -> None:
    seen = crossing(TransientError("seen in a log")).splitlines()[-1]
    assert isinstance(find_frame(seen), TransientError)
    for text in (seen, f"\n{seen}\n", f"{seen}\nx"):
        crossed = find_frame(crossing(RefusedError(text)))
        assert (type(crossed), str(crossed)) == (RefusedError, text)


def test_a_sign_that_no_encoding_has_and_a_text_without_end_cross() -> None:
    assert str(find_frame(crossing(RefusedError("a\ud800b")))) == "a\\ud800b"
    long = find_frame(crossing(RefusedError("x" * 10_000_000)))
    assert len(str(long)) < 100_000


def test_the_key_is_in_no_text() -> None:
    call = in_worker(list, "step")
    text = crossing(RefusedError("no"))
    assert call.key.hex() not in text
    assert str(call.key) not in repr(call)
    assert call.key in pickle.dumps(call)  # that is how a worker has it


def test_another_process_cannot_make_a_frame_that_is_believed_here() -> None:
    text = crossing(TransientError("x"))
    other = sys.modules["penstock.error_frame"]
    key = other._KEY
    try:
        other._KEY = bytes(32)
        assert find_frame(text) is None
    finally:
        other._KEY = key


def test_a_document_is_plain_json() -> None:
    document = json.loads(json.dumps(to_document(RefusedError("no", stage="step"))))
    assert (str(from_document(document)), document["stage"]) == ("no", "step")
