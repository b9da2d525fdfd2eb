"""DOLPHINDB: DolphinDB's own binary format, for exchanging values with it.

One message is one object: a scalar, vector, pair, matrix, set, dictionary or table.

docs/formats.md has the table of types: the Arrow type of a vector or column, and the Python class of a
scalar. Types that Arrow lacks are extension types, `WireType(name)`: `array.type.dolphindb` is the name,
`array.storage` the plain Arrow array, and `to_pylist()` gives the Python scalars.

The other forms are `Pair`, `Matrix`, `ValueSet` and `Dictionary`.
"""

from __future__ import annotations

from typing import Any

from penstock.formats.dolphindb.containers import AnyVector, Dictionary, Matrix, Pair, ValueSet
from penstock.formats.dolphindb.dolphindb_types import WireType
from penstock.formats.dolphindb.scalars import (
    Char,
    DateHour,
    DateMinute,
    DateTime,
    Decimal32,
    Decimal64,
    Decimal128,
    Duration,
    Float,
    Int,
    Int128,
    Minute,
    Month,
    NanoTime,
    Null,
    Point,
    Second,
    Short,
    Symbol,
    Time,
    Timestamp,
)
from penstock.formats.dolphindb.wire_reading import read_object
from penstock.formats.dolphindb.wire_writing import write_object


class DolphinDB:
    """Scalars, vectors, tables and the rest, with their types and nulls, as DolphinDB writes them.

    >>> DolphinDB().encode(Int(7)).hex()
    '040007000000'
    >>> DolphinDB().decode(bytes.fromhex("0401020000000100000001000000 00000080")).to_pylist()
    [1, None]
    """

    name = "dolphindb"

    def encode(self, value: Any, topic: str = "") -> bytes:  # noqa: ARG002
        """Return the bytes of a value."""
        return write_object(value)

    def decode(self, data: bytes, topic: str = "") -> Any:  # noqa: ARG002
        """Return the value of the bytes of one object."""
        return read_object(data)


__all__ = [
    "AnyVector", "Char", "DateHour", "DateMinute", "DateTime", "Decimal32", "Decimal64",
    "Decimal128", "Dictionary", "DolphinDB", "Duration", "Float", "Int", "Int128", "Matrix",
    "Minute", "Month", "NanoTime", "Null", "Pair", "Point", "Second", "Short", "Symbol", "Time",
    "Timestamp", "ValueSet", "WireType",
]  # fmt: skip
