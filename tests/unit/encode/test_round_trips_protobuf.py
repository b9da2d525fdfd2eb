"""Protobuf both ways: Confluent's bytes are rows, Confluent's classes read rows, and rows come back."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from hypothesis import given
from hypothesis import strategies as st
from tests.fuzz.protobuf_messages import add_field, class_of, fill, new_file, random_file
from tests.fuzz.protobuf_rows import expected, same
from tests.unit.encode.row_strategies import plain, rows
from tests.unit.encode.shared_registry import SUBJECT, VALUE, SharedRegistry, examples
from tests.unit.encode.test_protobuf_encode import expected as protobuf_form
from tests.unit.encode.test_protobuf_encode import value_of

from penstock.decode.protobuf_decode import ProtobufColumns
from penstock.errors import RefusedError
from penstock.formats.protobuf.protobuf_schema import Classes

COLUMNS = ProtobufColumns("t.M")
seeds = st.integers(0, 2**32)


def messages(random: Random) -> list[Any]:
    """Return messages of a generated type: nested, repeated, maps, oneofs, Google's own types."""
    message_class = class_of(random_file(random))
    made = [message_class() for _ in range(4)]
    for message in made:
        fill(random, message)
    return made


def serialized(registry: SharedRegistry, made: list[Any]) -> list[bytes]:
    serialize = ProtobufSerializer(type(made[0]), registry.theirs)
    return [serialize(message, VALUE) for message in made]


def deserialized(registry: SharedRegistry, message_class: Any, data: list[bytes]) -> list[Any]:
    deserialize = ProtobufDeserializer(message_class, {}, registry.theirs)
    return [deserialize(each, VALUE) for each in data]


@examples
@given(seeds)
def test_the_bytes_of_confluents_serializer_are_the_rows(seed: int) -> None:
    registry, made = SharedRegistry(), messages(Random(seed))

    column = registry.read(COLUMNS, serialized(registry, made))

    assert same(column.to_pylist(), [expected(message) for message in made])


@examples
@given(seeds)
def test_confluents_deserializer_reads_rows_of_any_schema(seed: int) -> None:
    registry, made = SharedRegistry(), messages(Random(seed))
    column = registry.read(COLUMNS, serialized(registry, made))

    written = registry.written("protobuf", column, use_latest=True, message="t.M")

    read = deserialized(registry, type(made[0]), written)
    assert same(column.to_pylist(), [expected(message) for message in read])
    assert same(registry.read(COLUMNS, written).to_pylist(), column.to_pylist())


@examples
@given(rows(lists_of_lists=False, null_items=False))
def test_rows_with_a_derived_schema_come_back_on_both_sides(column: pa.Array) -> None:
    registry = SharedRegistry()

    written = registry.written("protobuf", column)

    wanted = [protobuf_form(plain(row, column.type), column.type) for row in column.to_pylist()]
    message_class = Classes(registry, registry.latest(SUBJECT).schema).at([0])
    read = deserialized(registry, message_class, written)
    fields = message_class.DESCRIPTOR.fields
    assert [{f.name: value_of(each, f.name, f) for f in fields} for each in read] == wanted
    back = registry.read(ProtobufColumns(), written)
    assert [with_dates(plain(row, back.type)) for row in back.to_pylist()] == wanted


def test_a_message_need_not_be_the_first_of_its_file() -> None:
    file = new_file()
    for name in ("First", "M"):
        add_field(file.message_type.add(name=name), "int64", 1)
    message_class = class_of(file)
    registry = SharedRegistry()

    data = serialized(registry, [message_class(f1=5), message_class(f1=6)])

    assert registry.read(COLUMNS, data).to_pylist() == [{"f1": 5}, {"f1": 6}]


KNOWN = {
    "UInt64Value": pa.array([Decimal(2**64 - 1)], pa.decimal128(20, 0)),
    "Duration": pa.array([Decimal("-1.500000001")], pa.decimal128(21, 9)),
    "FieldMask": pa.array([["a", "b"]]),
    "Struct": pa.array(['{"a":[1,null]}']),
    "Empty": pa.array([True]),
}


@pytest.mark.parametrize("name", KNOWN)
def test_googles_types_are_written_from_the_columns_that_they_are_read_as(name: str) -> None:
    file = new_file()
    add_field(file.message_type.add(name="M"), f".google.protobuf.{name}", 1)
    registry, message_class = SharedRegistry(), class_of(file)
    serialized(registry, [message_class()])
    column = pa.StructArray.from_arrays([KNOWN[name]], ["f1"])

    written = registry.written("protobuf", column, use_latest=True)

    assert registry.read(COLUMNS, written).to_pylist() == column.to_pylist()


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("Duration", pa.array([Decimal(315_576_000_001)]), "more than the 315576000000 seconds"),
        ("Struct", pa.array(["[1]"]), "is not its JSON"),
        ("UInt64Value", pa.array([Decimal(-1)]), "Decimal\\('-1'\\) is beyond the range of uint64"),
    ],
)
def test_a_value_that_googles_type_lacks_is_refused(name: str, value: Any, message: str) -> None:
    file = new_file()
    add_field(file.message_type.add(name="M"), f".google.protobuf.{name}", 1)
    registry = SharedRegistry()
    serialized(registry, [class_of(file)()])

    with pytest.raises(RefusedError, match=message):
        rows_ = pa.StructArray.from_arrays([value], ["f1"])
        registry.written("protobuf", rows_, use_latest=True)


def with_dates(item: Any) -> Any:
    """Return a row with google.type.Date as a date; the decode reads it as any other message."""
    if isinstance(item, list):
        return [with_dates(each) for each in item]
    if not isinstance(item, dict):
        return item
    if item.keys() == {"year", "month", "day"}:
        return date(**item)
    return {key: with_dates(each) for key, each in item.items()}
