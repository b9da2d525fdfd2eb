"""The JSON Schema of rows whose definition gives none.

Objects are closed and every property may be null: then columns can be added and removed, and readers of
old and new records stay compatible by the registry's rules.
"""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from penstock.encode.derived_schemas import no_form

Document = dict[str, Any]
_INTEGERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
_PLAIN: dict[pa.DataType, Document] = {
    pa.bool_(): {"type": "boolean"},
    pa.float32(): {"type": "number"},
    pa.float64(): {"type": "number"},
    pa.string(): {"type": "string"},
    pa.binary(): {"type": "string", "contentEncoding": "base64"},
    pa.date32(): {"type": "string", "format": "date"},
    **{type_: {"type": "integer"} for type_ in _INTEGERS},
}


def derived_json_schema(type_: pa.DataType, name: str) -> str:
    """Return the text of the schema of a column, or of a row as a struct; `name` is the title.

    >>> json.loads(derived_json_schema(pa.struct({"n": pa.int32()}), "Order"))["properties"]
    {'n': {'oneOf': [{'type': 'null'}, {'type': 'integer'}]}}
    """
    head = {"$schema": "http://json-schema.org/draft-07/schema#", "title": name}
    return json.dumps({**head, **_document(type_, "")})


def _document(type_: pa.DataType, path: str) -> Document:
    if type_ in _PLAIN:
        return _PLAIN[type_]
    if pa.types.is_timestamp(type_):
        return {"type": "string", **({"format": "date-time"} if type_.tz else {})}
    if pa.types.is_decimal(type_):
        return {"type": "string"}
    if pa.types.is_list(type_):
        return {"type": "array", "items": _nullable(type_.value_type, f"{path}[]")}
    if pa.types.is_map(type_) and pa.types.is_string(type_.key_type):
        values = _nullable(type_.item_type, f"{path}[]")
        return {"type": "object", "additionalProperties": values}
    if pa.types.is_struct(type_):
        fields = ((field, f"{path}.{field.name}".lstrip(".")) for field in type_)
        properties = {field.name: _nullable(field.type, inner) for field, inner in fields}
        return {"type": "object", "additionalProperties": False, "properties": properties}
    raise no_form("JSON Schema", type_, path)


def _nullable(type_: pa.DataType, path: str) -> Document:
    return {"oneOf": [{"type": "null"}, _document(type_, path)]}
