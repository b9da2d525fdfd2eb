"""Values as StringConverter writes them: what Java's `toString` gives of them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.encode.column_bytes import (
    Encode,
    as_bytes,
    gathered,
    items_of,
    joined,
    optional,
    pairs_of,
    repeated,
    starts_of,
)
from penstock.encode.java_text import java_reals
from penstock.errors import ConfigError
from penstock.formats.connect.json_values import logical_name
from penstock.formats.connect.schema import DATE, DECIMAL, TIME, TIMESTAMP, Schema, Type

_NULL = b"null"


def connect_text_encode(schema: Schema | None, path: str = "") -> Encode:
    """Return the encode of a column of a schema as text; without a schema the column is text already.

    >>> from penstock.formats.connect import INT64, STRING, SchemaBuilder
    >>> schema = SchemaBuilder.struct().field("id", INT64).field("note", STRING.or_null()).build()
    >>> encode = connect_text_encode(schema)
    >>> encode(pa.array([{"id": 1, "note": None}, {"id": 2, "note": "b"}])).to_pylist()
    [b'Struct{id=1}', b'Struct{id=2,note=b}']
    """
    if schema is None or schema.type is Type.STRING:
        return as_bytes
    match schema.type:
        case Type.STRUCT:
            return _struct(schema, path)
        case Type.ARRAY:
            return _array(schema, path)
        case Type.MAP:
            return _map(schema, path)
    return _scalar(schema, path)


def _scalar(schema: Schema, path: str) -> Encode:
    kind = logical_name(schema)
    if kind in (DATE, TIME, TIMESTAMP):
        return _moments(kind)
    if kind == DECIMAL:
        return lambda column: as_bytes(column.cast(pa.string()))
    if schema.type is Type.BYTES:
        raise ConfigError(
            f"StringConverter has no text for bytes ({path or 'the value'}): use ByteArrayConverter or "
            "JsonConverter"
        )
    if schema.type in (Type.FLOAT32, Type.FLOAT64):
        return lambda column: as_bytes(java_reals(column))
    return lambda column: as_bytes(column.cast(pa.string()))


def _moments(kind: str) -> Encode:
    """Return moments as java.util.Date prints them in UTC: Thu Jan 01 00:00:00 UTC 1970.

    Days before October 1582 are printed in today's calendar; Java prints those of the Julian one.
    """

    def encode(column: pa.Array) -> pa.Array:
        if kind == TIME:
            given = column.cast(pa.int64()).cast(pa.timestamp("ms"))
        else:
            given = column.cast(pa.timestamp("us"))
        seconds = pc.floor_temporal(given, unit="second").cast(pa.timestamp("s"))
        return as_bytes(pc.strftime(seconds, "%a %b %d %H:%M:%S UTC %Y", locale="C"))

    return encode


def _struct(schema: Schema, path: str) -> Encode:
    parts = []
    for each in schema.fields:
        name = b"," + each.name.encode() + b"="
        inner = connect_text_encode(each.schema, f"{path}.{each.name}".lstrip("."))
        parts.append(optional(_after(name, inner), b""))

    def encode(rows: pa.Array) -> pa.Array:
        if not parts:
            return repeated(b"Struct{}", len(rows))
        inside = joined(*(run(rows.field(at)) for at, run in enumerate(parts)))
        return joined(b"Struct{", pc.binary_replace_slice(inside, 0, 1, b""), b"}")

    return encode


def _array(schema: Schema, path: str) -> Encode:
    assert schema.values  # noqa: S101 - a schema is refused without
    item = optional(connect_text_encode(schema.values, f"{path}[]"), _NULL)

    def encode(lists: pa.Array) -> pa.Array:
        items, counts = items_of(lists)
        return joined(b"[", gathered(_separated(item(items), counts), counts), b"]")

    return encode


def _map(schema: Schema, path: str) -> Encode:
    assert schema.keys and schema.values  # noqa: S101 - a schema is refused without
    key = connect_text_encode(schema.keys, path)
    value = optional(connect_text_encode(schema.values, f"{path}[]"), _NULL)

    def encode(maps: pa.Array) -> pa.Array:
        keys, values, counts = pairs_of(maps)
        pairs = joined(key(keys), b"=", value(values))
        return joined(b"{", gathered(_separated(pairs, counts), counts), b"}")

    return encode


def _separated(items: pa.Array, counts: np.ndarray) -> pa.Array:
    first = np.zeros(len(items), bool)
    first[starts_of(counts)[:-1][counts > 0]] = True
    return joined(pc.if_else(pa.array(first), pa.scalar(b""), pa.scalar(b", ")), items)


def _after(name: bytes, encode: Encode) -> Encode:
    return lambda column: joined(name, encode(column))
