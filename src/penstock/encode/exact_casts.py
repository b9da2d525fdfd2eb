"""Decimals and times in the scale or unit of a schema: every digit is kept, or the row is refused."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.encode.column_bytes import Encode, numbers, refuse_where
from penstock.errors import RefusedError

_MICROSECONDS = {"s": 1_000_000, "ms": 1000, "us": 1}
_NANOSECOND_LIMIT = np.iinfo(np.int64).max // 1000


def exact_times(unit: str, path: str) -> Encode:
    """Return the conversion of timestamps in microseconds, as Spark has them, to numbers of a unit.

    >>> exact_times("ms", "at")(pa.array([5000], pa.timestamp("us"))).to_pylist()
    [5]
    """

    def convert(column: pa.Array) -> pa.Array:
        values = numbers(column.cast(pa.int64()))
        if unit == "ns":
            bad = np.abs(values) > _NANOSECOND_LIMIT
            refuse_where(bad, column, path, "is beyond the range of nanoseconds in 64 bits")
            return pa.array(values * 1000)
        width = _MICROSECONDS[unit]
        refuse_where(values % width != 0, column, path, f"is finer than the schema's unit, {unit}")
        return pa.array(values // width)

    return convert


def exact_decimals(precision: int, scale: int, path: str) -> Encode:
    """Return the conversion of decimals to a precision and a scale.

    >>> from decimal import Decimal
    >>> exact_decimals(5, 2, "price")(pa.array([Decimal("1.5")])).to_pylist()
    [Decimal('1.50')]
    """
    reason = f"is not a decimal({precision},{scale})"
    return exactly(pa.decimal128(precision, scale), path, reason)


def exactly(wanted: pa.DataType, path: str, reason: str) -> Encode:
    """Return the cast of decimals to another type without a loss."""

    def convert(column: pa.Array) -> pa.Array:
        try:
            return column.cast(wanted)
        except pa.ArrowInvalid:
            fits = [_fits(column[at], wanted) for at in range(len(column))]
        refuse_where(~np.array(fits), column, path, reason)
        raise RefusedError(f"column {path!r} has a value that {reason}")

    return convert


def _fits(value: pa.Scalar, wanted: pa.DataType) -> bool:
    try:
        pc.cast(value, wanted)
    except pa.ArrowInvalid:
        return False
    return True
