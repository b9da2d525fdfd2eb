"""Google's own message types that stand for one value: times, dates, durations and JSON."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf import json_format
from google.protobuf.struct_pb2 import ListValue, Struct, Value

from penstock.encode.column_bytes import Encode, joined, numbers, refuse_where, varints
from penstock.encode.exact_casts import exact_decimals
from penstock.errors import RefusedError

TIMESTAMP, DATE = "google.protobuf.Timestamp", "google.type.Date"
_MICROSECONDS = 1_000_000
_DURATION = "google.protobuf.Duration"
_NANOS = pa.scalar(1_000_000_000, pa.decimal128(10, 0))
_MOST_SECONDS = 315_576_000_000
_DOCUMENTS: dict[str, Any] = {
    each.DESCRIPTOR.full_name: each for each in (Struct, Value, ListValue)
}
_SCALARS = ("Bool", "Int32", "UInt32", "Int64", "UInt64", "Float", "Double", "String", "Bytes")
ONE_FIELD = {"google.protobuf.FieldMask", *(f"google.protobuf.{name}Value" for name in _SCALARS)}
"""Messages whose only field is the column."""


def well_known_encode(full_name: str, type_: pa.DataType, path: str) -> Encode | None:
    """Return the encode of single values into Google's messages; None for other messages and types.

    >>> well_known_encode(DATE, pa.date32(), "day")(pa.array([0], pa.date32())).to_pylist()
    [b'\\x08\\xb2\\x0f\\x10\\x01\\x18\\x01']
    """
    if full_name == TIMESTAMP and pa.types.is_timestamp(type_) and type_.tz:
        return _timestamps
    if full_name == DATE and pa.types.is_date(type_):
        return _dates
    if full_name == _DURATION and pa.types.is_decimal(type_):
        return _durations(path)
    if full_name in _DOCUMENTS and pa.types.is_string(type_):
        return _documents(_DOCUMENTS[full_name], path)
    return None


def _timestamps(column: pa.Array) -> pa.Array:
    values = numbers(column.cast(pa.int64()))
    seconds, rest = np.divmod(values, _MICROSECONDS)
    return joined(_number(b"\x08", seconds), _number(b"\x10", rest * 1000))


def _dates(column: pa.Array) -> pa.Array:
    parts = (pc.year(column), pc.month(column), pc.day(column))
    tags = (b"\x08", b"\x10", b"\x18")
    return joined(*(_number(tag, numbers(part)) for tag, part in zip(tags, parts, strict=True)))


def _durations(path: str) -> Encode:
    convert = exact_decimals(21, 9, path)

    def encode(column: pa.Array) -> pa.Array:
        exact = convert(column)
        whole = pc.trunc(exact)
        seconds = numbers(whole.cast(pa.int64()))
        bad = np.abs(seconds) > _MOST_SECONDS
        refuse_where(bad, column, path, f"is more than the {_MOST_SECONDS} seconds of a Duration")
        rest = pc.multiply(pc.subtract(exact, whole).cast(pa.decimal128(10, 9)), _NANOS)
        return joined(_number(b"\x08", seconds), _number(b"\x10", numbers(rest.cast(pa.int64()))))

    return encode


def _documents(message: Any, path: str) -> Encode:
    """Return the encode of JSON texts, which Google's own library parses."""

    def encode(column: pa.Array) -> pa.Array:
        return pa.array(
            [_parsed(text, message(), path) for text in column.to_pylist()], pa.binary()
        )

    return encode


def _parsed(text: str, message: Any, path: str) -> bytes:
    try:
        return bytes(json_format.Parse(text, message).SerializeToString(deterministic=True))
    except json_format.ParseError as error:
        raise RefusedError(f"column {path!r}: {text!r:.80} is not its JSON: {error}") from error


def _number(tag: bytes, values: npt.NDArray[Any]) -> pa.Array:
    """Return a field with whole numbers; zero is left out."""
    written = joined(tag, varints(values.astype(np.int64).view(np.uint64)))
    return pc.if_else(pa.array(values == 0), pa.scalar(b""), written)
