"""Whether patterns fit names of topics, for checks of definitions: by RE2, in linear time.

Python's own regular expressions need exponential time for a pattern as `^(a+)+$`, and a server checks
definitions of others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.errors import MissingExtraError
from penstock.pipeline.arrow_regex import arrow_regex


def surely_fits(pattern: str, topic: str) -> bool:
    """Return whether a pattern fits all of a topic's name.

    A pattern that RE2 does not read (look-around, back references) is not sure to fit anything.

    >>> surely_fits("^orders-.*", "orders-7"), surely_fits("^orders", "orders-7")
    (True, False)
    >>> surely_fits("^(a+)+$", "a" * 40 + "b"), surely_fits("^(?!x).*", "orders")
    (False, False)
    """
    try:
        return fits_any(pattern, [topic])
    except (ValueError, MissingExtraError):
        return False


def fits_any(pattern: str, topics: Sequence[str]) -> bool:
    """Return whether a pattern is the whole name of a topic; raise ValueError where it cannot be read.

    >>> fits_any("orders.*", ["a", "orders-2"]), fits_any("(a+)+b", ["a" * 10_000])
    (True, False)
    """
    return any(_called("match_substring_regex", topics, pattern))


def replaced(pattern: str, template: str, topics: Sequence[str]) -> list[str]:
    r"""Return topics, those that a pattern fits as a template with `\1` for its first group.

    >>> replaced("shop\\.(.*)", r"\1_raw", ["shop.orders", "orders"])
    ['orders_raw', 'orders']
    """
    return _called("replace_substring_regex", topics, pattern, replacement=template)


def _called(name: str, topics: Sequence[str], pattern: str, **options: Any) -> list[Any]:
    whole = rf"\A(?:{pattern})\z"
    try:
        return list(arrow_regex(name, topics, "a pattern of topics", pattern=whole, **options))
    except ValueError as error:
        raise ValueError(f"the pattern {pattern[:80]!r} cannot be read: {error}") from None
