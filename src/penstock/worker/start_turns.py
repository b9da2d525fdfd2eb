"""Which runs of a worker start at the same time: a start takes a core for a second or two."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Lock, Semaphore, Timer

# How soon a run that waits for its turn sees that it is to stop.
_TRY_EVERY = 0.1


class StartTurns:
    """Bounds how many runs start at the same time, so that none waits for a system of another one.

    Runs that start again after a system was unavailable have turns of their own, and a start that takes
    longer than `longest` seconds gives its turn up: it waits for a system, not for a core.
    """

    def __init__(self, most: int, longest: float = 10.0) -> None:
        self._first, self._again = Semaphore(most), Semaphore(most)
        self._longest = longest

    @contextmanager
    def taken(self, asked_to_stop: Event, *, again: bool) -> Iterator[bool]:
        """Wait for a turn; give False, without one, where the run is asked to stop before."""
        turns = self._again if again else self._first
        while not turns.acquire(timeout=_TRY_EVERY):
            if asked_to_stop.is_set():
                yield False
                return
        turn = _Turn(turns)
        given_up = Timer(self._longest, turn.end)
        given_up.daemon = True
        given_up.start()
        try:
            yield not asked_to_stop.is_set()
        finally:
            given_up.cancel()
            turn.end()


class _Turn:
    """A place of a semaphore, given back once."""

    def __init__(self, turns: Semaphore) -> None:
        self._turns = turns
        self._lock = Lock()
        self._ended = False

    def end(self) -> None:
        with self._lock:
            if not self._ended:
                self._ended = True
                self._turns.release()
