"""JSON Schema both ways: Confluent's bytes are rows, its classes read rows, and rows come back."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.encode.json_schema_strategies import objects, row_form
from tests.unit.encode.row_strategies import plain, rows
from tests.unit.encode.shared_registry import SUBJECT, VALUE, SharedRegistry, examples
from tests.unit.encode.test_text_encodes import comparable, json_form

from penstock.decode.json_schema_decode import JsonSchemaColumns

COLUMNS = JsonSchemaColumns()


@st.composite
def schemas_and_values(draw: Any) -> tuple[Any, list[Any]]:
    schema, values = draw(objects())
    return {"title": "Order", **schema}, draw(st.lists(values, min_size=1, max_size=4))


def serialized(registry: SharedRegistry, schema: Any, values: list[Any]) -> list[bytes]:
    serialize = JSONSerializer(json.dumps(schema), registry.theirs)
    return [serialize(value, VALUE) for value in values]


def deserialized(registry: SharedRegistry, data: list[bytes]) -> list[Any]:
    text = registry.latest(SUBJECT).schema.text
    deserialize = JSONDeserializer(text, schema_registry_client=registry.theirs)
    return [deserialize(each, VALUE) for each in data]


def rows_of(column: pa.Array) -> list[Any]:
    return [plain(row, column.type) for row in column.to_pylist()]


@examples
@given(schemas_and_values())
def test_the_bytes_of_confluents_serializer_are_the_rows(given_: tuple[Any, list[Any]]) -> None:
    schema, values = given_
    registry = SharedRegistry()

    column = registry.read(COLUMNS, serialized(registry, schema, values))

    assert rows_of(column) == [row_form(value, schema) for value in values]


@examples
@given(schemas_and_values())
def test_confluents_deserializer_reads_rows_of_any_schema(given_: tuple[Any, list[Any]]) -> None:
    schema, values = given_
    registry = SharedRegistry()
    column = registry.read(COLUMNS, serialized(registry, schema, values))

    written = registry.written("json_schema", column, schema=schema)

    read = deserialized(registry, written)
    assert [row_form(value, schema) for value in read] == rows_of(column)
    assert registry.read(COLUMNS, written).equals(column)


@examples
@given(rows())
def test_rows_with_a_derived_schema_come_back_on_both_sides(column: pa.Array) -> None:
    registry = SharedRegistry()

    written = registry.written("json_schema", column)

    wanted = [json_form(row) for row in rows_of(column)]
    assert comparable(deserialized(registry, written), wanted)
    back = registry.read(COLUMNS, written)
    assert comparable([json_form(row) for row in rows_of(back)], wanted)
