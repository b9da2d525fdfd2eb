r"""Patterns for names of topics, in linear time: those of RE2, as Arrow has it.

Python's own need exponential time for a pattern as `(a+)+b`, and a configuration that is checked may be
anyone's. Connectors run with Java's patterns; RE2 reads the same, except look-around and back references.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from penstock.errors import missing_extra

_REFERENCE = re.compile(r"\$(\d)")


def matches_any(pattern: str, topics: Sequence[str]) -> bool:
    """Return whether a pattern is the whole name of a topic; raise ValueError where it cannot be read.

    >>> matches_any("orders.*", ["a", "orders-2"]), matches_any("(a+)+b", ["a" * 10_000])
    (True, False)
    """
    return any(_called("match_substring_regex", topics, pattern=_whole(pattern)))


def routed(pattern: str, replacement: str, topics: Sequence[str]) -> list[str]:
    r"""Return topics as RegexRouter renames them; raise ValueError where that is not known.

    >>> routed("shop\\.(.*)", "$1_raw", ["shop.orders", "orders"])
    ['orders_raw', 'orders']
    """
    template = _REFERENCE.sub(r"\\\1", replacement)
    if "$" in template:
        raise ValueError(f"{replacement!r} names a group otherwise than by one digit")
    whole = _whole(pattern)
    return _called("replace_substring_regex", topics, pattern=whole, replacement=template)


def _whole(pattern: str) -> str:
    return rf"\A(?:{pattern})\z"


def _called(name: str, topics: Sequence[str], **options: Any) -> list[Any]:
    try:
        import pyarrow as pa  # noqa: PLC0415 - an extra
        from pyarrow import compute  # noqa: PLC0415
    except ModuleNotFoundError as missing:
        raise missing_extra(missing, "a connector") from missing
    try:
        found = getattr(compute, name)(pa.array(topics, pa.string()), **options).to_pylist()
    except (pa.ArrowException, UnicodeEncodeError) as error:
        raise ValueError(
            f"the pattern {options['pattern'][:80]!r} cannot be read: {error}"
        ) from None
    return list(found)
