"""A declared schema as Arrow sees it: the names and nullability that PySpark gives to its own.

Spark compares the batches it gets back with its schema, so inner fields must match in name, too.
"""

from __future__ import annotations

import pyarrow as pa

from penstock.pipeline.columns import Array, Decimal, Field, Map, Struct, Type
from penstock.pipeline.schema import Schema

_SCALARS: dict[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}


def arrow_schema(schema: Schema) -> pa.Schema:
    """Return the Arrow schema of the rows that a declared schema describes.

    >>> arrow_schema(Schema.parse("a bigint not null")).field("a")
    pyarrow.Field<a: int64 not null>
    """
    return pa.schema([arrow_field(field) for field in schema.fields])


def arrow_field(field: Field) -> pa.Field:
    """Return one column, or one field of a struct."""
    return pa.field(field.name, arrow_type(field.type), nullable=not field.required)


def arrow_type(type_: Type) -> pa.DataType:
    """Return the Arrow type of one declared type."""
    if isinstance(type_, Decimal):
        return pa.decimal128(type_.precision, type_.scale)
    if isinstance(type_, Array):
        return pa.list_(pa.field("element", arrow_type(type_.element)))
    if isinstance(type_, Map):
        return pa.map_(pa.string(), arrow_type(type_.value))
    if isinstance(type_, Struct):
        return pa.struct([arrow_field(field) for field in type_.fields])
    return _SCALARS[type_.name]
