"""Callbacks of the user's own run inside of librdkafka, where an exception would cost records.

The binding drops the messages that it has in hand when a callback raises, and raises out of whatever
call happens to serve it. So what a callback raises is kept, and raised where nothing is lost by it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Callbacks:
    """Runs callbacks, and keeps what the first of them raised until somebody asks.

    >>> callbacks = Callbacks()
    >>> callbacks.run(int, "no number")
    >>> callbacks.raise_kept()
    Traceback (most recent call last):
    ValueError: invalid literal for int() with base 10: 'no number'
    """

    def __init__(self) -> None:
        self._raised: BaseException | None = None

    def run(self, callback: Callable[..., Any], *args: Any) -> Any:
        """Call; None where the callback raised."""
        try:
            return callback(*args)
        except BaseException as problem:
            # Ctrl-C too: it is raised a moment later, by `raise_kept`.
            self._raised = self._raised or problem
            return None

    def raise_kept(self) -> None:
        """Raise, once, what a callback raised."""
        problem, self._raised = self._raised, None
        if problem is not None:
            raise problem
