"""Questions to group coordinators, put in a process of their own.

librdkafka (2.16) aborts the whole process when a broker goes away under such a question: better that
one than ours. Where it happens, the question is put once more, and then it is an error like any other.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from selectors import EVENT_READ, DefaultSelector
from threading import Lock
from typing import IO, Any, Literal
from weakref import finalize

import orjson
from msgspec import convert

from penstock.config import Connection
from penstock.error_frame import from_document
from penstock.errors import BrokerUnavailableError, PenstockError, TransientError
from penstock.kafka.admin.admin_model import GroupDescription
from penstock.kafka.bounded import MARGIN

Deed = Literal["describe", "delete"]
Outcome = GroupDescription | PenstockError | None

_TRIES = 2
_GRACE = 1.0


class Coordinator:
    """Asks about groups through a child that is started at the first question and ends with us."""

    def __init__(self, connection: Connection, timeout: float) -> None:
        self._connection = connection
        self._timeout = timeout
        self._child: subprocess.Popen[bytes] | None = None
        self._lock = Lock()

    def describe(self, names: Sequence[str]) -> dict[str, Outcome]:
        """Return the description of each group; None for one that does not exist, or the error."""
        return self._ask("describe", names)

    def delete(self, name: str) -> None:
        """Delete a group; one that is gone already is ignored."""
        outcome = self._ask("delete", [name])[name]
        if isinstance(outcome, PenstockError):
            raise outcome

    def close(self) -> None:
        """End the child, where there is one."""
        if self._child is not None:
            _end(self._child)
            self._child = None

    def _ask(self, deed: Deed, names: Sequence[str]) -> dict[str, Outcome]:
        question = orjson.dumps([deed, list(names)])
        with self._lock:
            for _ in range(_TRIES):
                if answer := self._exchange(question):
                    return self._read(answer)
                self.close()
        raise BrokerUnavailableError(
            f"asking about group {', '.join(names)}: a broker of {self._connection.brokers} went away "
            "meanwhile; the same call may work in a moment"
        )

    def _read(self, answer: bytes) -> dict[str, Outcome]:
        outcomes = {name: _outcome(each) for name, each in orjson.loads(answer).items()}
        if any(isinstance(each, TransientError) for each in outcomes.values()):
            # A client over which a broker went away may not find coordinators ever again.
            self.close()
        return outcomes

    def _exchange(self, question: bytes) -> bytes:
        """Put a line and give the line that comes back; nothing when the child died or hangs over it."""
        child = self._child = self._child or self._start()
        assert child.stdin is not None  # noqa: S101
        assert child.stdout is not None  # noqa: S101
        with suppress(BrokenPipeError):
            child.stdin.write(question + b"\n")
            child.stdin.flush()
            # The child gives up by itself, unless it hangs: then it is replaced.
            if _is_readable(child.stdout, 2 * self._timeout + MARGIN):
                return child.stdout.readline()
        return b""

    def _start(self) -> subprocess.Popen[bytes]:
        child = subprocess.Popen(
            [sys.executable, "-m", "penstock.kafka.admin.coordinator_child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is for us; the child ends when its stdin does
        )
        finalize(self, _end, child)
        assert child.stdin is not None  # noqa: S101
        # Through the pipe and not as an argument: it has the passwords.
        setup = [self._connection.to_config(), self._timeout]
        child.stdin.write(orjson.dumps(setup) + b"\n")
        return child


def _is_readable(pipe: IO[bytes], seconds: float) -> bool:
    with DefaultSelector() as selector:
        selector.register(pipe, EVENT_READ)
        return bool(selector.select(seconds))


def _outcome(document: Any) -> Outcome:
    if document is None:
        return None
    if "error" in document:
        return from_document(document["error"])
    return convert(document, GroupDescription)


def _end(child: subprocess.Popen[bytes]) -> None:
    for pipe in (child.stdin, child.stdout):
        with suppress(BrokenPipeError):
            if pipe is not None:
                pipe.close()
    try:
        child.wait(_GRACE)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
