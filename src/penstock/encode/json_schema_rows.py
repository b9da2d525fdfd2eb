"""A given JSON Schema and the rows: columns that it has no property for, and rows that do not fit it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson
import pyarrow as pa

from penstock.encode.column_bytes import Encode
from penstock.encode.json_columns_text import branch_of
from penstock.errors import ConfigError, FormatError, RefusedError, nearest
from penstock.formats.json_schema import JsonSchema, check_document
from penstock.formats.registry import Registry, Schema


def refuse_columns(document: Any, type_: pa.DataType, path: str) -> None:
    """Raise `ConfigError` for columns that a closed schema lacks, and properties without a column.

    >>> schema = {"type": "object", "properties": {"id": {}}, "additionalProperties": False}
    >>> refuse_columns(schema, pa.struct({"idd": pa.int64()}), "")
    Traceback (most recent call last):
    ...
    penstock.errors.ConfigError: the JSON Schema has no property for the column 'idd'; did you mean 'id'?
    """
    own = branch_of(document, "object")
    if not pa.types.is_struct(type_) or not isinstance(own, dict):
        return
    properties, columns = own.get("properties", {}), [field.name for field in type_]
    closed = own.get("additionalProperties") is False and "patternProperties" not in own
    for field in type_:
        inner = f"{path}.{field.name}".lstrip(".")
        if field.name in properties:
            refuse_columns(properties[field.name], field.type, inner)
        elif closed:
            raise ConfigError(
                f"the JSON Schema has no property for the column {inner!r}; "
                f"{nearest(field.name, list(properties))}"
            )
    for name in own.get("required", ()):
        if name not in columns:
            raise ConfigError(
                f"the JSON Schema requires {f'{path}.{name}'.lstrip('.')!r}, and there is no such "
                f"column; {nearest(name, columns)}"
            )


def checked_rows(registry: Registry, schema: Schema) -> Callable[[Encode], Encode]:
    """Return what makes an encode compare each row with a schema; a row that does not fit is refused."""
    validator = JsonSchema(registry).validator(schema)

    def with_check(encode: Encode) -> Encode:
        def run(column: pa.Array) -> pa.Array:
            written = encode(column)
            for data in written.to_pylist():
                try:
                    check_document(validator, orjson.loads(data))
                except FormatError as error:
                    raise RefusedError(f"a row does not fit the JSON Schema: {error}") from error
            return written

        return run

    return with_check
