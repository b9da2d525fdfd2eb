"""Parts of expressions for many messages at once: a pass of C over their values, not calls for each.

A column gives the values that the same part gives for each message alone, or it raises. What it raises is
not reported: its messages are then evaluated one by one, and each has its own error. Operators are quick
where all values are plain (numbers, texts), and otherwise work value by value. Parts that can make large
values have no column, so that only one of these is in memory at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import repeat
from math import isfinite
from typing import Any

from penstock.flows.expressions import operators
from penstock.flows.expressions.scope import Column, Evaluate, Scopes

_NAME = "column"
_NUMBERS = frozenset({int, float})
_TEXTS = frozenset({str})
_PLAIN = _NUMBERS | _TEXTS
_TRUTHS = frozenset({bool, type(None)})


def with_column(evaluate: Evaluate, column: Column) -> Evaluate:
    """Return what evaluates a part, with its form for many messages."""
    setattr(evaluate, _NAME, column)
    return evaluate


def has_column(evaluate: Evaluate) -> bool:
    """Return whether a part has a form for many messages."""
    return hasattr(evaluate, _NAME)


def column_of(evaluate: Evaluate) -> Column:
    """Return a part for many messages; where it has no such form, it is called for each."""
    own: Column | None = getattr(evaluate, _NAME, None)
    return own or (lambda scopes: [evaluate(scope) for scope in scopes])


def kinds_of(*columns: Sequence[Any]) -> set[type]:
    """Return the types of all values."""
    return {kind for column in columns for kind in set(map(type, column))}


def followed(values: list[Any], key: Any, member: Callable[[Any, Any], Any]) -> list[Any]:
    """Return a member of each value; `member` is that of one."""
    if type(key) is str and kinds_of(values) == {dict}:
        return [value.get(key) for value in values]
    return [member(value, key) for value in values]


def computed(symbol: str, left: list[Any], right: list[Any]) -> list[Any]:
    """Return an arithmetic operator of each pair."""
    if kinds_of(left, right) <= _NUMBERS:
        found = list(map(operators.ARITHMETIC[symbol], left, right))
        # Whole numbers that a float cannot be are those that are too large, and raise here.
        if all(map(isfinite, found)):
            return found
    return list(map(operators.arithmetic(symbol), left, right))


def compared(symbol: str, left: list[Any], right: list[Any]) -> list[Any]:
    """Return a comparison of each pair."""
    kinds = kinds_of(left, right)
    is_equality = symbol in operators.EQUALITIES and kinds <= _PLAIN
    if is_equality or kinds <= _NUMBERS or kinds <= _TEXTS:
        return list(map(operators.PLAIN_COMPARISONS[symbol], left, right))
    return list(map(operators.COMPARISONS[symbol], left, right))


def objects(names: Sequence[str], columns: Sequence[list[Any]], count: int) -> list[Any]:
    """Return objects with these members."""
    rows = zip(*columns, strict=True) if columns else repeat((), count)
    return list(map(dict, map(zip, repeat(names), rows)))


def until(decisive: bool, parts: Sequence[Column], of: str, scopes: Scopes) -> list[Any]:
    """Return `and` (decided by false) or `or` (by true) of conditions.

    As for one message, a condition is not evaluated for those that an earlier one has decided.
    """
    results: list[Any] = [not decisive] * len(scopes)
    numbers = list(range(len(scopes)))
    for part in parts:
        if not numbers:
            break
        some = scopes if len(numbers) == len(results) else scopes.chosen(numbers)
        values = truths(part(some), of)
        for number, value in zip(numbers, values, strict=True):
            if value is decisive:
                results[number] = decisive
            elif value is None:
                results[number] = None
        numbers = [n for n, value in zip(numbers, values, strict=True) if value is not decisive]
    return results


def truths(values: list[Any], of: str) -> list[Any]:
    """Return conditions; raise where a value is none."""
    if not kinds_of(values) <= _TRUTHS:
        for value in values:
            operators.truth(value, of)
    return values
