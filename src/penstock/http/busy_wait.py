"""The waits between requests to a server that is busy."""

from __future__ import annotations

import time

from penstock.errors import TransientError

_FIRST, _LONGEST = 0.1, 5.0


class BusyWait:
    """Waits longer each time, up to `patience` seconds in all; then gives up."""

    def __init__(self, patience: float) -> None:
        self._until = time.monotonic() + patience
        self._next = _FIRST

    def wait(self, reason: str, asked: float = 0.0) -> None:
        """Wait, for as long as the server asks for where it does; raise where that would be too long.

        Raises
        ------
        TransientError
            With `reason`, and with the time after which the server may be asked again.
        """
        pause = max(self._next, asked)
        if time.monotonic() + pause > self._until:
            raise TransientError(reason, max(1.0, asked))
        time.sleep(pause)
        self._next = min(_LONGEST, self._next * 2)
