"""What an expression sees: the four parts of a message."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

NAMES = ("payload", "attribute", "variable", "error")


class Scope(Protocol):
    """A message, as expressions see it."""

    @property
    def payload(self) -> Any:
        """Return the payload as it is."""

    @property
    def document(self) -> Any:
        """Return the payload; the value of its JSON where it is bytes or text."""

    @property
    def attribute(self) -> Any:
        """Return the attributes."""

    @property
    def variable(self) -> Any:
        """Return the variables."""

    @property
    def error(self) -> Any:
        """Return the error as `{Code, Description}`, null where there is none."""


class Scopes(Protocol):
    """Messages, as expressions see them that are evaluated for many at once."""

    def __iter__(self) -> Iterator[Scope]:
        """Yield each message."""

    def __len__(self) -> int:
        """Return how many there are."""

    @property
    def documents(self) -> list[Any]:
        """Return the documents of all messages."""

    def chosen(self, numbers: Sequence[int]) -> Scopes:
        """Return some of the messages, by their numbers."""


def document(scope: Scope) -> Any:
    """Return the payload as expressions take members of it."""
    return scope.document


Evaluate = Callable[[Scope], Any]
"""A part of an expression, ready to be evaluated."""

Column = Callable[[Scopes], list[Any]]
"""The same for many messages at once: a value for each. It raises where one of them has none."""
