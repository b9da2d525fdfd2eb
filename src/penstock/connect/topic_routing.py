"""The names that the transform RegexRouter gives topics, known before a record is there."""

from __future__ import annotations

import re
from collections.abc import Sequence

from penstock.pipeline.topic_pattern import replaced

_REFERENCE = re.compile(r"\$(\d)")


def routed(pattern: str, replacement: str, topics: Sequence[str]) -> list[str]:
    r"""Return topics as RegexRouter renames them; raise ValueError where that is not known.

    Connectors run with Java's patterns; RE2 reads the same, except look-around and back references.

    >>> routed("shop\\.(.*)", "$1_raw", ["shop.orders", "orders"])
    ['orders_raw', 'orders']
    """
    template = _REFERENCE.sub(r"\\\1", replacement)
    if "$" in template:
        raise ValueError(f"{replacement!r} names a group otherwise than by one digit")
    return replaced(pattern, template, topics)
