"""The Avro schema of rows whose definition gives none.

Every field may be null, with null as its default: then columns can be added and removed, and readers of
old and new records stay compatible. A record's name is its path in the row, so that it stays the same.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pyarrow as pa

from penstock.encode.derived_schemas import no_form
from penstock.errors import ConfigError

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PLAIN: dict[pa.DataType, Any] = {
    pa.bool_(): "boolean",
    pa.int8(): "int",
    pa.int16(): "int",
    pa.int32(): "int",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "bytes",
    pa.date32(): {"type": "int", "logicalType": "date"},
}


def derived_avro(type_: pa.DataType, name: str) -> str:
    """Return the text of the schema of a column, or of a row as a struct; `name` is the record's.

    >>> derived_avro(pa.int64(), "key")
    '"long"'
    >>> json.loads(derived_avro(pa.struct({"n": pa.int32()}), "shop.Order"))["fields"]
    [{'name': 'n', 'type': ['null', 'int'], 'default': None}]
    """
    return json.dumps(_schema(type_, name, ""))


def _schema(type_: pa.DataType, name: str, path: str) -> Any:
    if type_ in _PLAIN:
        return _PLAIN[type_]
    if pa.types.is_timestamp(type_):
        logical = "timestamp-micros" if type_.tz else "local-timestamp-micros"
        return {"type": "long", "logicalType": logical}
    if pa.types.is_decimal(type_):
        digits = {"precision": type_.precision, "scale": type_.scale}
        return {"type": "bytes", "logicalType": "decimal", **digits}
    if pa.types.is_list(type_):
        return {"type": "array", "items": _nullable(type_.value_type, name, path)}
    if pa.types.is_map(type_) and pa.types.is_string(type_.key_type):
        return {"type": "map", "values": _nullable(type_.item_type, name, path)}
    if pa.types.is_struct(type_):
        return _record(type_, name, path)
    raise no_form("Avro", type_, path)


def _record(type_: pa.DataType, name: str, path: str) -> Any:
    fields = []
    for field in type_:
        inner = f"{path}.{field.name}".lstrip(".")
        if not _NAME.fullmatch(field.name):
            raise ConfigError(
                f"Avro has no name for the column {inner!r}: a name has letters, digits and "
                "underscores; rename the column in a step"
            )
        schema = _nullable(field.type, f"{name}.{field.name}", inner)
        fields.append({"name": field.name, "type": schema, "default": None})
    space, _, last = name.rpartition(".")
    return {"type": "record", "name": last, "namespace": space, "fields": fields}


def _nullable(type_: pa.DataType, name: str, path: str) -> list[Any]:
    return ["null", _schema(type_, name, path)]
