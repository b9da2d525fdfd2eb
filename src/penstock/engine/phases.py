"""The phases of the batch that runs in this thread, with their times: they are parts of its trace."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple


class Phase(NamedTuple):
    """A part of a batch, in seconds of the monotonic clock."""

    name: str
    began: float
    ended: float
    failed: bool


_phases: ContextVar[list[Phase] | None] = ContextVar("phases", default=None)


@contextmanager
def batch_phases() -> Iterator[None]:
    """Collect the phases of a batch in the block.

    >>> with batch_phases():
    ...     with phase("write"):
    ...         pass
    ...     [each.name for each in ended_phases()]
    ['write']
    """
    before = _phases.set([])
    try:
        yield
    finally:
        _phases.reset(before)


@contextmanager
def phase(name: str) -> Iterator[None]:
    """Note when the block began and ended, and whether it raised; nothing outside of a batch."""
    began, failed = time.monotonic(), True
    try:
        yield
        failed = False
    finally:
        if (found := _phases.get()) is not None:
            found.append(Phase(name, began, time.monotonic(), failed))


def ended_phases() -> Sequence[Phase]:
    """Return the phases of this thread's batch that have ended, in their order."""
    return tuple(_phases.get() or ())
