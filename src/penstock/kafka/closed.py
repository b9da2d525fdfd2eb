"""What stands in the place of a client that was closed."""

from __future__ import annotations

from typing import Any

from penstock.errors import TerminalError


class Closed:
    """Says that its client is closed, whatever is asked of it; closing once more is no trouble.

    >>> Closed("consumer").poll(1)
    Traceback (most recent call last):
    penstock.errors.TerminalError: this consumer is closed and does no more; make a new one
    """

    def __init__(self, what: str) -> None:
        self._what = what

    def close(self) -> None:
        """Nothing is left to close."""

    def __len__(self) -> int:
        return 0

    def refuse(self, *_args: object) -> None:
        """Say so."""
        raise TerminalError(f"this {self._what} is closed and does no more; make a new one")

    def __getattr__(self, _name: str) -> Any:
        return self.refuse()
