"""Dead letters of flows: the message at the failed step, exactly, and what a changed flow makes of it."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.flows.flow_cases import flow_of

from penstock.engine.dead_letters.letter import DeadLetter, as_headers, from_record
from penstock.errors import ConfigError
from penstock.flows import CompiledFlow, Flow, Message
from penstock.flows.dead_letters import (
    MESSAGE,
    STEP,
    Forms,
    definition_of,
    edited,
    first_step,
    letters_of,
    message_of,
    payload_of,
    with_step,
)
from penstock.flows.testing import canned_systems
from penstock.record import Record

DIVIDE = {"id": "divide", "map": "10 / payload.n"}


def record(number: int, value: bytes | None = None) -> DeadLetter:
    return DeadLetter(
        pipeline="t", stage="step", topic="orders", partition=0, offset=number, value=value
    )


def letters(flow: Flow, *payloads: Any) -> list[DeadLetter]:
    """Return the letters of a run, as they are read from their topic."""
    messages = [Message(each, {"topic": "orders"}) for each in payloads]
    failed = CompiledFlow(flow).run(messages, canned_systems()).dead_letters
    forms = letters_of(failed, lambda n: record(n, payloads[n]), definition_of(flow))
    return [stored(each) for form in forms for each in written(form)]


def written(form: Forms) -> tuple[DeadLetter, ...]:
    return (form.whole,) if form.whole else form.short


def stored(letter: DeadLetter) -> DeadLetter:
    headers = as_headers(letter)
    read = from_record(
        Record.of("t.dead-letters", 0, 1, key=letter.key, value=letter.value, headers=headers)
    )
    assert read is not None
    return read


PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary()
    | st.just(datetime(2024, 5, 1, 12, 30, 0, 250_000, timezone.utc)),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.text(max_size=3) | st.sampled_from(["$bytes", "$object"]), inner, max_size=3
        )
    ),
    max_leaves=8,
)


@given(payload=PLAIN, variable=st.dictionaries(st.text(max_size=3), PLAIN, max_size=2))
def test_a_message_comes_back_as_it_was_with_the_types_of_its_values(
    payload: Any, variable: dict[str, Any]
) -> None:
    flow = flow_of({"id": "set", "python": _failing})
    message = Message(payload, {"topic": "a", "key": b"\xff"}, variable)
    failed = CompiledFlow(flow).run([message], canned_systems()).dead_letters
    (forms,) = letters_of(failed, lambda n: record(n, b"own"), definition_of(flow))

    assert forms.whole
    again = message_of(stored(forms.whole), flow)

    assert repr(again.shown()) == repr(message.shown())


def _failing(_message: Message) -> None:
    raise ValueError


def test_a_payload_that_is_the_value_of_the_record_is_written_once() -> None:
    (letter,) = letters(flow_of(DIVIDE), b'{"n": 0}')

    assert b"payload" not in dict(letter.headers)[MESSAGE]
    assert message_of(letter, flow_of(DIVIDE)) == Message(b'{"n": 0}', {"topic": "orders"})


def test_the_parts_of_a_record_are_letters_of_their_own() -> None:
    flow = flow_of({"split": "$"}, {"split": "payload.of"}, {"map": "1 / payload"})

    found = letters(flow, b'[{"of": [1, 0]}, {"of": [0]}]', b'[{"of": [0]}]')

    assert [letter.id for letter in found] == ["orders-0-0.0.1", "orders-0-0.1.0", "orders-0-1.0.0"]
    assert len({letter.identity for letter in found}) == 3
    assert {letter.noted("replayed").identity for letter in found} == {x.identity for x in found}


def test_what_is_too_large_is_a_letter_for_each_record_that_the_message_was_made_of() -> None:
    flow = flow_of({"join": {"count": 3}}, {"map": "1 / 0"})
    messages = [Message(b"%d" % n) for n in range(4)]
    failed = CompiledFlow(flow).run(messages, canned_systems()).dead_letters

    first, last = letters_of(failed, lambda n: record(n, b"%d" % n), definition_of(flow))

    assert [letter.id for letter in first.short] == [f"orders-0-{n}" for n in (0, 1, 2)]
    assert [letter.id for letter in last.short] == ["orders-0-3"]
    again = stored(first.short[2])
    assert (first_step(again, flow), message_of(again, flow).payload) == (None, b"2")
    assert message_of(again, flow).attribute == {"topic": "orders", "partition": 0, "offset": 2}
    with pytest.raises(ConfigError, match="has the record alone"):
        with_step(again, flow, "steps[1]")


def test_a_message_that_json_cannot_have_begins_again_with_its_record() -> None:
    flow = flow_of({"python": _huge}, DIVIDE)

    (letter,) = letters(flow, b"{}")

    assert first_step(letter, flow) is None
    assert letter.error_type == "CORE:EXPRESSION"


def _huge(_message: Message) -> Any:
    return {"n": 0, "other": 10**5000}


@pytest.mark.parametrize(
    ("steps", "payload", "given", "found"),
    [
        ([DIVIDE], b'{"n": 0}', b'{"n": 5}', b'{"n": 5}'),
        ([{"map": "text(payload)"}, DIVIDE], b'{"n": 0}', b'{"n": 5}', '{"n": 5}'),
        ([{"map": "payload"}, {"map": "$"}, DIVIDE], b'{"n": 0}', b'{"n": 5}', {"n": 5}),
    ],
)
def test_a_payload_is_edited_as_bytes_and_has_the_type_that_it_had(
    steps: list[Any], payload: bytes, given: bytes, found: Any
) -> None:
    flow = flow_of(*steps)
    (letter,) = letters(flow, payload)

    assert payload_of(letter, flow).replace(b" ", b"") == b'{"n":0}'
    fixed = edited(letter, flow, given)
    assert message_of(stored(fixed), flow).payload == found
    assert message_of(fixed, flow).attribute == {"topic": "orders"}
    assert fixed.value == payload, "the record stays as it was"


def test_a_new_payload_that_is_not_json_is_refused_where_json_was() -> None:
    flow = flow_of({"map": "$"}, DIVIDE)
    (letter,) = letters(flow, b'{"n": 0}')

    with pytest.raises(ConfigError, match="the payload at that step is text or JSON"):
        edited(letter, flow, b"{")


def test_a_step_that_is_not_there_any_more_is_named() -> None:
    (letter,) = letters(flow_of(DIVIDE), b'{"n": 0}')
    renamed = flow_of({**DIVIDE, "id": "divided"})

    with pytest.raises(
        ConfigError,
        match=r"'orders-0-0' failed at the step 'divide', which 't' does not have any more; did you "
        r"mean 'divided'.*--from-step",
    ):
        first_step(letter, renamed)
    assert first_step(with_step(letter, renamed, "divided"), renamed) == "divided"
    with pytest.raises(ConfigError, match="there is no step 'x' in 't'"):
        with_step(letter, renamed, "x")


def test_a_place_is_not_trusted_after_the_steps_have_changed() -> None:
    flow = flow_of({"map": "10 / payload.n"})
    (letter,) = letters(flow, b'{"n": 0}')

    assert first_step(letter, flow_of({"map": "10 / payload.n"}, tests=[])) == "steps[0]"
    with pytest.raises(
        ConfigError, match=r"failed at steps\[0\], and the steps of 't' have changed"
    ):
        first_step(letter, flow_of({"filter": "true"}, {"map": "10 / payload.n"}))


@pytest.mark.parametrize(
    "damaged",
    [b"", b"{", b'"text"', b'{"attribute": 1}', b'{"payload": {"$base64": "?"}}', b"\xff"],
)
def test_a_damaged_header_is_an_error_of_its_letter(damaged: bytes) -> None:
    flow = flow_of(DIVIDE)
    (letter,) = letters(flow, b'{"n": 0}')
    headers = [(name, damaged if name == MESSAGE else value) for name, value in letter.headers]

    with pytest.raises(ConfigError, match="'orders-0-0' cannot be replayed, because its header"):
        message_of(stored(DeadLetter(**{**_fields(letter), "headers": headers})), flow)


@pytest.mark.parametrize("damaged", [None, b"\xff", b"", b"steps[99]"])
def test_a_damaged_name_of_the_step_is_an_error_of_its_letter(damaged: bytes | None) -> None:
    flow = flow_of(DIVIDE)
    (letter,) = letters(flow, b'{"n": 0}')
    others = [(name, value) for name, value in letter.headers if name != STEP]
    headers = [*others, (STEP, damaged)] if damaged is not None else others

    with pytest.raises(
        ConfigError, match=r"'orders-0-0' failed at the step .* does not have any more"
    ):
        first_step(stored(DeadLetter(**{**_fields(letter), "headers": headers})), flow)


def test_a_letter_whose_headers_are_cut_off_is_unreadable() -> None:
    (letter,) = letters(flow_of(DIVIDE), b'{"n": 0}')
    cut = [(name, value) for name, value in as_headers(letter) if name != "penstock.offset"]

    read = from_record(Record.of("t.dead-letters", 0, 1, value=letter.value, headers=cut))

    assert read is not None
    assert not read.is_readable
    assert "penstock.offset is b''" in read.error


def test_a_part_that_is_no_place_makes_a_letter_unreadable() -> None:
    (letter,) = letters(flow_of(DIVIDE), b'{"n": 0}')

    read = stored(DeadLetter(**{**_fields(letter), "part": "../x"}))

    assert not read.is_readable
    assert "penstock.part is '../x'" in read.error


def test_a_long_trail_is_shortened_to_its_end() -> None:
    steps = [{"id": f"step-{n}-{'x' * 40}", "map": "$"} for n in range(100)]

    (letter,) = letters(flow_of(*steps, DIVIDE), b'{"n": 0}')

    trail = dict(letter.headers)["penstock.flow.trail"] or b""
    assert len(trail) < 2100
    assert trail.startswith(b"..., step-") and trail.endswith(b", divide")


def _fields(letter: DeadLetter) -> dict[str, Any]:
    return {name: getattr(letter, name) for name in letter.__struct_fields__}


def test_a_time_that_utc_does_not_have_begins_again_with_its_record() -> None:
    """A dead letter that cannot be written would hold up the flow for good."""
    at = datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14)))
    flow = flow_of({"python": lambda message: message.changed(variable={"at": at})}, DIVIDE)

    (letter,) = letters(flow, b'{"n": 0}')

    assert (first_step(letter, flow), letter.error_type) == (None, "CORE:EXPRESSION")
