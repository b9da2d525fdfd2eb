"""DOLPHINDB: the binary form that DolphinDB itself writes, so that it can be on the other end.

One message is one object: a scalar, vector, pair, matrix, set, dictionary or table.

Which Arrow type the vectors (and columns) of a type become, and which Python class its scalars:

| DolphinDB | Arrow | Python scalar |
|---|---|---|
| VOID | null | None |
| BOOL | bool | bool |
| CHAR, SHORT, INT, LONG | int8, int16, int32, int64 | `Char`, `Short`, `Int`, int |
| FLOAT, DOUBLE | float32, float64 | `Float`, float |
| DATE | date32 | date |
| MONTH | date32, the first day (*) | `Month` |
| TIME, SECOND | time32[ms], time32[s] | `Time`, `Second` |
| MINUTE | time32[s] (*) | `Minute` |
| DATETIME, TIMESTAMP | timestamp[s], timestamp[ms] | `DateTime`, `Timestamp` |
| DATEHOUR, DATEMINUTE | timestamp[s] (*) | `DateHour`, `DateMinute` |
| NANOTIME | time64[ns] | time; `NanoTime` where it has nanoseconds |
| NANOTIMESTAMP | timestamp[ns] | datetime; numpy.datetime64 where it has nanoseconds |
| STRING | string | str |
| SYMBOL | dictionary of string | `Symbol` |
| BLOB | binary | bytes |
| UUID | arrow.uuid | UUID |
| IPADDR | fixed_size_binary(16), network order (*) | IPv4Address, IPv6Address |
| INT128 | fixed_size_binary(16), as the digits stand (*) | `Int128` |
| COMPLEX, POINT | fixed_size_list of two float64 (*) | complex, `Point` |
| DURATION | fixed_size_list of int32: count, unit (*) | `Duration` |
| DECIMAL32, 64, 128 | decimal128 with 9, 18, 38 digits | `Decimal32`, `Decimal64`, `Decimal128` |
| array vector | list of the type | - |
| ANY | in a table: binary, each item an object (*) | `AnyVector`, a list |

(*) as an extension type, `WireType(name)`: `array.type.dolphindb` is the name, `array.storage` the plain
Arrow array, and `to_pylist()` gives the Python scalars. Everything that was read is written again as
the same type. Python's own classes are written as the type beside which they stand; Decimal as the
narrowest decimal that holds it, numpy scalars as the type of their width or unit.

The other forms are `Pair`, `Matrix`, `ValueSet` and `Dictionary`; a two-dimensional numpy array is
written as a matrix, a Python set as a set, a mapping as a dictionary, a list of mixed values as ANY.

DolphinDB has no null beside the empty text and the empty BLOB: both are read as empty. NaN is null. A
value that DolphinDB would take for null (the smallest INT, ...) is an error when it is written.
"""

from __future__ import annotations

from typing import Any

from penstock.formats.dolphindb.containers import AnyVector, Dictionary, Matrix, Pair, ValueSet
from penstock.formats.dolphindb.extension import WireType
from penstock.formats.dolphindb.reading import read_object
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
from penstock.formats.dolphindb.writing import write_object


class DolphinDB:
    """Scalars, vectors, tables and the rest, with their types and nulls, as DolphinDB writes them.

    >>> DolphinDB().encode(Int(7)).hex()
    '040007000000'
    >>> DolphinDB().decode(bytes.fromhex("0401020000000100000001000000 00000080")).to_pylist()
    [1, None]
    """

    name = "dolphindb"

    def encode(self, value: Any, topic: str = "") -> bytes:  # noqa: ARG002
        """Give the bytes of a value."""
        return write_object(value)

    def decode(self, data: bytes, topic: str = "") -> Any:  # noqa: ARG002
        """Give the value of the bytes of one object."""
        return read_object(data)


__all__ = [
    "AnyVector",
    "Char",
    "DateHour",
    "DateMinute",
    "DateTime",
    "Decimal32",
    "Decimal64",
    "Decimal128",
    "Dictionary",
    "DolphinDB",
    "Duration",
    "Float",
    "Int",
    "Int128",
    "Matrix",
    "Minute",
    "Month",
    "NanoTime",
    "Null",
    "Pair",
    "Point",
    "Second",
    "Short",
    "Symbol",
    "Time",
    "Timestamp",
    "ValueSet",
    "WireType",
]
