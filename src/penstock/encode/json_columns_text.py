"""Rows as JSON, column by column; a schema decides the form of decimals and of nulls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from penstock.encode.column_bytes import (
    Encode,
    as_bytes,
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
    return _scalars(type_, schema, path)


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
    encodes = []
    for field in type_:
        inner = f"{path}.{field.name}".lstrip(".")
        value = json_encode(field.type, properties.get(field.name), inner)
        name = b"," + orjson.dumps(field.name) + b":"
        allowed = types_in(properties.get(field.name))
        # A null that the schema does not allow is left out where the property may be missing.
        left_out = allowed is not None and "null" not in allowed and field.name not in needed
        encodes.append(optional(_after(name, value), b"" if left_out else name + _NULL))

    def encode(rows: pa.Array) -> pa.Array:
        pieces = [run(rows.field(at)) for at, run in enumerate(encodes)]
        inside = joined(*pieces) if pieces else repeated(b"", len(rows))
        return joined(pc.binary_replace_slice(inside, 0, 1, b"{"), b"}")

    return encode


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
        pairs = joined(_quoted(keys), b":", value(values))
        return joined(b"{", gathered(separated(pairs, counts), counts), b"}")

    return encode


def _scalars(type_: pa.DataType, schema: Any, path: str) -> Encode:
    if pa.types.is_string(type_):
        return _quoted
    texts = base64_texts if pa.types.is_binary(type_) else texts_of(type_)
    if texts is None:
        raise no_form("JSON", type_, path)
    if pa.types.is_floating(type_):
        return _reals(path)
    bare = pa.types.is_boolean(type_) or pa.types.is_integer(type_)
    if bare or (pa.types.is_decimal(type_) and "number" in (types_in(schema) or ())):
        return lambda column: as_bytes(texts(column))
    return lambda column: joined(b'"', as_bytes(texts(column)), b'"')


def _reals(path: str) -> Encode:
    def encode(column: pa.Array) -> pa.Array:
        values = numbers(column)
        refuse_where(np.isinf(values), column, path, "has no form in JSON")
        texts = as_bytes(column.cast(pa.string()))
        # Arrow writes -0, which parsers of JSON read as the whole number 0.
        texts = pc.if_else(pa.array((values == 0) & np.signbit(values)), b"-0.0", texts)
        return pc.if_else(pa.array(np.isnan(values)), _NULL, texts)

    return encode


def _quoted(column: pa.Array) -> pa.Array:
    special = pc.match_substring_regex(column, _ESCAPED)
    plain = joined(b'"', as_bytes(column), b'"')
    if not pc.any(special).as_py():
        return plain
    escaped = pa.array([orjson.dumps(text) for text in column.filter(special).to_pylist()])
    return pc.replace_with_mask(plain, special, escaped.cast(pa.binary()))


def _after(name: bytes, encode: Encode) -> Encode:
    return lambda column: joined(name, encode(column))
