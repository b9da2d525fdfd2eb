"""Avro's primitive and logical types as encodes of columns: exact, or the row is refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.encode.column_bytes import (
    Bytes,
    Encode,
    as_bytes,
    byte_lengths,
    fixed_width,
    joined,
    numbers,
    of_lengths,
    refuse_where,
    required,
    varints,
    zigzag,
)
from penstock.encode.exact_casts import exact_decimals, exact_times
from penstock.encode.primitive_encodes import real_numbers, uuids, whole_numbers
from penstock.formats.avro.logical import DURATION, is_duration, logical_of

_INT = np.iinfo(np.int32)
_UNITS = {"millis": "ms", "micros": "us", "nanos": "ns"}
# The type of Avro that has exactly the values of a type of Arrow.
_OWN: list[tuple[Callable[[pa.DataType], bool], str, str | None]] = [
    (pa.types.is_boolean, "boolean", None),
    (pa.types.is_int64, "long", None),
    (pa.types.is_signed_integer, "int", None),
    (pa.types.is_float32, "float", None),
    (pa.types.is_float64, "double", None),
    (pa.types.is_string, "string", None),
    (pa.types.is_binary, "bytes", None),
    (pa.types.is_date32, "int", "date"),
    (pa.types.is_timestamp, "long", "timestamp-micros"),
    (pa.types.is_struct, "record", None),
    (pa.types.is_map, "map", None),
    (pa.types.is_list, "array", None),
]


def fits_exactly(type_: pa.DataType, schema: Any) -> bool:
    """Return whether a branch of a union is the one of a column's own type.

    >>> fits_exactly(pa.int64(), "long"), fits_exactly(pa.int64(), "int")
    (True, False)
    """
    kind = schema["type"] if isinstance(schema, Mapping) else schema
    logical = schema.get("logicalType") if isinstance(schema, Mapping) else None
    own = next(((kind, word) for is_type, kind, word in _OWN if is_type(type_)), None)
    return (kind, logical) == own


def scalar_encode(type_: pa.DataType, schema: Any, kind: str, path: str) -> Encode | None:
    """Return the encode of a column by a schema that is not nested; None where the type does not fit."""
    # An unknown logical type, or one of another type, is the plain type.
    logical = str(schema["logicalType"]) if logical_of(schema) else ""
    if pa.types.is_decimal(type_):
        return _decimals(schema, kind, path) if logical == "decimal" else None
    if pa.types.is_timestamp(type_) or pa.types.is_date(type_):
        return _moments(type_, kind, logical, path)
    if kind == "enum":
        return _symbols(schema, path) if pa.types.is_string(type_) else None
    if kind == "fixed":
        return _fixed_encode(type_, schema, logical, path)
    if kind == "string" and logical == "uuid" and pa.types.is_string(type_):
        return lambda column: with_own_length(uuids(path)(column))
    return _primitive(type_, kind, path) if logical != "decimal" else None


def _fixed_encode(type_: pa.DataType, schema: Any, logical: str, path: str) -> Encode | None:
    if is_duration(schema) and pa.types.is_struct(type_):
        return _durations(type_, path)
    if logical == "uuid" and pa.types.is_string(type_):
        return _uuid_bytes(path)
    takes = pa.types.is_binary(type_) and logical != "decimal"
    return _fixed(schema["size"], path) if takes else None


def _primitive(type_: pa.DataType, kind: str, path: str) -> Encode | None:
    whole = pa.types.is_signed_integer(type_)
    real = whole or pa.types.is_floating(type_)
    choices: dict[str, tuple[bool, Encode]] = {
        "boolean": (pa.types.is_boolean(type_), _booleans),
        "int": (whole, _ints(path)),
        "long": (whole, _longs),
        "float": (real, real_numbers("<f4", "float", path)),
        "double": (real, real_numbers("<f8", "double", path)),
        "string": (pa.types.is_string(type_), with_own_length),
        "bytes": (pa.types.is_binary(type_), with_own_length),
    }
    fits, encode = choices.get(kind, (False, with_own_length))
    return encode if fits else None


def with_own_length(column: pa.Array) -> pa.Array:
    """Return texts or bytes with their length before them.

    >>> with_own_length(pa.array(["é"])).to_pylist()
    [b'\\x04\\xc3\\xa9']
    """
    return joined(varints(zigzag(byte_lengths(column))), as_bytes(column))


def _booleans(column: pa.Array) -> pa.Array:
    return fixed_width(numbers(column).astype(np.uint8).reshape(-1, 1))


def _longs(column: pa.Array) -> pa.Array:
    return varints(zigzag(numbers(column)))


def _ints(path: str) -> Encode:
    def encode(column: pa.Array) -> pa.Array:
        values = numbers(column)
        bad = (values < _INT.min) | (values > _INT.max)
        refuse_where(bad, column, path, "is beyond the 32 bits of Avro's int")
        return varints(zigzag(values))

    return encode


def _symbols(schema: Any, path: str) -> Encode:
    symbols = pa.array(schema["symbols"], pa.string())

    def encode(column: pa.Array) -> pa.Array:
        places = pc.index_in(column, symbols)
        refuse_where(
            numbers(places.is_null()), column, path, f"is not a symbol of {schema['name']}"
        )
        return _longs(places)

    return encode


def _fixed(size: int, path: str) -> Encode:
    def encode(column: pa.Array) -> pa.Array:
        bad = byte_lengths(column) != size
        refuse_where(bad, column, path, f"does not have the {size} bytes of the schema")
        return column

    return encode


def _uuid_bytes(path: str) -> Encode:
    texts = uuids(path)

    def encode(column: pa.Array) -> pa.Array:
        digits = pc.replace_substring(texts(column).cast(pa.string()), "-", "")
        return pa.array([bytes.fromhex(each) for each in digits.to_pylist()], pa.binary())

    return encode


def _durations(type_: pa.DataType, path: str) -> Encode | None:
    fields = {field.name: field.type for field in type_}
    if fields.keys() != set(DURATION) or not all(map(pa.types.is_signed_integer, fields.values())):
        return None
    inner = [(name, f"{path}.{name}".lstrip(".")) for name in DURATION]
    parts = [(name, required(whole_numbers("<u4", "uint32", at), at)) for name, at in inner]
    return lambda rows: joined(*(part(rows.field(name)) for name, part in parts))


def _moments(type_: pa.DataType, kind: str, logical: str, path: str) -> Encode | None:
    if pa.types.is_date(type_):
        fits = kind == "int" and logical == "date"
        return (lambda column: _longs(column.cast(pa.int32()))) if fits else None
    prefix, _, unit = logical.rpartition("-")
    wanted = "timestamp" if type_.tz else "local-timestamp"
    if kind != "long" or prefix != wanted or unit not in _UNITS:
        return None
    convert = exact_times(_UNITS[unit], path)
    return lambda column: _longs(convert(column))


def _decimals(schema: Any, kind: str, path: str) -> Encode | None:
    precision, scale = schema.get("precision", 0), schema.get("scale", 0)
    if kind not in {"bytes", "fixed"} or not 0 < precision <= 38 or not 0 <= scale <= precision:
        return None
    convert = exact_decimals(precision, scale, path)
    if kind == "bytes":
        return lambda column: with_own_length(_shortest(convert(column)))
    size = schema["size"]
    return lambda column: _of_size(_big_endian(convert(column)), size, column, path)


def _big_endian(column: pa.Array) -> Bytes:
    """Return the 16 bytes of each decimal, the sign first."""
    raw = np.frombuffer(column.buffers()[1], np.uint8).reshape(-1, 16)
    return raw[column.offset : column.offset + len(column), ::-1]


def _shortest(column: pa.Array) -> pa.Array:
    """Return decimals without the bytes before them that only repeat the sign."""
    data, magnitude = _big_endian(column), _big_endian(pc.abs(column))
    unused = np.full(len(data), 15)
    for at in range(14, -1, -1):
        # A byte is needed if it has digits, or the next one would lose the sign.
        needed = (magnitude[:, at] != 0) | (magnitude[:, at + 1] >> 7 == 1)
        unused = np.where(needed, at, unused)
    kept = np.arange(16) >= unused[:, None]
    return of_lengths(data[kept], 16 - unused)


def _of_size(data: Bytes, size: int, column: pa.Array, path: str) -> pa.Array:
    """Return numbers in a fixed number of bytes."""
    sign = (data[:, :1] >> 7) * np.uint8(255)
    if size >= 16:
        return fixed_width(np.concatenate([np.repeat(sign, size - 16, axis=1), data], axis=1))
    lost = (data[:, : 16 - size] != sign).any(axis=1) | (
        (data[:, 16 - size] ^ sign[:, 0]) >> 7 == 1
    )
    refuse_where(lost, column, path, f"does not fit into the {size} bytes of the schema")
    return fixed_width(data[:, 16 - size :])
