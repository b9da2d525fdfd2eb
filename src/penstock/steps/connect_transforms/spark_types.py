"""The Spark type of a Connect schema, and the defaults of schemas as literals."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as f
from pyspark.sql import types as t

from penstock.errors import ConfigError
from penstock.formats.connect import Schema, Type
from penstock.formats.connect.schema import DATE, DECIMAL, SCALE, TIMESTAMP

PRECISION = 38
_PLAIN: dict[Type, t.DataType] = {
    Type.INT8: t.ByteType(),
    Type.INT16: t.ShortType(),
    Type.INT32: t.IntegerType(),
    Type.INT64: t.LongType(),
    Type.FLOAT32: t.FloatType(),
    Type.FLOAT64: t.DoubleType(),
    Type.BOOLEAN: t.BooleanType(),
    Type.STRING: t.StringType(),
    Type.BYTES: t.BinaryType(),
}


def spark_type(schema: Schema | None) -> t.DataType:  # noqa: PLR0911 - by type
    """Return the type of the column for a schema; without a schema it is a VARIANT.

    >>> from penstock.formats.connect import INT8, SchemaBuilder, date, decimal, time
    >>> spark_type(SchemaBuilder.struct().field("a.b", INT8).field("on", date()).build()).simpleString()
    'struct<a.b:tinyint,on:date>'
    >>> spark_type(decimal(2)), spark_type(time())
    (DecimalType(38,2), IntegerType())
    """
    if schema is None:
        return t.VariantType()
    match schema.type, schema.name:
        case Type.INT32, str(name) if name == DATE:
            return t.DateType()
        case Type.INT64, str(name) if name == TIMESTAMP:
            return t.TimestampType()
        case Type.BYTES, str(name) if name == DECIMAL:
            return t.DecimalType(PRECISION, scale(schema))
        case Type.ARRAY, _:
            return t.ArrayType(spark_type(schema.values))
        case Type.MAP, _:
            return t.MapType(spark_type(schema.keys), spark_type(schema.values))
        case Type.STRUCT, _:
            return t.StructType(
                [t.StructField(each.name, spark_type(each.schema)) for each in schema.fields]
            )
    return _PLAIN[schema.type]


def scale(schema: Schema) -> int:
    """Return how many digits after the point a Decimal has; raise ConfigError for impossible ones."""
    given = schema.parameters.get(SCALE)
    if given is None or not given.isdecimal() or int(given) > PRECISION:
        raise ConfigError(
            f"the schema {DECIMAL} has the scale {given!r}; Spark's decimals have 0 to {PRECISION}"
        )
    return int(given)


def with_default(column: Column, schema: Schema) -> Column:
    """Return a column in which the default of its schema takes the place of null."""
    return column if schema.default is None else f.coalesce(column, literal(schema.default, schema))


def literal(value: Any, schema: Schema) -> Column:
    """Return a value that JSON has for a schema, such as its default, as a column."""
    return f.lit(None).cast(spark_type(schema)) if value is None else _literal(value, schema)


def _literal(value: Any, schema: Schema) -> Column:  # noqa: PLR0911 - by type
    kind = spark_type(schema)
    match schema.type:
        case Type.BYTES if schema.name == DECIMAL:
            return f.lit(_decimal(value, scale(schema))).cast(kind)
        case Type.BYTES:
            return f.lit(_bytes(value)).cast(kind)
        case Type.INT32 if schema.name == DATE:
            return f.lit(date(1970, 1, 1) + timedelta(days=value))
        case Type.INT64 if schema.name == TIMESTAMP:
            return f.timestamp_millis(f.lit(value).cast("bigint"))
        case Type.FLOAT32 | Type.FLOAT64:
            return f.lit(float(value)).cast(kind)
        case Type.ARRAY:
            return f.array(*(literal(each, _part(schema.values)) for each in value)).cast(kind)
        case Type.MAP:
            return _map_literal(value, schema).cast(kind)
        case Type.STRUCT:
            return f.struct(
                *(literal(value.get(e.name), e.schema).alias(e.name) for e in schema.fields)
            )
    return f.lit(value).cast(kind)


def _map_literal(value: Any, schema: Schema) -> Column:
    pairs = [*value.items()] if isinstance(value, Mapping) else value
    keys, values = _part(schema.keys), _part(schema.values)
    return f.create_map(
        *(made for k, v in pairs for made in (literal(k, keys), literal(v, values)))
    )


def _decimal(value: Any, digits: int) -> Decimal:
    """Return an exact number; JsonConverter writes the bytes of its unscaled value, or the number."""
    if isinstance(value, int | float | Decimal):
        return Decimal(str(value))
    return Decimal(int.from_bytes(_bytes(value), signed=True, byteorder="big")).scaleb(-digits)


def _bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else base64.b64decode(value)


def _part(schema: Schema | None) -> Schema:
    assert schema is not None  # noqa: S101 - a schema is refused without
    return schema
