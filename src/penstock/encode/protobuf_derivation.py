"""The Protobuf schema of rows whose definition gives none.

Every scalar is `optional`, so that null differs from the default value. A field keeps the number that it
has in the schema before this one; a new field gets the next free number, and the number of a removed
field is reserved.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import pyarrow as pa
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
)

from penstock.encode.derived_schemas import no_form
from penstock.encode.well_known_messages import DATE, TIMESTAMP
from penstock.errors import ConfigError

Field = FieldDescriptorProto
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SCALARS: dict[pa.DataType, int] = {
    pa.bool_(): Field.TYPE_BOOL,
    pa.int8(): Field.TYPE_INT32,
    pa.int16(): Field.TYPE_INT32,
    pa.int32(): Field.TYPE_INT32,
    pa.int64(): Field.TYPE_INT64,
    pa.float32(): Field.TYPE_FLOAT,
    pa.float64(): Field.TYPE_DOUBLE,
    pa.string(): Field.TYPE_STRING,
    pa.binary(): Field.TYPE_BYTES,
}
_FILES = {TIMESTAMP: "google/protobuf/timestamp.proto", DATE: "google/type/date.proto"}
# Numbers that Protobuf keeps for itself.
_RESERVED = range(19_000, 20_000)


def derived_protobuf(
    type_: pa.DataType, name: str, previous: FileDescriptorProto | None = None
) -> FileDescriptorProto:
    """Return the file with the message of a row; `previous` is the schema before this one.

    >>> file = derived_protobuf(pa.struct({"id": pa.int64()}), "Order")
    >>> [(field.name, field.number) for field in file.message_type[0].field]
    [('id', 1)]
    """
    if not pa.types.is_struct(type_):
        raise ConfigError(f"Protobuf writes rows and structs, not one column of type {type_}")
    package, _, last = name.rpartition(".")
    file = FileDescriptorProto(name=f"{name}.proto", package=package, syntax="proto3")
    known = previous.message_type[0] if previous and previous.message_type else DescriptorProto()
    message = file.message_type.add(name=last)
    _Derivation(file).fill(_Scope(message, known, f".{name}", ""), type_)
    return file


class _Scope(NamedTuple):
    """A message that is being filled: itself, what it was before, its full name, its path in the row."""

    message: Any
    known: DescriptorProto
    full_name: str
    path: str

    def inner(self, name: str, path: str) -> _Scope:
        """Add a message inside this one."""
        before = next((each for each in self.known.nested_type if each.name == name), None)
        added = self.message.nested_type.add(name=name)
        return _Scope(added, before or DescriptorProto(), f"{self.full_name}.{name}", path)


class _Derivation:
    """Adds messages to a file."""

    def __init__(self, file: FileDescriptorProto) -> None:
        self._file = file

    def fill(self, scope: _Scope, type_: pa.DataType) -> None:
        """Add the fields of a struct to a message, with the numbers that are known."""
        numbers = _numbers([field.name for field in type_], scope.known)
        for column in sorted(type_, key=lambda each: numbers[each.name]):
            path = f"{scope.path}.{column.name}".lstrip(".")
            _check_name(column.name, path)
            field = scope.message.field.add(name=column.name, number=numbers[column.name])
            field.label = Field.LABEL_OPTIONAL
            self._column(scope, field, column.type, path)
        _add_oneofs(scope.message)
        _reserve(scope.message, scope.known)

    def _column(self, scope: _Scope, field: Any, type_: pa.DataType, path: str) -> None:
        if pa.types.is_list(type_):
            self._value(scope, field, type_.value_type, path)
            field.label = Field.LABEL_REPEATED
        elif pa.types.is_map(type_) and pa.types.is_string(type_.key_type):
            self._map(scope, field, type_.item_type, path)
        else:
            self._value(scope, field, type_, path)

    def _value(self, scope: _Scope, field: Any, type_: pa.DataType, path: str) -> None:
        if pa.types.is_struct(type_):
            inner = scope.inner(f"{path.rpartition('.')[2]}_message", path)
            field.type, field.type_name = Field.TYPE_MESSAGE, inner.full_name
            self.fill(inner, type_)
        elif well_known := _well_known(type_):
            field.type, field.type_name = Field.TYPE_MESSAGE, f".{well_known}"
            if _FILES[well_known] not in self._file.dependency:
                self._file.dependency.append(_FILES[well_known])
        else:
            field.type = _scalar(type_, path)

    def _map(self, scope: _Scope, field: Any, values: pa.DataType, path: str) -> None:
        entry = scope.inner(f"{_camel(field.name)}Entry", path)
        entry.message.options.map_entry = True
        label = Field.LABEL_OPTIONAL
        entry.message.field.add(name="key", number=1, label=label, type=Field.TYPE_STRING)
        value = entry.message.field.add(name="value", number=2, label=label)
        # The message of a struct goes next to the entry, which has nothing but its two fields.
        self._value(scope, value, values, path)
        field.type, field.type_name = Field.TYPE_MESSAGE, entry.full_name
        field.label = Field.LABEL_REPEATED


def _numbers(names: list[str], known: DescriptorProto) -> dict[str, int]:
    numbers = {field.name: field.number for field in known.field if field.name in names}
    taken = {field.number for field in known.field}
    taken |= {number for span in known.reserved_range for number in range(span.start, span.end)}
    following = max(taken, default=0) + 1
    for name in names:
        if name not in numbers:
            following = _RESERVED.stop if following in _RESERVED else following
            numbers[name] = following
            following += 1
    return numbers


def _reserve(message: Any, known: DescriptorProto) -> None:
    current = {field.number for field in message.field}
    reserved = {number for span in known.reserved_range for number in range(span.start, span.end)}
    removed = {field.number for field in known.field} - current
    for number in sorted(reserved | removed):
        message.reserved_range.add(start=number, end=number + 1)


def _add_oneofs(message: Any) -> None:
    """Declare the oneof that `optional` stands for, after all others, as protoc does."""
    taken = {field.name for field in message.field}
    for field in message.field:
        if field.label == Field.LABEL_OPTIONAL and field.type != Field.TYPE_MESSAGE:
            field.proto3_optional = True
            field.oneof_index = len(message.oneof_decl)
            message.oneof_decl.add(name=_free_name(f"_{field.name}", taken))


def _free_name(name: str, taken: set[str]) -> str:
    """Return a name that is not taken, with an X before it for each that is, as protoc does; take it."""
    while name in taken:
        name = f"X{name}"
    taken.add(name)
    return name


def _well_known(type_: pa.DataType) -> str | None:
    if pa.types.is_timestamp(type_) and type_.tz:
        return TIMESTAMP
    return DATE if pa.types.is_date(type_) else None


def _scalar(type_: pa.DataType, path: str) -> int:
    if type_ in _SCALARS:
        return int(_SCALARS[type_])
    if pa.types.is_decimal(type_) or pa.types.is_timestamp(type_):
        return int(Field.TYPE_STRING)
    raise no_form("Protobuf", type_, path)


def _check_name(name: str, path: str) -> None:
    if not _NAME.fullmatch(name):
        raise ConfigError(
            f"Protobuf has no name for the column {path!r}: a name has letters, digits and "
            "underscores; rename the column in a step"
        )


def _camel(name: str) -> str:
    """Return the name that protoc gives to the entries of a map.

    >>> _camel("by_name")
    'ByName'
    """
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))
