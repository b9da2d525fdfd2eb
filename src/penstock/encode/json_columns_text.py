"""Rows as JSON, column by column; a schema decides the form of decimals and of nulls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from penstock.encode.column_bytes import (
    Encode,
    as_bytes,
    bytes_of,
    gathered,
    items_of,
    joined,
    numbers,
    optional,
    pairs_of,
    refuse_where,
    repeated,
    separated,
)
from penstock.encode.derived_schemas import no_form
from penstock.encode.text_forms import base64_texts, texts_of

_NULL = b"null"
_TYPE_NAMES = {
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
}
_ESCAPED = r'["\\\x00-\x1f]'
_FIRST_PLAIN, _QUOTE, _BACKSLASH = 0x20, ord('"'), ord("\\")

Pieces = Callable[[pa.Array], list[Any]]
"""Columns of bytes, and bytes that are the same in each row: joined, they are the values of a column."""


def json_encode(type_: pa.DataType, schema: Any = None, path: str = "") -> Encode:
    """Return the encode of a column as JSON; `schema` is its JSON Schema, where there is one.

    >>> rows = pa.array([{"a": 1, "b": [True, None]}])
    >>> json_encode(rows.type)(rows).to_pylist()
    [b'{"a":1,"b":[true,null]}']
    """
    if pa.types.is_struct(type_):
        return _objects(type_, schema, path)
    if pa.types.is_list(type_):
        return _arrays(type_, schema, path)
    if pa.types.is_map(type_) and pa.types.is_string(type_.key_type):
        return _maps(type_, schema, path)
    scalars = _scalars(type_, schema, path)
    return lambda column: joined(*scalars(column))


def types_in(schema: Any) -> set[str] | None:
    """Return the JSON types that a schema names; None where it names none.

    >>> sorted(types_in({"oneOf": [{"type": "null"}, {"type": ["string", "number"]}]}))
    ['null', 'number', 'string']
    """
    if not isinstance(schema, Mapping):
        return None
    if "type" in schema:
        given = schema["type"]
        return {given} if isinstance(given, str) else set(given)
    if "enum" in schema or "const" in schema:
        return {_type_name(each) for each in schema.get("enum", [schema.get("const")])}
    branches = [types_in(each) for each in schema.get("oneOf", schema.get("anyOf", ()))]
    if not branches or None in branches:
        return None
    return set().union(*(each for each in branches if each))


def _type_name(value: Any) -> str:
    return "null" if value is None else _TYPE_NAMES[type(value)]


def branch_of(schema: Any, wanted: str) -> Any:
    """Return the part of a schema that is for values of a type: a branch of oneOf or anyOf, or itself."""
    if not isinstance(schema, Mapping):
        return {}
    for branch in schema.get("oneOf", schema.get("anyOf", ())):
        if wanted in (types_in(branch) or ()):
            return branch
    return schema


def _objects(type_: pa.DataType, schema: Any, path: str) -> Encode:
    own = branch_of(schema, "object")
    properties, needed = own.get("properties", {}), own.get("required", ())
    fields = []
    for field in type_:
        inner = f"{path}.{field.name}".lstrip(".")
        name = b"," + orjson.dumps(field.name) + b":"
        allowed = types_in(properties.get(field.name))
        # A null that the schema does not allow is left out where the property may be missing.
        left_out = allowed is not None and "null" not in allowed and field.name not in needed
        null = b"" if left_out else name + _NULL
        fields.append(_Property(name, _pieces(field.type, properties.get(field.name), inner), null))

    def encode(rows: pa.Array) -> pa.Array:
        pieces = [each for at, run in enumerate(fields) for each in run.pieces(rows.field(at))]
        if not pieces:
            return repeated(b"{}", len(rows))
        if isinstance(pieces[0], bytes):
            # All at once: each join copies every byte.
            return joined(*_merged([b"{" + pieces[0][1:], *pieces[1:], b"}"]))
        inside = joined(*_merged(pieces))
        return joined(pc.binary_replace_slice(inside, 0, 1, b"{"), b"}")

    return encode


class _Property(NamedTuple):
    """A field of objects: its name after a comma, its value, and what a null is with the name."""

    name: bytes
    value: Pieces
    null: bytes

    def pieces(self, column: pa.Array) -> list[Any]:
        """Return the parts of name and value; one column of both where there are nulls."""
        if not column.null_count:
            return [self.name, *self.value(column)]
        return [optional(lambda items: joined(self.name, *self.value(items)), self.null)(column)]


def _merged(pieces: list[Any]) -> list[Any]:
    """Return the same parts, those that follow each other and are the same in each row as one.

    >>> _merged([b"a", b"b", 1, b"c"])
    [b'ab', 1, b'c']
    """
    merged: list[Any] = []
    for piece in pieces:
        if merged and isinstance(piece, bytes) and isinstance(merged[-1], bytes):
            merged[-1] += piece
        else:
            merged.append(piece)
    return merged


def _arrays(type_: pa.DataType, schema: Any, path: str) -> Encode:
    item_schema = branch_of(schema, "array").get("items")
    item = optional(json_encode(type_.value_type, item_schema, f"{path}[]"), _NULL)

    def encode(lists: pa.Array) -> pa.Array:
        items, counts = items_of(lists)
        return joined(b"[", gathered(separated(item(items), counts), counts), b"]")

    return encode


def _maps(type_: pa.DataType, schema: Any, path: str) -> Encode:
    value_schema = branch_of(schema, "object").get("additionalProperties")
    value = optional(json_encode(type_.item_type, value_schema, f"{path}[]"), _NULL)

    def encode(maps: pa.Array) -> pa.Array:
        keys, values, counts = pairs_of(maps)
        pairs = joined(*_quoted(keys), b":", value(values))
        return joined(b"{", gathered(separated(pairs, counts), counts), b"}")

    return encode


def _pieces(type_: pa.DataType, schema: Any, path: str) -> Pieces:
    """Return what gives the parts of a column's JSON that are still to be joined."""
    if pa.types.is_struct(type_) or pa.types.is_list(type_) or pa.types.is_map(type_):
        encode = json_encode(type_, schema, path)
        return lambda column: [encode(column)]
    return _scalars(type_, schema, path)


def _scalars(type_: pa.DataType, schema: Any, path: str) -> Pieces:
    if pa.types.is_string(type_):
        return _quoted
    texts = base64_texts if pa.types.is_binary(type_) else texts_of(type_)
    if texts is None:
        raise no_form("JSON", type_, path)
    if pa.types.is_floating(type_):
        return _reals(path)
    bare = pa.types.is_boolean(type_) or pa.types.is_integer(type_)
    if bare or (pa.types.is_decimal(type_) and "number" in (types_in(schema) or ())):
        return lambda column: [as_bytes(texts(column))]
    return lambda column: [b'"', as_bytes(texts(column)), b'"']


def _reals(path: str) -> Pieces:
    def pieces(column: pa.Array) -> list[Any]:
        values = numbers(column)
        refuse_where(np.isinf(values), column, path, "has no form in JSON")
        texts = as_bytes(column.cast(pa.string()))
        # Arrow writes -0, which parsers of JSON read as the whole number 0.
        texts = pc.if_else(pa.array((values == 0) & np.signbit(values)), b"-0.0", texts)
        return [pc.if_else(pa.array(np.isnan(values)), _NULL, texts)]

    return pieces


def _quoted(column: pa.Array) -> list[Any]:
    if not _has_escaped(column):
        return [b'"', as_bytes(column), b'"']
    special = pc.match_substring_regex(column, _ESCAPED)
    plain = joined(b'"', as_bytes(column), b'"')
    escaped = pa.array([orjson.dumps(text) for text in column.filter(special).to_pylist()])
    return [pc.replace_with_mask(plain, special, escaped.cast(pa.binary()))]


def _has_escaped(column: pa.Array) -> bool:
    """Return whether a character may have to be escaped, looking at all bytes of a column at once."""
    data = bytes_of(column)
    return bool(((data < _FIRST_PLAIN) | (data == _QUOTE) | (data == _BACKSLASH)).any())
