"""What operators do with values: null as in SQL, no silent conversion, no number without bounds."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from datetime import datetime
from functools import lru_cache
from math import fmod, isfinite
from typing import Any

from penstock.flows.expressions.expression_error import ExpressionError
from penstock.flows.expressions.value_text import kind_of, text_of

_MOST_BITS = 1024
_ORDERED = (str, bytes, datetime)


def is_number(value: Any) -> bool:
    """Return whether a value is a number; true and false are not.

    >>> is_number(1.5), is_number(True)
    (True, False)
    """
    return type(value) is int or type(value) is float


def _bounded(value: Any, symbol: str) -> Any:
    if type(value) is float:
        if not isfinite(value):
            raise ExpressionError(f"the result of {symbol} is not a finite number")
    elif value.bit_length() > _MOST_BITS:
        raise ExpressionError(f"the result of {symbol} has more than {_MOST_BITS} bits")
    return value


def _divided(left: Any, right: Any) -> Any:
    if right == 0:
        raise ExpressionError("division by zero")
    if type(left) is int and type(right) is int and left % right == 0:
        return left // right
    return left / right


def _rest(left: Any, right: Any) -> Any:
    """Return the rest of a division, with the sign of the dividend, as in SQL."""
    if right == 0:
        raise ExpressionError("division by zero")
    if type(left) is int and type(right) is int:
        rest = abs(left) % abs(right)
        return -rest if left < 0 else rest
    return fmod(left, right)


ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _divided,
    "%": _rest,
}
"""The operators over two numbers, whatever the result is."""


def arithmetic(symbol: str) -> Callable[[Any, Any], Any]:
    """Return an arithmetic operator over numbers; null with null.

    >>> arithmetic("/")(6, 3), arithmetic("/")(1, 2), arithmetic("+")(None, 1)
    (2, 0.5, None)
    """
    compute = ARITHMETIC[symbol]

    def apply(left: Any, right: Any) -> Any:
        if left is None or right is None:
            return None
        if not (is_number(left) and is_number(right)):
            wrong = right if is_number(left) else left
            hint = "; texts are joined with ||" if symbol == "+" and isinstance(wrong, str) else ""
            raise ExpressionError(f"{symbol} takes numbers, given {kind_of(wrong)}{hint}")
        try:
            return _bounded(compute(left, right), symbol)
        except OverflowError:
            raise ExpressionError(f"the result of {symbol} is not a finite number") from None

    return apply


def equals(left: Any, right: Any) -> bool | None:
    """Return whether two values are equal; null with null; values of different types are not equal.

    >>> equals(1, 1.0), equals(1, "1"), equals(1, True), equals(None, 1)
    (True, False, False, None)
    """
    if left is None or right is None:
        return None
    if isinstance(left, bool) is not isinstance(right, bool):
        return False
    return bool(left == right)


def _unequal(left: Any, right: Any) -> bool | None:
    same = equals(left, right)
    return None if same is None else not same


def ordered(left: Any, right: Any) -> bool:
    """Return whether two values have an order; raise where they have none."""
    if is_number(left) and is_number(right):
        return True
    if type(left) is type(right) and isinstance(left, _ORDERED):
        return True
    raise ExpressionError(f"{kind_of(left)} and {kind_of(right)} have no order")


def _order(compute: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool | None]:
    def apply(left: Any, right: Any) -> bool | None:
        if left is None or right is None:
            return None
        return ordered(left, right) and compute(left, right)

    return apply


PLAIN_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "==": operator.eq,
    "!=": operator.ne,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
"""The comparisons of two numbers or two texts."""

EQUALITIES = frozenset({"=", "==", "!=", "<>"})
_NULL_AWARE = {"=": equals, "==": equals, "!=": _unequal, "<>": _unequal}
COMPARISONS: dict[str, Callable[[Any, Any], bool | None]] = {
    symbol: _NULL_AWARE.get(symbol) or _order(compare)
    for symbol, compare in PLAIN_COMPARISONS.items()
}
"""The comparisons of any two values."""


def truth(value: Any, of: str) -> bool | None:
    """Return a condition's value: true, false or null; anything else is refused."""
    if value is None or isinstance(value, bool):
        return value
    raise ExpressionError(
        f"{of} takes true or false, given {kind_of(value)}; compare it, as in > 0"
    )


def contains(value: Any, among: Any) -> bool | None:
    """Return whether a value is among others, as `in` of SQL; also a key of an object, a part of a text.

    >>> contains(1, [1, None]), contains(2, [1, None]), contains("b", "abc"), contains("k", {"k": 1})
    (True, None, True, True)
    """
    if value is None or among is None:
        return None
    if isinstance(among, dict):
        return value in among if isinstance(value, str) else False
    if isinstance(among, str):
        if not isinstance(value, str):
            raise ExpressionError(f"only a text is in a text, given {kind_of(value)}")
        return value in among
    if not isinstance(among, list):
        raise ExpressionError(f"in takes a list, an object or a text, given {kind_of(among)}")
    results = [equals(value, each) for each in among]
    return True if True in results else None if None in results else False


def like(value: Any, pattern: Any) -> bool | None:
    """Return whether a text has the form of a pattern: `%` any characters, `_` one.

    >>> like("orders-7", "orders-_"), like("orders", "%d%x"), like("", "%")
    (True, False, True)
    """
    if value is None or pattern is None:
        return None
    for given in (value, pattern):
        if not isinstance(given, str):
            raise ExpressionError(f"like takes texts, given {kind_of(given)}")
    return _like(value, pattern)


def _like(value: str, pattern: str) -> bool:
    """Find the pieces between the % from left to right: no piece is ever searched for again."""
    pieces = _pieces(pattern)
    if len(pieces) == 1:
        return pieces[0].fullmatch(value) is not None
    if not (first := pieces[0].match(value)):
        return False
    at = first.end()
    for piece in pieces[1:-1]:
        if not (found := piece.search(value, at)):
            return False
        at = found.end()
    last = len(pattern.rpartition("%")[2])
    start = len(value) - last
    return start >= at and pieces[-1].fullmatch(value, start) is not None


@lru_cache(maxsize=256)
def _pieces(pattern: str) -> tuple[re.Pattern[str], ...]:
    parts = ("".join("." if c == "_" else re.escape(c) for c in p) for p in pattern.split("%"))
    return tuple(re.compile(part, re.DOTALL) for part in parts)


def joined(values: list[Any]) -> str | None:
    """Return the texts of values as one, null if one of them is null.

    >>> joined(["a", 1, True]), joined(["a", None])
    ('a1true', None)
    """
    if None in values:
        return None
    return "".join(value if isinstance(value, str) else text_of(value) for value in values)
