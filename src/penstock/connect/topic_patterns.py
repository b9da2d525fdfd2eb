r"""Patterns for names of topics, in linear time: those of RE2, as Arrow has it.

Python's own need exponential time for a pattern as `(a+)+b`, and a configuration that is checked may be
anyone's. Connectors run with Java's patterns; RE2 reads the same, except look-around and back references.
"""

from __future__ import annotations

import re
from typing import Any

from penstock.errors import missing_extra

_REFERENCE = re.compile(r"\$(\d)")


def matches(pattern: str, topic: str) -> bool:
    """Return whether a pattern is the whole name of a topic; raise ValueError where it cannot be read.

    >>> matches("orders.*", "orders-2"), matches("(a+)+b", "a" * 10_000)
    (True, False)
    """
    return bool(_called("match_substring_regex", topic, pattern=_whole(pattern)))


def routed(pattern: str, replacement: str, topic: str) -> str:
    r"""Return a topic as RegexRouter renames it; raise ValueError where that is not known.

    >>> routed("shop\\.(.*)", "$1_raw", "shop.orders"), routed("a", "b", "orders")
    ('orders_raw', 'orders')
    """
    template = _REFERENCE.sub(r"\\\1", replacement)
    if "$" in template:
        raise ValueError(f"{replacement!r} names a group otherwise than by one digit")
    if not matches(pattern, topic):
        return topic
    return str(
        _called("replace_substring_regex", topic, pattern=_whole(pattern), replacement=template)
    )


def _whole(pattern: str) -> str:
    return rf"\A(?:{pattern})\z"


def _called(name: str, topic: str, **options: Any) -> Any:
    try:
        import pyarrow as pa  # noqa: PLC0415 - an extra
        from pyarrow import compute  # noqa: PLC0415
    except ModuleNotFoundError as missing:
        raise missing_extra(missing, "a connector") from missing
    try:
        return getattr(compute, name)(pa.scalar(topic, pa.string()), **options).as_py()
    except (pa.ArrowException, UnicodeEncodeError) as error:
        raise ValueError(
            f"the pattern {options['pattern'][:80]!r} cannot be read: {error}"
        ) from None
