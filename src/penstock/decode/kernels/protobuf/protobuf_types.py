"""Protobuf messages as columns: the type of each field, decided once from the descriptor.

| Protobuf | column |
|---|---|
| int32, sint32, sfixed32 | int |
| uint32, fixed32, int64, sint64, sfixed64 | bigint |
| uint64, fixed64 | decimal(20,0) |
| float, double, bool, string | float, double, boolean, string |
| bytes | binary |
| enum | string: the value's name, or its number where no name is known |
| message | struct; without fields (Empty): boolean, whether it is set |
| repeated | array |
| map<string, V> | map<string,V>, sorted by key |
| map of other keys | array<struct<key,value>>, sorted by key |
| google.protobuf.Timestamp | timestamp; nanoseconds are truncated to microseconds |
| google.protobuf.Duration | decimal(21,9), in seconds |
| google.protobuf.Int32Value and the other wrappers | the column of the wrapped type |
| google.protobuf.Struct, Value, ListValue | string: JSON, with sorted keys |
| google.protobuf.FieldMask | array<string> |
| google.protobuf.Any | struct<type_url,value> |

A field with presence (optional, a member of a oneof, a message, proto2) is null where it is not set; any
other is `not null` and has its default. A message that contains itself has no column type.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from penstock.errors import ConfigError
from penstock.pipeline.columns import Array, Decimal, Field, Map, Scalar, Struct, Type
from penstock.pipeline.schema import Schema

MAX_DEPTH, MAX_FIELDS = 32, 5000
_SHOWN = 200

_SCALARS: dict[int, tuple[str, Type]] = {
    FieldDescriptor.TYPE_INT32: ("int32", Scalar("int")),
    FieldDescriptor.TYPE_SINT32: ("sint32", Scalar("int")),
    FieldDescriptor.TYPE_SFIXED32: ("sfixed32", Scalar("int")),
    FieldDescriptor.TYPE_UINT32: ("uint32", Scalar("bigint")),
    FieldDescriptor.TYPE_FIXED32: ("fixed32", Scalar("bigint")),
    FieldDescriptor.TYPE_INT64: ("int64", Scalar("bigint")),
    FieldDescriptor.TYPE_SINT64: ("sint64", Scalar("bigint")),
    FieldDescriptor.TYPE_SFIXED64: ("sfixed64", Scalar("bigint")),
    FieldDescriptor.TYPE_UINT64: ("uint64", Decimal(20, 0)),
    FieldDescriptor.TYPE_FIXED64: ("fixed64", Decimal(20, 0)),
    FieldDescriptor.TYPE_FLOAT: ("float", Scalar("float")),
    FieldDescriptor.TYPE_DOUBLE: ("double", Scalar("double")),
    FieldDescriptor.TYPE_BOOL: ("bool", Scalar("boolean")),
    FieldDescriptor.TYPE_STRING: ("string", Scalar("string")),
    FieldDescriptor.TYPE_BYTES: ("bytes", Scalar("binary")),
    FieldDescriptor.TYPE_ENUM: ("enum", Scalar("string")),
}
_WELL_KNOWN: dict[str, tuple[str, Type]] = {
    "google.protobuf.Timestamp": ("timestamp", Scalar("timestamp")),
    "google.protobuf.Duration": ("duration", Decimal(21, 9)),
    "google.protobuf.FieldMask": ("mask", Array(Scalar("string"))),
    "google.protobuf.Struct": ("json", Scalar("string")),
    "google.protobuf.Value": ("json", Scalar("string")),
    "google.protobuf.ListValue": ("json", Scalar("string")),
}
_WRAPPERS = {
    f"google.protobuf.{name}Value"
    for name in ("Bool", "Int32", "UInt32", "Int64", "UInt64", "Float", "Double", "String", "Bytes")
}


@dataclass(frozen=True)
class Value:
    """One value of a field: its kind, its column type, and the columns inside it.

    `kind` is the name of a scalar type, or one of enum, struct, empty, timestamp, duration, wrapper,
    mask, json, map and pairs (a map whose keys are not text).
    """

    kind: str
    type: Type
    descriptor: Any
    inner: tuple[Column, ...] = ()

    @property
    def names(self) -> dict[int, str]:
        """Return the names of an enum's values."""
        return {number: value.name for number, value in self.descriptor.values_by_number.items()}


@dataclass(frozen=True)
class Column:
    """One field of a message: a column, or a field of a struct."""

    field: FieldDescriptor
    value: Value

    @property
    def name(self) -> str:
        """Return the name of the column."""
        return str(self.field.name)

    @property
    def repeated(self) -> bool:
        """Return whether the column is an array of its values."""
        return bool(self.field.is_repeated) and self.value.kind not in ("map", "pairs")

    @property
    def required(self) -> bool:
        """Return whether the column is never null."""
        return self.field.is_repeated or self.value.kind == "empty" or not self.field.has_presence

    @property
    def nullable(self) -> bool:
        """Return whether the field itself shows if it is set; a map's entry always has its value."""
        entry = self.field.containing_type.GetOptions().map_entry
        return bool(self.field.has_presence) and not entry

    @property
    def declared(self) -> Field:
        """Return the column as a declared one."""
        type_ = Array(self.value.type) if self.repeated else self.value.type
        return Field(self.name, type_, self.required)


def protobuf_table_schema(message: Descriptor) -> Schema:
    """Return the columns of a message.

    >>> from google.protobuf.timestamp_pb2 import Timestamp
    >>> protobuf_table_schema(Timestamp.DESCRIPTOR).ddl()
    'seconds bigint not null, nanos int not null'
    """
    return Schema(tuple(column.declared for column in message_columns(message)))


def message_columns(message: Descriptor) -> tuple[Column, ...]:
    """Return the columns of a message, in the order of its fields."""
    return _Reading(message).columns(message, "", (message,))


class _Reading:
    """Reads the fields of a message and of the messages inside it, up to a limit."""

    def __init__(self, message: Descriptor) -> None:
        self._message = message
        self._fields = 0

    def columns(
        self, message: Descriptor, path: str, around: tuple[Descriptor, ...]
    ) -> tuple[Column, ...]:
        # A few messages that contain each other twice can describe any number of columns.
        self._fields += len(message.fields)
        if self._fields > MAX_FIELDS:
            raise self._error(path, f"the message has more than {MAX_FIELDS} fields in all")
        return tuple(
            Column(field, self._value(field, f"{path}{field.name}", around))
            for field in message.fields
        )

    def _value(self, field: FieldDescriptor, path: str, around: tuple[Descriptor, ...]) -> Value:
        message = field.message_type
        if message is None:
            kind, type_ = _SCALARS[field.type]
            return Value(kind, type_, field.enum_type)
        if known := _WELL_KNOWN.get(message.full_name):
            return Value(*known, message, () if known[0] == "json" else message_columns(message))
        if message in around:
            reason = f"{message.full_name} contains itself, and a column type cannot"
            raise self._error(path, f"{reason}; use decode: python with a parser of your own")
        if len(around) > MAX_DEPTH:
            raise self._error(path, f"messages nest deeper than {MAX_DEPTH} levels")
        return _message_value(message, self.columns(message, f"{path}.", (*around, message)))

    def _error(self, path: str, reason: str) -> ConfigError:
        shown = path if len(path) < _SHOWN else f"{path[:_SHOWN]}..."
        return ConfigError(f"{self._message.full_name}, {shown}: {reason}")


def _message_value(message: Descriptor, inner: tuple[Column, ...]) -> Value:
    if message.full_name in _WRAPPERS:
        return Value("wrapper", inner[0].value.type, message, inner)
    if not inner:
        return Value("empty", Scalar("boolean"), message)
    if not message.GetOptions().map_entry:
        return Value("struct", Struct(tuple(each.declared for each in inner)), message, inner)
    key, value = (each.value.type for each in inner)
    if inner[0].value.kind == "string":
        return Value("map", Map(value), message, inner)
    pair = Struct((Field("key", key, required=True), Field("value", value, required=True)))
    return Value("pairs", Array(pair), message, inner)
