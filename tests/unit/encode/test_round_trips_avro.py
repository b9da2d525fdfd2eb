"""Avro both ways: Confluent's bytes are rows, rows are Confluent's bytes, and rows come back."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.decode.avro_reference import parsed, same
from tests.unit.decode.avro_reference import plain as client_form
from tests.unit.decode.avro_strategies import records
from tests.unit.encode.row_strategies import plain, rows
from tests.unit.encode.shared_registry import VALUE, SharedRegistry, examples

from penstock.decode.avro_decode import AvroColumns


@st.composite
def schemas_and_values(draw: Any) -> tuple[Any, list[Any]]:
    schema, values = draw(records())
    return schema, draw(st.lists(values, min_size=1, max_size=4))


def serialized(registry: SharedRegistry, schema: Any, values: list[Any]) -> list[bytes]:
    serialize = AvroSerializer(registry.theirs, json.dumps(schema))
    return [serialize(value, VALUE) for value in values]


def in_client_form(column: pa.Array, schema: Any) -> list[Any]:
    read = parsed(schema)
    return [client_form(row, read.root, read.names) for row in column.to_pylist()]


@examples
@given(schemas_and_values())
def test_the_bytes_of_confluents_serializer_are_the_rows(given_: tuple[Any, list[Any]]) -> None:
    schema, values = given_
    registry = SharedRegistry()

    column = registry.read(AvroColumns(), serialized(registry, schema, values))

    assert same(in_client_form(column, schema), values)


@examples
@given(schemas_and_values())
def test_rows_of_any_schema_are_the_bytes_of_confluents_serializer(
    given_: tuple[Any, list[Any]],
) -> None:
    schema, values = given_
    registry = SharedRegistry()
    data = serialized(registry, schema, values)

    written = registry.written("avro", registry.read(AvroColumns(), data), schema=schema)

    deserialize = AvroDeserializer(registry.theirs)
    assert written == data
    assert same([deserialize(each, VALUE) for each in written], values)


@examples
@given(rows())
def test_rows_with_a_derived_schema_come_back_on_both_sides(column: pa.Array) -> None:
    registry = SharedRegistry()

    written = registry.written("avro", column)

    wanted = [plain(row, column.type) for row in column.to_pylist()]
    deserialize = AvroDeserializer(registry.theirs)
    assert [deserialize(each, VALUE) for each in written] == wanted
    back = registry.read(AvroColumns(), written)
    assert [plain(row, back.type) for row in back.to_pylist()] == wanted
