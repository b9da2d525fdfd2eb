"""Whether a pattern of topics fits a topic, for checks of definitions: in linear time.

Python's own regular expressions need exponential time for a pattern as `^(a+)+$`, and a server checks
definitions of others.
"""

from __future__ import annotations


def surely_fits(pattern: str, topic: str) -> bool:
    """Return whether a pattern fits all of a topic's name, as RE2 reads it.

    A pattern that RE2 does not read (look-around, back references) is not sure to fit anything.

    >>> surely_fits("^orders-.*", "orders-7"), surely_fits("^orders", "orders-7")
    (True, False)
    >>> surely_fits("^(a+)+$", "a" * 40 + "b"), surely_fits("^(?!x).*", "orders")
    (False, False)
    """
    try:
        import pyarrow as pa  # noqa: PLC0415 - an extra
        from pyarrow import compute  # noqa: PLC0415
    except ModuleNotFoundError:
        return False
    try:
        found = compute.match_substring_regex(pa.scalar(topic), pattern=rf"\A(?:{pattern})\z")
    except pa.ArrowException:
        return False
    return bool(found.as_py())
