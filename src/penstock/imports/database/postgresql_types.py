"""The types of PostgreSQL as Arrow's, and the form in which their values are asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from penstock.imports.database.text_columns import decimal_type

_NUMERIC = 1700
_TYPES = {
    16: pa.bool_(),
    17: pa.binary(),
    20: pa.int64(),
    21: pa.int16(),
    23: pa.int32(),
    26: pa.int64(),
    700: pa.float32(),
    701: pa.float64(),
    1082: pa.date32(),
    1114: pa.timestamp("us"),
    1184: pa.timestamp("us", "UTC"),
}
# Those of other types (enumerations, ranges ...) have to be asked for.
_ARRAYS = {
    1000: 16, 1001: 17, 1005: 21, 1007: 23, 1016: 20, 1021: 700, 1022: 701, 1182: 1082, 1115: 1114,
    1185: 1184, 1231: _NUMERIC, 1009: 25, 1014: 1042, 1015: 1043, 2951: 2950, 199: 114, 3807: 3802,
}  # fmt: skip
# From char, name and text to uuid and jsonb: what is a text here and is not an array.
_TEXTS = {18, 19, 25, 114, 142, 650, 829, 790, 869, 1042, 1043, 1083, 1186, 1266, 2950, 3802}
KNOWN = {*_TYPES, *_ARRAYS, *_TEXTS, _NUMERIC}
"""The types of which it is known whether they are arrays."""


def arrow_type(oid: int, precision: int | None, scale: int | None) -> pa.DataType:
    """Return the type for the values of a column; whatever Arrow has no type for is text.

    A number without a declared precision has any number of digits: text.

    >>> arrow_type(1700, 10, 2), arrow_type(1700, None, None), arrow_type(1007, None, None)
    (Decimal128Type(decimal128(10, 2)), DataType(string), ListType(list<item: int32>))
    """
    if oid in _ARRAYS:
        return pa.list_(arrow_type(_ARRAYS[oid], precision, scale))
    if oid == _NUMERIC:
        return decimal_type(precision or 0, scale or 0)
    return _TYPES.get(oid, pa.string())


def declared(column: Any, arrays: Mapping[int, int]) -> pa.DataType:
    """Return the type of a column of psycopg's description; `arrays` has those that are not known."""
    if column.type_code in arrays:
        return pa.list_(arrow_type(arrays[column.type_code], None, None))
    if column.type_code not in (_NUMERIC, 1231):
        return arrow_type(column.type_code, None, None)
    # psycopg gives the digits of numbers, but not of arrays of them.
    modifier = column._fmod
    if modifier < 4:
        return arrow_type(column.type_code, None, None)
    modifier -= 4
    return arrow_type(column.type_code, modifier >> 16, modifier & 0x7FF)


def expression(name: str, type_: pa.DataType) -> str:
    """Return what to select for a quoted column, so that `text_column` can read it."""
    return f"to_json({name}::text[])" if pa.types.is_list(type_) else name
