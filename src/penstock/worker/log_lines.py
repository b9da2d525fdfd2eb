"""What a worker process logs, on its way into the store. A run that logs waits for nothing.

Lines wait in memory; the thread that reports writes them. When the store is away or too slow, the oldest
lines of whoever logs most are left out, and a line says how many.
"""

from __future__ import annotations

import logging
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count
from threading import Lock

from penstock.control.liveness import clock
from penstock.control.store.logs import LogLine, Logs
from penstock.errors import TransientError
from penstock.worker.log_record import line_of

MOST_WAITING = 5000
"""How many lines wait for the store."""
# What the store itself logs would never end; Py4J reports every call.
_IGNORED = {"sqlalchemy", "alembic", "py4j"}
_ORPHANS_EVERY = 3600.0


@dataclass(frozen=True)
class _Waiting:
    order: int
    at: float
    line: LogLine


class LogLines(logging.Handler):
    """Collects lines of this process inside of `collecting`; `write` stores them."""

    def __init__(self, logs: Logs, worker: str, most: int = MOST_WAITING) -> None:
        super().__init__()
        self._logs = logs
        self._worker = worker
        self._most = most
        self._waiting: dict[str, deque[_Waiting]] = {}
        self._left_out: Counter[str] = Counter()
        self._numbers = count()
        self._size = 0
        self._guard = Lock()
        self._looked: float | None = None

    def createLock(self) -> None:  # noqa: N802 - a name of logging
        """Use no lock for a whole record: threads that log do not wait for each other."""
        self.lock = None

    @contextmanager
    def collecting(self) -> Iterator[None]:
        """Collect what is logged in the block: our own lines from the level info on.

        Handlers that are there already get no more than before.
        """
        root, own = logging.getLogger(), logging.getLogger("penstock")
        handlers, level = [(each, each.level) for each in root.handlers], own.level
        for handler, least in handlers:
            handler.setLevel(max(least, root.level))
        own.setLevel(min(own.getEffectiveLevel(), logging.INFO))
        root.addHandler(self)
        try:
            yield
        finally:
            root.removeHandler(self)
            own.setLevel(level)
            for handler, least in handlers:
                handler.setLevel(least)

    def emit(self, record: logging.LogRecord) -> None:
        """Add a record to those that wait."""
        if (record.name or "").partition(".")[0] in _IGNORED:
            return
        try:
            line = line_of(record)
        except Exception as error:  # what is logged must not end a run
            line = LogLine("", "error", "log_line_unreadable", {"reason": type(error).__name__})
        with self._guard:
            self._add(_Waiting(next(self._numbers), clock(), line))

    def write(self) -> None:
        """Store the lines that wait.

        Raises
        ------
        TransientError
            When the store is away; the lines wait on. One may be stored twice if the end of the
            transaction was not confirmed.
        """
        waiting, left_out = self._take()
        try:
            self._logs.add(self._worker, _lines(waiting, left_out))
        except TransientError:
            self._put_back(waiting, left_out)
            raise
        except Exception:
            self._put_back([], left_out + Counter(each.line.deployment for each in waiting))
            raise
        if self._looked is None or clock() - self._looked >= _ORPHANS_EVERY:
            self._looked = clock()
            self._logs.remove_orphans()

    def _add(self, waiting: _Waiting) -> None:
        self._waiting.setdefault(waiting.line.deployment, deque()).append(waiting)
        self._size += 1
        while self._size > self._most:
            self._leave_one_out()

    def _leave_one_out(self) -> None:
        """Remove the oldest line of the one who logs most, so that others lose none through it."""
        owner = max(self._waiting, key=lambda each: len(self._waiting[each]))
        self._waiting[owner].popleft()
        self._left_out[owner] += 1
        self._size -= 1

    def _take(self) -> tuple[list[_Waiting], Counter[str]]:
        with self._guard:
            taken = [each for lines in self._waiting.values() for each in lines]
            left_out = self._left_out
            self._waiting, self._left_out, self._size = {}, Counter(), 0
        return sorted(taken, key=lambda each: each.order), left_out

    def _put_back(self, waiting: list[_Waiting], left_out: Counter[str]) -> None:
        with self._guard:
            self._left_out.update(left_out)
            for each in reversed(waiting):
                self._waiting.setdefault(each.line.deployment, deque()).appendleft(each)
            self._size += len(waiting)
            while self._size > self._most:
                self._leave_one_out()


def _lines(waiting: list[_Waiting], left_out: Counter[str]) -> list[LogLine]:
    """Return lines with their ages; where some were left out, a line about that comes first."""
    now = clock()
    notes = [
        LogLine(owner, "warning", f"{number} lines left out", {"reason": "the store was too slow"})
        for owner, number in left_out.items()
    ]
    oldest = max((now - each.at for each in waiting), default=0.0)
    lines = [replace(each.line, age=max(0.0, now - each.at)) for each in waiting]
    return [*(replace(note, age=oldest) for note in notes), *lines]
