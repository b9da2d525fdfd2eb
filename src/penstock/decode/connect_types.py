"""Schemas of Connect as types of Spark."""

from __future__ import annotations

from pyspark.sql import types

from penstock.formats.connect.arrow_types import MOST_DIGITS, arrow_type
from penstock.formats.connect.json_values import logical_name, scale_of
from penstock.formats.connect.schema import DATE, DECIMAL, TIMESTAMP, Schema, Type

_PLAIN: dict[Type, types.DataType] = {
    Type.INT8: types.ByteType(),
    Type.INT16: types.ShortType(),
    Type.INT32: types.IntegerType(),
    Type.INT64: types.LongType(),
    Type.FLOAT32: types.FloatType(),
    Type.FLOAT64: types.DoubleType(),
    Type.BOOLEAN: types.BooleanType(),
    Type.STRING: types.StringType(),
    Type.BYTES: types.BinaryType(),
}


def spark_type(schema: Schema | None) -> types.DataType:
    """Return the type of a column with values of a schema; without a schema it is text of JSON.

    >>> from penstock.formats.connect import INT64, SchemaBuilder, decimal
    >>> spark_type(SchemaBuilder.map(INT64, decimal(2)).build()).simpleString()
    'map<bigint,decimal(38,2)>'
    """
    if schema is None:
        return types.StringType()
    arrow_type(schema)
    return _type(schema)


def _type(schema: Schema) -> types.DataType:
    match schema.type:
        case Type.STRUCT:
            fields = [types.StructField(each.name, _type(each.schema)) for each in schema.fields]
            return types.StructType(fields)
        case Type.ARRAY:
            assert schema.values  # noqa: S101 - a schema is refused without
            return types.ArrayType(_type(schema.values))
        case Type.MAP:
            assert schema.keys and schema.values  # noqa: S101 - a schema is refused without
            return types.MapType(_type(schema.keys), _type(schema.values))
    kind = logical_name(schema)
    if kind == DECIMAL:
        return types.DecimalType(MOST_DIGITS, scale_of(schema))
    logical = {DATE: types.DateType(), TIMESTAMP: types.TimestampType()}
    return logical.get(kind or "", _PLAIN[schema.type])
