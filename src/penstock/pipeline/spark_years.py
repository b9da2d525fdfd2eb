"""Dates and times in the years that Spark knows."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

_FIRST_DAY, _LAST_DAY = -719162, 2932896
_DAY = 86_400_000_000


def days_in_years(days: pa.Array) -> pa.Array:
    """Return the dates, or raise where one is not in the years that Spark knows."""
    _need_between(days.view(pa.int32()), _FIRST_DAY, _LAST_DAY)
    return days


def moments_in_years(moments: pa.Array) -> pa.Array:
    """Return the times in microseconds, or raise where one is not in the years that Spark knows."""
    _need_between(moments.view(pa.int64()), _FIRST_DAY * _DAY, (_LAST_DAY + 1) * _DAY - 1)
    return moments


def _need_between(numbers: pa.Array, first: int, last: int) -> None:
    bounds = pc.min_max(numbers).as_py()
    if bounds["min"] is not None and not first <= bounds["min"] <= bounds["max"] <= last:
        raise ValueError("years are 0001 to 9999")
