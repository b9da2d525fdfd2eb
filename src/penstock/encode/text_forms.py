"""Columns of single values as text: numbers, dates and times in the forms that other programs read."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.encode.column_bytes import byte_lengths, bytes_of, fixed_width

_DATE = len("2024-01-01")
Texts = Callable[[pa.Array], pa.Array]


def texts_of(type_: pa.DataType) -> Texts | None:
    """Return the conversion of a column to texts; None for bytes and nested values.

    >>> texts_of(pa.timestamp("us", "UTC"))(pa.array([0], pa.timestamp("us", "UTC"))).to_pylist()
    ['1970-01-01T00:00:00.000000Z']
    """
    if pa.types.is_timestamp(type_):
        return _moments
    if pa.types.is_string(type_):
        return lambda column: column
    plain = (
        pa.types.is_boolean,
        pa.types.is_integer,
        pa.types.is_floating,
        pa.types.is_decimal,
        pa.types.is_date,
    )
    return _cast if any(is_type(type_) for is_type in plain) else None


def base64_texts(column: pa.Array) -> pa.Array:
    """Return bytes in base64, the form in which JSON and CSV have them.

    >>> base64_texts(pa.array([b"\\xff"], pa.binary())).to_pylist()
    ['/w==']
    """
    return pa.array([b64encode(data).decode() for data in column.to_pylist()], pa.string())


def _cast(column: pa.Array) -> pa.Array:
    return column.cast(pa.string())


def _moments(column: pa.Array) -> pa.Array:
    if column.type.tz != "UTC":
        return pc.replace_substring(column.cast(pa.string()), " ", "T", max_replacements=1)
    # Several times faster in Arrow than the cast of times with a zone.
    plain = column.cast(pa.timestamp(column.type.unit)).cast(pa.string())
    if (same := _of_one_width(plain)) is not None:
        return same
    return pc.binary_join_element_wise(
        pc.replace_substring(plain, " ", "T", max_replacements=1), "Z", ""
    )


def _of_one_width(plain: pa.Array) -> pa.Array | None:
    """Return times with T and Z where all are as long as the first, as those of our centuries are."""
    data = bytes_of(plain)
    width, left = divmod(len(data), len(plain) or 1)
    if left or plain.null_count or width <= _DATE or (byte_lengths(plain) != width).any():
        return None
    times = np.empty((len(plain), width + 1), np.uint8)
    times[:, :width] = data.reshape(-1, width)
    if (times[:, _DATE] != ord(" ")).any():  # before the year 0, or after 9999
        return None
    times[:, _DATE], times[:, width] = ord("T"), ord("Z")
    return fixed_width(times).cast(pa.string())
