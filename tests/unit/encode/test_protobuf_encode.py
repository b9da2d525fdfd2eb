"""Rows as Protobuf: Google's own library reads them, whatever the columns are."""

from __future__ import annotations

from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from hypothesis import given, settings
from tests.unit.encode.row_strategies import plain, rows

from penstock.encode.protobuf_derivation import derived_protobuf
from penstock.encode.protobuf_encode import message_encode
from penstock.encode.text_forms import texts_of
from penstock.encode.well_known_messages import DATE, TIMESTAMP
from penstock.errors import ConfigError, RefusedError
from penstock.formats.protobuf.protobuf_schema import Classes, schema_of
from penstock.formats.registry import Registry, Schema

REGISTRY = Registry("http://unused")


def class_of(file: FileDescriptorProto) -> Any:
    class File:
        serialized_pb = file.SerializeToString()
        dependencies = ()

    schema: Schema = schema_of(File, lambda *_: 1)
    return Classes(REGISTRY, schema).at([0])


def value_of(message: Any, name: str, field: Any) -> Any:
    """Return a field of a message as the column had it."""
    if field.is_repeated and field.message_type and field.message_type.GetOptions().map_entry:
        value = field.message_type.fields_by_name["value"]
        return {key: single(item, value) for key, item in getattr(message, name).items()}
    if field.is_repeated:
        return [single(item, field) for item in getattr(message, name)]
    return single(getattr(message, name), field) if message.HasField(name) else None


def single(item: Any, field: Any) -> Any:
    if field.message_type is None:
        return item
    name = field.message_type.full_name
    if name == TIMESTAMP:
        return item.ToDatetime(timezone.utc)
    if name == DATE:
        return date(item.year, item.month, item.day)
    return {each.name: value_of(item, each.name, each) for each in field.message_type.fields}


def expected(item: Any, type_: pa.DataType) -> Any:
    """Return a value as Protobuf has it: without nulls for lists and maps, decimals as text."""
    if pa.types.is_list(type_):
        return [expected(each, type_.value_type) for each in item or ()]
    if pa.types.is_map(type_):
        return {key: expected(each, type_.item_type) for key, each in (item or {}).items()}
    if item is None:
        return None
    if pa.types.is_struct(type_):
        return {field.name: expected(item[field.name], field.type) for field in type_}
    text = pa.types.is_decimal(type_) or (pa.types.is_timestamp(type_) and not type_.tz)
    make = texts_of(type_)
    return make(pa.array([item], type_))[0].as_py() if text and make else item


@settings(max_examples=40)
@given(rows(lists_of_lists=False, null_items=False))
def test_googles_library_reads_what_was_written(column: pa.Array) -> None:
    message = class_of(derived_protobuf(column.type, "shop.Row"))

    written = message_encode(message.DESCRIPTOR, column.type)(column).to_pylist()

    read = [message.FromString(data) for data in written]
    fields = message.DESCRIPTOR.fields
    assert [{f.name: value_of(each, f.name, f) for f in fields} for each in read] == [
        expected(plain(row, column.type), column.type) for row in column.to_pylist()
    ]


def test_the_bytes_are_those_of_googles_library() -> None:
    type_ = pa.struct(
        {"id": pa.int64(), "at": pa.timestamp("us", "UTC"), "n": pa.list_(pa.int32())}
    )
    message = class_of(derived_protobuf(type_, "Row"))
    moment = datetime(1969, 12, 31, 23, 59, 59, 250000, timezone.utc)
    own = message(id=-5, n=[1, 300])
    own.at.FromDatetime(moment)
    column = pa.array([{"id": -5, "at": moment, "n": [1, 300]}], type_)

    assert message_encode(message.DESCRIPTOR, type_)(column).to_pylist() == [
        own.SerializeToString()
    ]


NEARLY = ("a", "_a")


def described(*fields: tuple[str, int, int], syntax: str = "proto3") -> Any:
    """Describe a message Row: name, type and label of each field, numbered from 1."""
    file = FileDescriptorProto(name="row.proto", syntax=syntax)
    level = file.enum_type.add(name="Level")
    level.value.add(name="LOW", number=0)
    level.value.add(name="HIGH", number=7)
    message = file.message_type.add(name="Row")
    for number, (name, type_, label) in enumerate(fields, 1):
        field = message.field.add(name=name, type=type_, label=label, number=number)
        if type_ == 14:
            field.type_name = ".Level"
    return class_of(file)


EVERY_NUMBER = [1, 2, 3, 4, 5, 6, 7, 13, 15, 16, 17, 18]


@pytest.mark.parametrize("label", [1, 3])
def test_every_kind_of_number_has_the_bytes_of_googles_library(label: int) -> None:
    message = described(*((f"f{kind}", kind, label) for kind in EVERY_NUMBER))
    values: list[Any] = [0, 1, 300]
    given = [[n, n + 1] for n in values] if label == 3 else values
    column = pa.array([{f"f{kind}": value for kind in EVERY_NUMBER} for value in given])

    written = message_encode(message.DESCRIPTOR, column.type)(column).to_pylist()

    assert written == [message(**row).SerializeToString() for row in column.to_pylist()]


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        (5, 2**31, "beyond the range of int32"),
        (13, -1, "beyond the range of uint32"),
        (4, -1, "beyond the range of uint64"),
        (6, -1, "beyond the range of fixed64"),
        (14, "MIDDLE", "'MIDDLE' is not a value of the enum Level"),
        (3, None, "column 'c.f' is null"),
    ],
)
def test_a_value_that_does_not_fit_is_refused(kind: int, value: Any, text: str) -> None:
    message = described(("f", kind, 1))
    type_ = pa.struct({"f": pa.string() if kind == 14 else pa.int64()})

    with pytest.raises(RefusedError, match=text):
        message_encode(message.DESCRIPTOR, type_, "c")(pa.array([{"f": value}], type_))


def test_an_enum_is_written_by_its_name() -> None:
    message = described(("f", 14, 1))
    column = pa.array([{"f": "HIGH"}, {"f": "LOW"}])

    assert message_encode(message.DESCRIPTOR, column.type)(column).to_pylist() == [b"\x08\x07", b""]


@pytest.mark.parametrize(
    ("type_", "text"),
    [
        (pa.struct({"g": pa.int64()}), "has no field for the column 'g'"),
        (
            pa.struct({"f": pa.string()}),
            "is string, and the Protobuf schema has a field of type int64",
        ),
        (pa.struct({"f": pa.list_(pa.int64())}), "has a field of type int64"),
        (pa.int64(), "the message Row"),
    ],
)
def test_a_type_that_does_not_fit_is_refused_before_any_row(type_: pa.DataType, text: str) -> None:
    message = described(("f", 3, 1))

    with pytest.raises(ConfigError, match=text):
        message_encode(message.DESCRIPTOR, type_)


def test_names_that_differ_in_an_underscore_are_names_of_a_message() -> None:
    column = pa.array([{"a": 1, "_a": 2}], pa.struct(dict.fromkeys(NEARLY, pa.int64())))
    message = class_of(derived_protobuf(column.type, "Row"))

    (data,) = message_encode(message.DESCRIPTOR, column.type)(column).to_pylist()

    assert data == message(a=1, _a=2).SerializeToString()


def numbers(file: FileDescriptorProto) -> dict[str, int]:
    return {field.name: field.number for field in file.message_type[0].field}


def test_fields_keep_their_numbers_when_columns_come_and_go() -> None:
    first = derived_protobuf(pa.struct({"a": pa.int64(), "b": pa.string()}), "Row")
    second = derived_protobuf(pa.struct({"new": pa.int64(), "b": pa.string()}), "Row", first)
    third = derived_protobuf(pa.struct({"a": pa.int64(), "b": pa.string()}), "Row", second)

    assert numbers(first) == {"a": 1, "b": 2}
    assert numbers(second) == {"b": 2, "new": 3}
    assert numbers(third) == {"b": 2, "a": 4}
    assert [span.start for span in third.message_type[0].reserved_range] == [1, 3]


def test_the_same_columns_give_the_same_schema() -> None:
    type_ = pa.struct({"a": pa.struct({"x": pa.int64()}), "m": pa.map_(pa.string(), pa.int32())})
    first = derived_protobuf(type_, "Row")

    assert derived_protobuf(type_, "Row", first) == first


@pytest.mark.parametrize("type_", [pa.list_(pa.list_(pa.int64())), pa.duration("us")])
def test_a_column_that_protobuf_has_no_type_for_is_refused(type_: pa.DataType) -> None:
    with pytest.raises(ConfigError, match="Protobuf has no type for the column 'c'"):
        derived_protobuf(pa.struct({"c": type_}), "Row")


def test_decimals_are_texts() -> None:
    column = pa.array([{"d": Decimal("1.50")}])
    message = class_of(derived_protobuf(column.type, "Row"))

    (data,) = message_encode(message.DESCRIPTOR, column.type)(column).to_pylist()

    assert message.FromString(data).d == "1.50"
