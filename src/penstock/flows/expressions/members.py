"""Members of objects and elements of lists: what does not exist is null."""

from __future__ import annotations

from typing import Any

from penstock.flows.expressions.columns import column_of, followed, has_column, with_column
from penstock.flows.expressions.expression_error import ExpressionError
from penstock.flows.expressions.scope import Column, Evaluate, Scope, Scopes, document
from penstock.flows.expressions.value_text import from_json, kind_of

ALL = object()
"""The key `[*]`: every element of a list, or value of an object."""


def member(value: Any, key: Any) -> Any:
    """Return a member, null where there is none.

    >>> member({"a": 1}, "a"), member({"a": 1}, "b"), member([1, 2], -1), member(None, "a")
    (1, None, 2, None)
    """
    if value is None or key is None:
        return None
    if isinstance(value, bytes):
        value = from_json(value, "the bytes")
    if isinstance(value, dict):
        return value.get(key) if isinstance(key, str) else _wrong_key(value, key)
    if isinstance(value, list):
        if type(key) is not int:
            return _wrong_key(value, key)
        return value[key] if -len(value) <= key < len(value) else None
    raise ExpressionError(f"{_shown(key)} is taken of {kind_of(value)}, which has no members")


def _wrong_key(value: Any, key: Any) -> Any:
    if isinstance(value, list):
        hint = "give a number as in [0], or [*] for all elements"
    else:
        hint = "give a text as in ['name']"
    raise ExpressionError(f"{_shown(key)} is taken of {kind_of(value)}; {hint}")


def _shown(key: Any) -> str:
    return f"[{key}]" if type(key) is int else f"{str(key)[:40]!r}"


def elements(value: Any) -> list[Any]:
    """Return the elements of a list or the values of an object; none of null."""
    if value is None:
        return []
    if isinstance(value, bytes):
        value = from_json(value, "the bytes")
    if isinstance(value, dict):
        return list(value.values())
    if isinstance(value, list):
        return value
    raise ExpressionError(f"[*] is taken of {kind_of(value)}, which has no elements")


def path(base: Evaluate, keys: list[Any]) -> Evaluate:
    """Return what follows keys, one after the other; a key that is a function depends on the message."""
    if ALL in keys:
        first = keys.index(ALL)
        rest = keys[first + 1 :]
        return _all(path(base, keys[:first]) if first else base, rest)
    is_one = len(keys) == 1 and isinstance(keys[0], str | int)
    evaluate = _one(base, keys[0]) if is_one else _chain(base, keys)
    if has_column(base) and not any(map(callable, keys)):
        with_column(evaluate, _column(base, keys))
    return evaluate


def _one(base: Evaluate, key: Any) -> Evaluate:
    if base is document:  # most paths: a call less for each

        def of_document(scope: Scope) -> Any:
            value = scope.document
            return (
                value.get(key) if type(value) is dict and type(key) is str else member(value, key)
            )

        return of_document

    def evaluate(scope: Scope) -> Any:
        value = base(scope)
        return value.get(key) if type(value) is dict and type(key) is str else member(value, key)

    return evaluate


def _column(base: Evaluate, keys: list[Any]) -> Column:
    values_of = column_of(base)

    def column(scopes: Scopes) -> list[Any]:
        values = values_of(scopes)
        for key in keys:
            values = followed(values, key, member)
        return values

    return column


def _chain(base: Evaluate, keys: list[Any]) -> Evaluate:
    def evaluate(scope: Scope) -> Any:
        return _followed(base(scope), keys, scope)

    return evaluate


def _followed(value: Any, keys: list[Any], scope: Scope) -> Any:
    for key in keys:
        value = member(value, key(scope) if callable(key) else key)
    return value


def _all(base: Evaluate, keys: list[Any]) -> Evaluate:
    """Return the elements, each followed further; more [*] make one flat list."""

    def evaluate(scope: Scope) -> Any:
        values = elements(base(scope))
        for key in keys:
            if key is ALL:
                values = [each for value in values for each in elements(value)]
            else:
                real = key(scope) if callable(key) else key
                values = [member(value, real) for value in values]
        return values

    return evaluate
