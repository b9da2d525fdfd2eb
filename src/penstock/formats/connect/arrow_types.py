"""Schemas of Connect as types of Arrow: what columns of keys and values have.

Everything may be null in them: whether a value must be given is known by the schema, and is checked
where records are read.
"""

from __future__ import annotations

import pyarrow as pa

from penstock.errors import ConfigError
from penstock.formats.connect.json_values import logical_name, scale_of
from penstock.formats.connect.schema import (
    DATE,
    DECIMAL,
    TIMESTAMP,
    Field,
    Schema,
    Type,
    date,
    decimal,
    time,
    timestamp,
)

_PLAIN = {
    Type.INT8: pa.int8(),
    Type.INT16: pa.int16(),
    Type.INT32: pa.int32(),
    Type.INT64: pa.int64(),
    Type.FLOAT32: pa.float32(),
    Type.FLOAT64: pa.float64(),
    Type.BOOLEAN: pa.bool_(),
    Type.STRING: pa.string(),
    Type.BYTES: pa.binary(),
}
# What Connect has no type of its own for.
_WIDER = {
    "uint8": Type.INT16,
    "uint16": Type.INT32,
    "uint32": Type.INT64,
    "uint64": Type.INT64,
    "halffloat": Type.FLOAT32,
    "large_binary": Type.BYTES,
    "fixed_size_binary": Type.BYTES,
}
MOST_DIGITS = 38
_DEEPEST = 64


def arrow_type(schema: Schema, depth: int = 0) -> pa.DataType:
    """Return the type of a column; raise ConfigError for a schema that no column can have.

    >>> from penstock.formats.connect import INT64, SchemaBuilder, date, decimal
    >>> order = SchemaBuilder.struct().field("id", INT64).field("price", decimal(2)).field("day", date())
    >>> arrow_type(order.build())
    StructType(struct<id: int64, price: decimal128(38, 2), day: date32[day]>)
    """
    if depth > _DEEPEST:
        raise ConfigError(f"schemas nest at most {_DEEPEST} deep")
    match schema.type:
        case Type.STRUCT:
            _refuse_twins(schema)
            fields = [(each.name, arrow_type(each.schema, depth + 1)) for each in schema.fields]
            return pa.struct([pa.field(name, type_) for name, type_ in fields])
        case Type.ARRAY:
            assert schema.values  # noqa: S101 - a schema is refused without
            return pa.list_(pa.field("element", arrow_type(schema.values, depth + 1)))
        case Type.MAP:
            assert schema.keys and schema.values  # noqa: S101
            return pa.map_(arrow_type(schema.keys, depth + 1), arrow_type(schema.values, depth + 1))
    return _scalar(schema)


def schema_of(type_: pa.DataType) -> Schema:  # noqa: PLR0911 - by type
    """Return the schema of a column's values; what is in them may be missing.

    >>> schema_of(pa.struct([("id", pa.int64()), ("at", pa.timestamp("ms"))]))["at"].name
    'org.apache.kafka.connect.data.Timestamp'
    """
    if pa.types.is_struct(type_):
        fields = tuple(Field(each.name, schema_of(each.type).or_null()) for each in type_)
        return Schema(Type.STRUCT, fields=fields)
    if pa.types.is_map(type_):
        return Schema(
            Type.MAP, keys=schema_of(type_.key_type), values=schema_of(type_.item_type).or_null()
        )
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        return Schema(Type.ARRAY, values=schema_of(type_.value_type).or_null())
    if pa.types.is_decimal(type_):
        return decimal(type_.scale)
    if pa.types.is_time(type_):
        return time()
    if pa.types.is_date(type_):
        return date()
    if pa.types.is_timestamp(type_):
        return timestamp()
    for kind, known in _PLAIN.items():
        if known == type_:
            return Schema(kind)
    return Schema(_WIDER.get(str(type_), Type.STRING))


def _scalar(schema: Schema) -> pa.DataType:
    kind = logical_name(schema)
    if kind == DECIMAL:
        return pa.decimal128(MOST_DIGITS, scale_of(schema))
    logical = {DATE: pa.date32(), TIMESTAMP: pa.timestamp("us", tz="UTC")}
    return logical.get(kind or "", _PLAIN[schema.type])


def _refuse_twins(schema: Schema) -> None:
    known: dict[str, str] = {}
    for each in schema.fields:
        if not each.name:
            raise ConfigError("a field of a struct has an empty name: give it one")
        if twin := known.get(each.name.lower()):
            raise ConfigError(
                f"the fields {twin!r} and {each.name!r} have one name for Spark, which ignores case: "
                "rename one where the records are written"
            )
        known[each.name.lower()] = each.name
