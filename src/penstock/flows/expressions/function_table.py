"""How a function enters the table: its signature, what it does, and examples that are true."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.flows.expressions.expression_error import ExpressionError
from penstock.flows.expressions.operators import is_number
from penstock.flows.expressions.value_text import decoded, kind_of

LARGEST = 32 * 2**20
"""The most characters of a text that a function returns."""
_MANY = 1000


@dataclass(frozen=True)
class Function:
    """One function of the language."""

    signature: str
    description: str
    examples: tuple[str, ...]
    call: Callable[..., Any]
    least: int
    most: int
    takes_null: bool

    @property
    def name(self) -> str:
        """Return what it is called."""
        return self.signature.partition("(")[0]


FUNCTIONS: dict[str, Function] = {}
"""All functions by their names."""


def function(
    signature: str, description: str, *examples: str, takes_null: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add a function to the table; each example is an expression that is true."""

    def add(call: Callable[..., Any]) -> Callable[..., Any]:
        least, most = _arity(call)
        made = Function(signature, description, examples, call, least, most, takes_null)
        FUNCTIONS[made.name] = made
        return call

    return add


def _arity(call: Callable[..., Any]) -> tuple[int, int]:
    parameters = inspect.signature(call).parameters.values()
    needed = [p for p in parameters if p.default is p.empty and p.kind is not p.VAR_POSITIONAL]
    several = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    return len(needed), _MANY if several else len(parameters)


def as_text(value: Any) -> str:
    """Return a text that was given, also as bytes."""
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return decoded(value)
    raise ExpressionError(f"takes a text, given {kind_of(value)}; text(...) makes one")


def as_number(value: Any) -> Any:
    """Return a number that was given."""
    if is_number(value):
        return value
    raise ExpressionError(f"takes a number, given {kind_of(value)}; to_number(...) makes one")


def as_whole(value: Any) -> int:
    """Return a whole number that was given."""
    number = as_number(value)
    if number != int(number) or abs(number) > 2**53:
        raise ExpressionError(f"takes a whole number, given {number}")
    return int(number)


def as_list(value: Any) -> list[Any]:
    """Return a list that was given."""
    if isinstance(value, list):
        return value
    raise ExpressionError(f"takes a list, given {kind_of(value)}")


def as_object(value: Any) -> dict[str, Any]:
    """Return an object that was given."""
    if isinstance(value, dict):
        return value
    raise ExpressionError(f"takes an object, given {kind_of(value)}")


def as_bytes(value: Any) -> bytes:
    """Return bytes that were given, also as text."""
    return value if isinstance(value, bytes) else as_text(value).encode("utf-8", "surrogatepass")


def limited(size: int) -> None:
    """Raise where a text would be larger than is allowed, before it is made."""
    if size > LARGEST:
        raise ExpressionError(f"the text would have {size} characters; allowed are {LARGEST}")


def numbers(values: Sequence[Any]) -> list[Any]:
    """Return the numbers of a list, without nulls."""
    return [as_number(value) for value in values if value is not None]
