"""What an expression sees: the four parts of a message."""

from __future__ import annotations

from collections.abc import Callable
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


def document(scope: Scope) -> Any:
    """Return the payload as expressions take members of it."""
    return scope.document


Evaluate = Callable[[Scope], Any]
"""A part of an expression, ready to be evaluated."""
