"""Functions over numbers and lists of them."""

from __future__ import annotations

import math
from typing import Any

from penstock.flows.expressions.expression_error import ExpressionError
from penstock.flows.expressions.function_table import (
    as_list,
    as_number,
    as_text,
    as_whole,
    function,
    numbers,
)
from penstock.flows.expressions.operators import COMPARISONS, arithmetic, is_number
from penstock.flows.expressions.value_text import kind_of

_LONGEST = 300


@function(
    "to_number(value)",
    "the number that a text writes; true is 1",
    "to_number(' 1.50 ') = 1.5 and to_number('42') = 42",
)
def _to_number(value: Any) -> Any:
    if isinstance(value, bool):
        return int(value)
    if is_number(value):
        return value
    text = as_text(value).strip()
    if len(text) <= _LONGEST and text.isascii() and "_" not in text:
        try:
            number = int(text) if text.lstrip("+-").isdigit() else float(text)
        except ValueError:
            number = math.nan
        if math.isfinite(number):
            return number
    raise ExpressionError(f"{text[:40]!r} is not a number")


@function("round(number[, digits])", "rounded, halves away from zero", "round(2.675, 1) = 2.7")
def _round(value: Any, digits: Any = 0) -> Any:
    number, places = as_number(value), as_whole(digits)
    if not 0 <= places <= 15:
        raise ExpressionError(f"rounds to 0 to 15 digits, given {places}")
    if type(number) is int or abs(number) >= 2**52:
        return number
    scale = 10.0**places
    rounded = math.copysign(math.floor(abs(number) * scale + 0.5), number) / scale
    return rounded if places else int(rounded)


@function("floor(number)", "the next lower whole number", "floor(1.9) = 1")
def _floor(value: Any) -> int:
    lower: int = math.floor(as_number(value))
    return lower


@function("ceil(number)", "the next higher whole number", "ceil(1.1) = 2")
def _ceil(value: Any) -> int:
    higher: int = math.ceil(as_number(value))
    return higher


@function("abs(number)", "without its sign", "abs(-2) = 2")
def _abs(value: Any) -> Any:
    return abs(as_number(value))


@function("sum(list)", "the sum of the numbers, without nulls", "sum([1, 2.5, null]) = 3.5")
def _sum(values: Any) -> Any:
    total: Any = 0
    plus = arithmetic("+")
    for value in numbers(as_list(values)):
        total = plus(total, value)
    return total


@function("avg(list)", "the average, null of none", "avg([1, 2, 3]) = 2")
def _avg(values: Any) -> Any:
    found = numbers(as_list(values))
    return arithmetic("/")(_sum(found), len(found)) if found else None


def _most(values: Any, symbol: str) -> Any:
    best = None
    for value in as_list(values):
        if value is not None and (best is None or COMPARISONS[symbol](value, best)):
            best = value
    return best


@function("min(list)", "the least element, null of none", "min([3, 1, 2]) = 1")
def _min(values: Any) -> Any:
    return _most(values, "<")


@function("max(list)", "the greatest element, null of none", "max(['a', 'c', 'b']) = 'c'")
def _max(values: Any) -> Any:
    return _most(values, ">")


@function("sort(list)", "the elements in ascending order, without nulls", "sort([2, 1]) = [1, 2]")
def _sort(values: Any) -> list[Any]:
    found = [value for value in as_list(values) if value is not None]
    if not (all(map(is_number, found)) or all(isinstance(value, str) for value in found)):
        kinds = " and ".join(sorted({kind_of(value) for value in found}))
        raise ExpressionError(f"sorts numbers or texts, given {kinds}")
    return sorted(found)
