"""The parts of an expression as functions of a message."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from penstock.flows.expressions import columns, operators
from penstock.flows.expressions.columns import column_of, with_column
from penstock.flows.expressions.expression_error import ExpressionError
from penstock.flows.expressions.scope import Evaluate, Scope, Scopes, document
from penstock.flows.expressions.value_text import kind_of

if TYPE_CHECKING:
    from penstock.flows.expressions.functions import Function


class _Constant:
    """A value that no message changes."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __call__(self, _scope: Scope) -> Any:
        return self.value

    def column(self, scopes: Scopes) -> list[Any]:
        return [self.value] * len(scopes)


def constant(value: Any) -> Evaluate:
    """Return a value."""
    return _Constant(value)


def constant_of(evaluate: Evaluate) -> Any:
    """Return the value of a constant, and anything else as it is."""
    return evaluate.value if isinstance(evaluate, _Constant) else evaluate


def is_constant(evaluate: Evaluate) -> bool:
    """Return whether no message changes the value."""
    return isinstance(evaluate, _Constant)


_READERS: dict[str, Evaluate] = {
    "payload": with_column(lambda s: s.payload, lambda scopes: [s.payload for s in scopes]),
    "document": with_column(document, lambda scopes: scopes.documents),
    "attribute": with_column(lambda s: s.attribute, lambda scopes: [s.attribute for s in scopes]),
    "variable": with_column(lambda s: s.variable, lambda scopes: [s.variable for s in scopes]),
    "error": with_column(lambda s: s.error, lambda scopes: [s.error for s in scopes]),
}


def name(which: str) -> Evaluate:
    """Return a part of the message."""
    return _READERS[which]


def any_of(parts: list[Evaluate], _symbols: list[str]) -> Evaluate:
    """Return `or`: true as soon as one is true, null where one is null."""

    def evaluate(scope: Scope) -> bool | None:
        result: bool | None = False
        for part in parts:
            value = operators.truth(part(scope), "or")
            if value:
                return True
            result = None if value is None else result
        return result

    each = [*map(column_of, parts)]
    return with_column(evaluate, lambda scopes: columns.until(True, each, "or", scopes))


def all_of(parts: list[Evaluate], _symbols: list[str]) -> Evaluate:
    """Return `and`: false as soon as one is false, null where one is null."""

    def evaluate(scope: Scope) -> bool | None:
        result: bool | None = True
        for part in parts:
            value = operators.truth(part(scope), "and")
            if value is False:
                return False
            result = None if value is None else result
        return result

    each = [*map(column_of, parts)]
    return with_column(evaluate, lambda scopes: columns.until(False, each, "and", scopes))


def concatenated(parts: list[Evaluate], _symbols: list[str]) -> Evaluate:
    """Return the texts of the parts as one."""
    return lambda scope: operators.joined([part(scope) for part in parts])


def computed(parts: list[Evaluate], symbols: list[str]) -> Evaluate:
    """Return a chain of arithmetic operators of one rank, from left to right."""
    first = parts[0]
    steps = [(operators.arithmetic(s), p) for s, p in zip(symbols, parts[1:], strict=True)]

    def evaluate(scope: Scope) -> Any:
        value = first(scope)
        for operator, part in steps:
            value = operator(value, part(scope))
        return value

    each = [*map(column_of, parts)]

    def column(scopes: Scopes) -> list[Any]:
        values = each[0](scopes)
        for symbol, right in zip(symbols, each[1:], strict=True):
            values = columns.computed(symbol, values, right(scopes))
        return values

    return with_column(evaluate, column)


def negated(inner: Evaluate, times: int) -> Evaluate:
    """Return `not`, as often as it is given."""

    def evaluate(scope: Scope) -> bool | None:
        value = operators.truth(inner(scope), "not")
        return value if value is None or times % 2 == 0 else not value

    each = column_of(inner)

    def column(scopes: Scopes) -> list[Any]:
        values = columns.truths(each(scopes), "not")
        if times % 2 == 0:
            return values
        return [None if value is None else not value for value in values]

    return with_column(evaluate, column)


def compared(symbol: str, left: Evaluate, right: Evaluate) -> Evaluate:
    """Return a comparison."""
    compare = operators.COMPARISONS[symbol]
    first, second = column_of(left), column_of(right)
    return with_column(
        lambda scope: compare(left(scope), right(scope)),
        lambda scopes: columns.compared(symbol, first(scopes), second(scopes)),
    )


def is_null(inner: Evaluate, is_negated: bool) -> Evaluate:
    """Return `is null` or `is not null`."""
    each = column_of(inner)
    return with_column(
        lambda scope: (inner(scope) is None) is not is_negated,
        lambda scopes: [(value is None) is not is_negated for value in each(scopes)],
    )


def between(value: Evaluate, low: Evaluate, high: Evaluate) -> Evaluate:
    """Return whether a value is between two others, both included."""
    compare = operators.COMPARISONS["<="]

    def evaluate(scope: Scope) -> bool | None:
        given = value(scope)
        results = (compare(low(scope), given), compare(given, high(scope)))
        return False if False in results else None if None in results else True

    return evaluate


def among(value: Evaluate, choices: Evaluate) -> Evaluate:
    """Return whether a value is among others."""
    return lambda scope: operators.contains(value(scope), choices(scope))


def like(value: Evaluate, pattern: Evaluate) -> Evaluate:
    """Return whether a text has a form."""
    return lambda scope: operators.like(value(scope), pattern(scope))


def opposite(inner: Evaluate) -> Evaluate:
    """Return the number with the other sign."""
    if isinstance(inner, _Constant) and operators.is_number(inner.value):
        return constant(-inner.value)

    def evaluate(scope: Scope) -> Any:
        value = inner(scope)
        if value is None or operators.is_number(value):
            return None if value is None else -value
        raise ExpressionError(f"- takes a number, given {kind_of(value)}")

    return evaluate


def list_of(parts: Sequence[Evaluate]) -> Evaluate:
    """Return a list."""
    each = [*map(column_of, parts)]

    def column(scopes: Scopes) -> list[Any]:
        if not each:
            return [[] for _ in range(len(scopes))]
        return list(map(list, zip(*(part(scopes) for part in each), strict=True)))

    return with_column(lambda scope: [part(scope) for part in parts], column)


def object_of(members: Sequence[tuple[str, Evaluate]]) -> Evaluate:
    """Return an object."""
    names = [key for key, _ in members]
    each = [column_of(part) for _, part in members]
    return with_column(
        lambda scope: {key: part(scope) for key, part in members},
        lambda scopes: columns.objects(names, [part(scopes) for part in each], len(scopes)),
    )


def cases(arms: Sequence[tuple[Evaluate, Evaluate]], otherwise: Evaluate) -> Evaluate:
    """Return the value of the first condition that is true; the others are not evaluated."""

    def evaluate(scope: Scope) -> Any:
        for condition, value in arms:
            if operators.truth(condition(scope), "a condition"):
                return value(scope)
        return otherwise(scope)

    return evaluate


def called(function: Function, arguments: list[Evaluate]) -> Evaluate:
    """Return a call; without a value where an argument is null, unless the function takes nulls."""
    call: Callable[..., Any] = function.call
    takes_null = function.takes_null

    def evaluate(scope: Scope) -> Any:
        values = [argument(scope) for argument in arguments]
        if not takes_null and None in values:
            return None
        try:
            return call(*values)
        except (ValueError, TypeError, ArithmeticError, RecursionError) as error:
            # Also what the standard library refuses, as half of a surrogate pair.
            raise ExpressionError(f"{function.name}(): {error}") from None

    return evaluate
