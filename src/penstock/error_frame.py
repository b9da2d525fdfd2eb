"""One serialized form of errors, for passing them from one process to another.

A *document* (class, message, stage, when to retry) for our own channels: a pipe, a column of
a result. A *frame*, a document with a signature, where the error passes through text that also quotes
records: the traceback of a Python worker. No record can forge a frame, because only the driver has the
key, which never appears in a text.
"""

from __future__ import annotations

import hmac
import json
import re
import secrets
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from traceback import format_exception
from typing import Any

from penstock import errors
from penstock.errors import PenstockError, RefusedError, TerminalError, TransientError

_KEY = secrets.token_bytes(32)
_FRAME = re.compile(r"^penstock-error ([0-9a-f]{64}) (\{.*\})$", re.MULTILINE)
_LONGEST = 20_000
# Classes with their own constructor are sent as their base class.
_ODD = (errors.DefinitionError, errors.MissingExtraError)


class ForeignError(Exception):
    """An exception that is not of Penstock, raised in another process."""


class WorkerError(Exception):
    """The exception that a Python worker raises instead of an error: its last line is the frame."""


def to_document(error: Exception, stage: str | None = None) -> dict[str, Any]:
    """Return an error as plain values."""
    return {
        "kind": next((kind.__name__ for kind in type(error).__mro__ if _is_plain(kind)), None),
        "name": type(error).__name__,
        "message": _printable(str(error)),
        "stage": stage or getattr(error, "stage", None),
        "retry_after": getattr(error, "retry_after", None),
    }


def from_document(document: dict[str, Any]) -> PenstockError:
    """Return the error that a document describes.

    >>> from_document(to_document(RefusedError("too long", stage="step"))).stage
    'step'
    >>> from_document(to_document(ValueError("x")))
    TerminalError('ValueError: x')
    """
    kind: Any = getattr(errors, document["kind"] or "", None)
    message = document["message"]
    if kind is None:
        return TerminalError(f"{document['name']}: {message}" if message else document["name"])
    more: dict[str, Any] = {}
    if issubclass(kind, TransientError):
        more = {"retry_after": document["retry_after"]}
    elif issubclass(kind, RefusedError):
        more = {"stage": document["stage"]}
    error: PenstockError = kind(message, **more)
    return error


@dataclass(frozen=True)
class InWorker:
    """A function over Arrow batches, for a Python worker: its errors are sent as frames."""

    call: Callable[[Iterable[Any]], Iterable[Any]]
    stage: str
    key: bytes = field(repr=False)

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Call the function."""
        try:
            yield from self.call(batches)
        except Exception as error:
            # Not chained: its text may have characters that PySpark cannot send; the task would hang.
            raise WorkerError(_described(error, self.stage, self.key)) from None


def in_worker(call: Callable[[Iterable[Any]], Iterable[Any]], stage: str) -> InWorker:
    """Return the function for workers; `stage` is where in a pipeline it runs."""
    return InWorker(call, stage, _KEY)


def find_frame(text: str) -> PenstockError | ForeignError | None:
    """Return the error of the last frame in a text that this process signed."""
    for signature, document in reversed(_FRAME.findall(text)):
        if hmac.compare_digest(signature, _signature(document, _KEY)):
            fields = json.loads(document)
            error = from_document(fields)
            return error if fields["kind"] else ForeignError(str(error))
    return None


def _described(error: Exception, stage: str, key: bytes) -> str:
    """Return the traceback for people, then the frame on a separate line."""
    document = json.dumps(to_document(error, stage))
    traceback_text = "".join(format_exception(type(error), error, error.__traceback__))
    return f"{_printable(traceback_text)}\npenstock-error {_signature(document, key)} {document}"


def _signature(document: str, key: bytes) -> str:
    return hmac.new(key, document.encode(), "sha256").hexdigest()


def _printable(text: str) -> str:
    """Return a text of bounded length that every encoding supports."""
    return text[:_LONGEST].encode("utf-8", "backslashreplace").decode("utf-8")


def _is_plain(kind: type) -> bool:
    known = getattr(errors, kind.__name__, None) is kind and issubclass(kind, PenstockError)
    return known and kind not in _ODD
