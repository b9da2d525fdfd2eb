"""Keys and values as JsonConverter writes them: with their schema, or the payload alone."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.encode.column_bytes import (
    Encode,
    as_bytes,
    gathered,
    items_of,
    joined,
    of_lengths,
    optional,
    pairs_of,
    repeated,
    required,
    separated,
)
from penstock.encode.java_text import jackson_document, jackson_texts, java_reals
from penstock.encode.text_forms import base64_texts
from penstock.formats.connect.arrow_types import arrow_type
from penstock.formats.connect.converter_options import ConverterOptions
from penstock.formats.connect.json_schemas import to_document
from penstock.formats.connect.json_values import logical_name
from penstock.formats.connect.schema import DATE, DECIMAL, TIMESTAMP, Schema, Type

_NULL = b"null"
_INTEGERS = (Type.INT8, Type.INT16, Type.INT32, Type.INT64)


def connect_json_encode(schema: Schema | None, options: ConverterOptions, path: str = "") -> Encode:
    """Return the encode of a column of a schema; without one the column is text of JSON.

    >>> from penstock.formats.connect import INT64, SchemaBuilder
    >>> schema = SchemaBuilder.struct().field("id", INT64).build()
    >>> encode = connect_json_encode(schema, ConverterOptions(form="json", schemas=False))
    >>> encode(pa.array([{"id": 1}])).to_pylist()
    [b'{"id":1}']
    """
    payload = as_bytes if schema is None else Payloads(options).encode(schema, path)
    if not options.schemas:
        return payload
    document = None if schema is None else to_document(schema)
    begin = b'{"schema":' + jackson_document(document).encode() + b',"payload":'
    return lambda column: joined(begin, payload(column), b"}")


class Payloads:
    """Encodes columns of schemas as payloads."""

    def __init__(self, options: ConverterOptions) -> None:
        self._options = options

    def encode(self, schema: Schema, path: str) -> Encode:
        """Return the encode of values that are not null."""
        match schema.type:
            case Type.STRUCT:
                return self._struct(schema, path)
            case Type.ARRAY:
                return self._array(schema, path)
            case Type.MAP:
                return self._map(schema, path)
        return self._scalar(schema)

    def nullable(self, schema: Schema | None, path: str) -> Encode:
        """Return the encode of values that may be null: the default, null, or a refusal."""
        assert schema is not None  # noqa: S101 - a schema is refused without
        encode = self.encode(schema, path)
        if self._options.replace_null and schema.default is not None:
            default = encode(pa.array([schema.default], arrow_type(schema)))[0].as_py()
            return optional(encode, default)
        return optional(encode, _NULL) if schema.optional else required(encode, path)

    def _struct(self, schema: Schema, path: str) -> Encode:
        names = [jackson_texts(pa.array([each.name]))[0].as_py() for each in schema.fields]
        parts = [
            _after(
                b"," + name + b":", self.nullable(each.schema, f"{path}.{each.name}".lstrip("."))
            )
            for name, each in zip(names, schema.fields, strict=True)
        ]

        def encode(rows: pa.Array) -> pa.Array:
            if not parts:
                return repeated(b"{}", len(rows))
            pieces = [run(rows.field(at)) for at, run in enumerate(parts)]
            return joined(pc.binary_replace_slice(joined(*pieces), 0, 1, b"{"), b"}")

        return encode

    def _array(self, schema: Schema, path: str) -> Encode:
        item = self.nullable(schema.values, f"{path}[]")

        def encode(lists: pa.Array) -> pa.Array:
            items, counts = items_of(lists)
            return joined(b"[", gathered(separated(item(items), counts), counts), b"]")

        return encode

    def _map(self, schema: Schema, path: str) -> Encode:
        key, value = self.nullable(schema.keys, path), self.nullable(schema.values, f"{path}[]")
        is_object = schema.keys is not None and schema.keys.type is Type.STRING

        def encode(maps: pa.Array) -> pa.Array:
            keys, values, counts = pairs_of(maps)
            pairs = joined(key(keys), b":" if is_object else b",", value(values))
            if is_object:
                return joined(b"{", gathered(separated(pairs, counts), counts), b"}")
            lists = joined(b"[", pairs, b"]")
            return joined(b"[", gathered(separated(lists, counts), counts), b"]")

        return encode

    def _scalar(self, schema: Schema) -> Encode:
        logical: dict[str, Callable[[pa.Array], pa.Array]] = {
            DATE: lambda column: _digits(column.cast(pa.int32())),
            TIMESTAMP: lambda column: _digits(_milliseconds(column)),
            DECIMAL: self._decimals,
        }
        if encode := logical.get(logical_name(schema) or ""):
            return encode
        if schema.type in _INTEGERS or schema.type is Type.BOOLEAN:
            return _digits
        if schema.type in (Type.FLOAT32, Type.FLOAT64):
            return _reals
        return jackson_texts if schema.type is Type.STRING else _base64

    def _decimals(self, column: pa.Array) -> pa.Array:
        if self._options.decimals == "numeric":
            return as_bytes(column.cast(pa.string()))
        return _base64(unscaled(column))


def unscaled(column: pa.Array) -> pa.Array:
    """Return the digits of decimals as whole numbers, big-endian, in as few bytes as Java takes.

    >>> from decimal import Decimal
    >>> unscaled(pa.array([Decimal("2.23"), Decimal("-0.01")], pa.decimal128(38, 2))).to_pylist()
    [b'\\x00\\xdf', b'\\xff']
    """
    data = np.frombuffer(column.buffers()[1], np.uint8).reshape(-1, 16)
    big = data[column.offset : column.offset + len(column), ::-1]
    sign = np.where(big[:, :1] & 0x80, 0xFF, 0).astype(np.uint8)
    differs = np.concatenate([big != sign, np.ones((len(big), 1), bool)], axis=1)
    first = np.minimum(differs.argmax(axis=1), 15)
    # The first byte that is written must have the sign in its highest bit.
    top = big[np.arange(len(big)), first]
    first = np.where(((top ^ sign[:, 0]) & 0x80).astype(bool), first - 1, first)
    lengths = 16 - first
    return of_lengths(np.ascontiguousarray(big)[np.arange(16) >= first[:, None]], lengths)


def _milliseconds(column: pa.Array) -> pa.Array:
    micros = column.cast(pa.timestamp("us", tz="UTC")).cast(pa.int64()).to_numpy()
    return pa.array(micros // 1000, pa.int64())


def _digits(column: pa.Array) -> pa.Array:
    return as_bytes(column.cast(pa.string()))


def _reals(column: pa.Array) -> pa.Array:
    texts = as_bytes(java_reals(column))
    if pc.all(pc.is_finite(column)).as_py():
        return texts
    return pc.if_else(pc.is_finite(column), texts, joined(b'"', texts, b'"'))


def _base64(column: pa.Array) -> pa.Array:
    return joined(b'"', as_bytes(base64_texts(column)), b'"')


def _after(name: bytes, encode: Encode) -> Encode:
    return lambda column: joined(name, encode(column))
