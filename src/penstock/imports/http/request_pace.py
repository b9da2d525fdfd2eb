"""The rate of requests: a process remembers when it asked last, whichever task it did it for."""

from __future__ import annotations

import time
from collections.abc import Callable

_last: dict[str, float] = {}


class Pace:
    """A limit of requests per second; `name` is what they have in common.

    A process that does not know when the last request was waits before its first one: another process may
    have asked just now.
    """

    def __init__(
        self,
        name: str,
        rate: float | None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._name = name
        self._pause = 1 / rate if rate else 0.0
        self._clock = clock
        self._sleep = sleep
        if self._pause:
            _last.setdefault(name, clock())

    def wait(self) -> None:
        """Wait until the next request may be sent."""
        if not self._pause:
            return
        wait = _last[self._name] + self._pause - self._clock()
        if wait > 0:
            self._sleep(wait)
        _last[self._name] = self._clock()
