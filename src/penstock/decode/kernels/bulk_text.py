"""Whole columns of text as dates, times and decimals: what the kernels of JSON and CSV share.

A column is refused as a whole, with a ValueError, when one text does not fit.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from penstock.decode.kernels.arrow_kernel import arrow_type
from penstock.pipeline.columns import Decimal
from penstock.pipeline.spark_years import days_in_years, moments_in_years

Bulk = Callable[[pa.Array], pa.Array]
_ZONED = re.compile(r"[T ].*(Z|[+-][0-9:]+)$")
_UTC, _LOCAL = pa.timestamp("us", tz="UTC"), pa.timestamp("us")


def bulk_date(column: pa.Array) -> pa.Array:
    """Return the dates of a column of text."""
    return days_in_years(column.cast(pa.date32()))


def bulk_timestamp(column: pa.Array) -> pa.Array:
    """Return the instants of a column of text; without a zone means UTC."""
    first = next((text.as_py() for text in column if text.is_valid), "")
    try:
        moments = column.cast(_UTC) if _ZONED.search(first) else column.cast(_LOCAL).cast(_UTC)
    except pa.ArrowInvalid:
        moments = _mixed_timestamp(column)
    return moments_in_years(moments)


def _mixed_timestamp(column: pa.Array) -> pa.Array:
    """Cast text with and without a zone, which Arrow cannot mix."""
    zoned = pc.match_substring_regex(column, _ZONED.pattern)
    nothing = pa.scalar(None, pa.string())
    instants = pc.if_else(zoned, column, nothing).cast(_UTC)
    return pc.coalesce(instants, pc.if_else(zoned, nothing, column).cast(_LOCAL).cast(_UTC))


def bulk_local_time(column: pa.Array) -> pa.Array:
    """Return the times without a zone of a column of text."""
    return moments_in_years(column.cast(_LOCAL))


def bulk_decimal(type_: Decimal) -> Bulk:
    """Return the conversion of a column of text to a decimal."""
    target = arrow_type(type_)
    # Wide enough that scaling a text of `longest` digits up cannot overflow unseen.
    width = 38 if 38 - type_.scale >= type_.precision + 2 else 76
    longest = width - type_.scale
    wide = (pa.decimal128 if width == 38 else pa.decimal256)(width, type_.scale)

    def convert(column: pa.Array) -> pa.Array:
        if pc.any(pc.greater(pc.binary_length(column), longest)).as_py():
            raise ValueError("a decimal has many digits")
        if pc.any(pc.match_substring(column, "e", ignore_case=True)).as_py():
            raise ValueError("a decimal has an exponent")
        return column.cast(wide).cast(target)

    return convert
