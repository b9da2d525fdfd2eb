"""The columns of a table for an Avro record.

| Avro | column |
|---|---|
| boolean, int, long, float, double | boolean, int, bigint, float, double |
| bytes, fixed | binary |
| string, enum, uuid | string |
| decimal(p, s) of at most 38 digits | decimal(p,s) |
| date | date |
| timestamp-millis, timestamp-micros | timestamp |
| local-timestamp-millis, local-timestamp-micros | timestamp_ntz |
| timestamp-nanos, local-timestamp-nanos | bigint: a timestamp has microseconds |
| time-millis, time-micros | int, bigint: since midnight |
| duration | struct<months: bigint, days: bigint, millis: bigint> |
| array, map, record | array, map<string, ...>, struct |
| null and one other type | the other type, nullable |
| several types | struct with a field for each, named after the type; one of them is set |

A column whose type has no null is `not null`. A logical type that Avro does not know, or that does not
fit its type, is the plain type.
"""

from __future__ import annotations

from typing import Any

from penstock.errors import ConfigError
from penstock.formats.avro.avro_schema import Names, Parsed, branch_name, kind_of, resolved
from penstock.formats.avro.logical import DURATION, is_duration, logical_of
from penstock.pipeline.columns import Array, Decimal, Field, Map, Scalar, Struct, Type
from penstock.pipeline.schema import Schema

_BIGINT = Scalar("bigint")
_PLAIN = {
    "boolean": Scalar("boolean"),
    "int": Scalar("int"),
    "long": _BIGINT,
    "float": Scalar("float"),
    "double": Scalar("double"),
    "bytes": Scalar("binary"),
    "fixed": Scalar("binary"),
    "string": Scalar("string"),
    "enum": Scalar("string"),
}
_LOGICAL = {
    "date": Scalar("date"),
    "timestamp-millis": Scalar("timestamp"),
    "timestamp-micros": Scalar("timestamp"),
    "local-timestamp-millis": Scalar("timestamp_ntz"),
    "local-timestamp-micros": Scalar("timestamp_ntz"),
    "uuid": Scalar("string"),
}
_DURATION = Struct(tuple(Field(name, _BIGINT) for name in DURATION))
_MOST_DIGITS = 38


def avro_table_schema(parsed: Parsed) -> Schema:
    """Return the columns of a record schema, or raise `ConfigError` where there are none.

    >>> from penstock.formats.registry import Registry, Schema as RegistrySchema
    >>> fields = '[{"name": "price", "type": "double"}, {"name": "note", "type": ["null", "string"]}]'
    >>> text = '{"type": "record", "name": "Trade", "fields": %s}' % fields
    >>> avro_table_schema(Parsed(RegistrySchema(text, "AVRO"), Registry("http://registry"))).ddl()
    'price double not null, note string'
    """
    kind = kind_of(parsed.root, parsed.names)
    if kind != "record":
        raise ConfigError(f"the rows of a table are Avro records; this schema is of type {kind}")
    return Schema(_record_fields(resolved(parsed.root, parsed.names), parsed.names, ()))


def column_type(schema: Any, names: Names, outer: tuple[str, ...] = ()) -> Type:
    """Return the type of a column of a schema; `outer` has the names of the records around it."""
    kind, schema = kind_of(schema, names), resolved(schema, names)
    if kind == "union":
        return _union(schema, names, outer)
    if kind == "record":
        fields = _record_fields(schema, names, outer)
        return Struct(tuple(Field(field.name, field.type) for field in fields))
    if kind == "array":
        return Array(column_type(schema["items"], names, outer))
    if kind == "map":
        return Map(column_type(schema["values"], names, outer))
    if kind == "null":
        raise ConfigError("a column cannot be of the type null alone; remove the field")
    return _scalar(kind, schema)


def _record_fields(schema: Any, names: Names, outer: tuple[str, ...]) -> tuple[Field, ...]:
    name = schema["name"]
    if name in outer:
        raise ConfigError(
            f"the record {name} contains itself, and a table has a fixed depth; "
            "use a reader's schema without that field"
        )
    return tuple(_field(field, names, (*outer, name)) for field in schema["fields"])


def _field(field: Any, names: Names, outer: tuple[str, ...]) -> Field:
    try:
        required = not _is_nullable(field["type"], names)
        return Field(field["name"], column_type(field["type"], names, outer), required)
    except ConfigError as error:
        raise ConfigError(f"{field['name']}: {error}") from None


def _is_nullable(schema: Any, names: Names) -> bool:
    union = resolved(schema, names)
    return isinstance(union, list) and any(kind_of(each, names) == "null" for each in union)


def branches_of(union: Any, names: Names) -> list[Any]:
    """Return the types of a union other than null."""
    return [branch for branch in union if kind_of(branch, names) != "null"]


def _union(union: Any, names: Names, outer: tuple[str, ...]) -> Type:
    branches = branches_of(union, names)
    if not branches:
        raise ConfigError("a column cannot be of the type null alone; remove the field")
    types = [column_type(branch, names, outer) for branch in branches]
    if len(types) == 1:
        return types[0]
    fields = zip(branches, types, strict=True)
    return Struct(tuple(Field(branch_name(branch, names), type_) for branch, type_ in fields))


def _scalar(kind: str, schema: Any) -> Type:
    if is_duration(schema):
        return _DURATION
    if logical_of(schema) is None:
        return _PLAIN[kind]
    if schema["logicalType"] == "decimal":
        return _decimal(schema)
    return _LOGICAL.get(schema["logicalType"], _PLAIN[kind])


def _decimal(schema: Any) -> Decimal:
    precision = schema["precision"]
    if precision > _MOST_DIGITS:
        raise ConfigError(
            f"a decimal of {precision} digits was given; a column has {_MOST_DIGITS} at most"
        )
    return Decimal(precision, schema.get("scale", 0))
