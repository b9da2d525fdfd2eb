"""JSON Schema documents as columns: one clear type each, or the JSON text of the value."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pyarrow as pa
import pytest

from penstock.decode.kernels.json.json_kernel import JsonKernel
from penstock.decode.kernels.json.json_schema_columns import json_schema_columns
from penstock.decode.kernels.json.strict import ReferenceDecoder
from penstock.errors import ConfigError
from penstock.pipeline.columns import JsonText
from penstock.pipeline.schema import Schema


def columns(properties: dict[str, Any], **more: Any) -> Schema:
    return json_schema_columns({"type": "object", "properties": properties, **more})


def type_of(node: Any, **more: Any) -> str:
    (field,) = columns({"v": node}, **more).fields
    return f"JSON {field.type.ddl()}" if isinstance(field.type, JsonText) else field.type.ddl()


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        ({"type": "integer"}, "bigint"),
        ({"type": "number"}, "double"),
        ({"type": "boolean"}, "boolean"),
        ({"type": "string"}, "string"),
        ({"type": "string", "format": "date-time"}, "timestamp"),
        ({"type": "string", "format": "date"}, "date"),
        ({"type": "string", "format": "uuid"}, "string"),
        ({"enum": ["a", "b", None]}, "string"),
        ({"const": "a"}, "string"),
        ({"type": ["null", "integer"]}, "bigint"),
        ({"anyOf": [{"type": "null"}, {"type": "number"}]}, "double"),
        ({"oneOf": [{"type": "string", "format": "date"}, {"type": "null"}]}, "date"),
        ({"allOf": [{"type": "integer"}]}, "bigint"),
        ({"type": "array", "items": {"type": "integer"}}, "array<bigint>"),
        ({"type": "object", "properties": {"a": {"type": "integer"}}}, "struct<a:bigint>"),
        ({"properties": {"a": {"type": "integer"}}}, "struct<a:bigint>"),
        ({"type": "object", "additionalProperties": {"type": "number"}}, "map<string,double>"),
        ({}, "JSON string"),
        (True, "JSON string"),
        ({"type": "object"}, "JSON string"),
        ({"type": "object", "additionalProperties": True}, "JSON string"),
        ({"type": ["integer", "string"]}, "JSON string"),
        ({"oneOf": [{"type": "integer"}, {"type": "string"}]}, "JSON string"),
        ({"type": "array", "items": [{"type": "integer"}]}, "JSON string"),
        ({"type": "array", "prefixItems": [{"type": "integer"}]}, "JSON string"),
        ({"enum": ["a", 1]}, "JSON string"),
    ],
)
def test_a_value_has_one_clear_type_or_is_kept_as_text(node: Any, expected: str) -> None:
    assert type_of(node) == expected


def test_required_values_that_cannot_be_null_are_required_columns() -> None:
    schema = columns(
        {
            "a": {"type": "integer"},
            "b": {"type": ["null", "integer"]},
            "c": {"type": "integer", "nullable": True},
            "d": {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]},
            "e": {},
            "f": {"type": "string"},
        },
        required=["a", "b", "c", "d", "e"],
    )
    assert schema.ddl() == (
        "a bigint not null, b bigint, c bigint, d struct<x:bigint> not null, e string, f string"
    )


def test_references_are_followed() -> None:
    definitions = {"n": {"type": "integer"}, "m/m": {"$ref": "#/$defs/n"}}
    assert type_of({"$ref": "#/$defs/m~1m"}, **{"$defs": definitions}) == "bigint"
    assert type_of({"$ref": "#/definitions/n"}, definitions=definitions) == "bigint"
    assert type_of({"type": "array", "items": {"$ref": "#/$defs/n"}}, **{"$defs": definitions}) == (
        "array<bigint>"
    )


def test_references_to_other_documents_are_relative_to_them() -> None:
    other = {"$defs": {"n": {"type": "integer"}}, "properties": {"n": {"$ref": "#/$defs/n"}}}
    schema = {"properties": {"a": {"$ref": "other.json"}, "b": {"$ref": "other.json#/$defs/n"}}}
    given = json_schema_columns(json.dumps(schema), {"other.json": json.dumps(other)})
    assert given.ddl() == "a struct<n:bigint>, b bigint"
    assert json_schema_columns({"$ref": "other.json"}, {"other.json": other}).ddl() == "n bigint"


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ("{", "the schema is not JSON"),
        ({"type": "string"}, "the schema is not an object with properties"),
        ({"properties": {"a": 1}}, "a: not a JSON Schema: 1"),
        ({"properties": {"a": {"$ref": "#"}}}, r"a.a: '#' refers to itself"),
        ({"properties": {"a": {"$ref": "#/properties/a"}}}, "a: '#/properties/a' refers to itself"),
        ({"properties": {"a": {"$ref": "x.json"}}}, "a: 'x.json' is not among the references"),
        ({"properties": {"a": {"$ref": "#/$defs/x"}}}, "a: '#/\\$defs/x' is not in the document"),
        ({"properties": {"a": {}, "A": {}}}, "Spark ignores case"),
        (
            {
                "properties": {"a": {"$ref": "#/$defs/tree"}},
                "$defs": {
                    "tree": {
                        "properties": {"next": {"type": "array", "items": {"$ref": "#/$defs/tree"}}}
                    }
                },
            },
            r"a.next\[\]: '#/\$defs/tree' refers to itself, and a table has a fixed",
        ),
    ],
)
def test_a_schema_without_columns_is_refused_with_its_path(schema: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        json_schema_columns(schema)


def test_a_small_schema_that_describes_a_huge_table_is_refused() -> None:
    definitions = {
        f"d{at}": {"properties": {name: {"$ref": f"#/$defs/d{at + 1}"} for name in "abcdefgh"}}
        for at in range(20)
    }
    definitions["d20"] = {"properties": {"x": {"type": "integer"}}}
    with pytest.raises(ConfigError, match="more than 10000 fields"):
        columns({"a": {"$ref": "#/$defs/d0"}}, **{"$defs": definitions})


def test_the_json_kernel_keeps_the_text_of_values_without_a_type() -> None:
    schema = columns(
        {"v": {}, "s": {"properties": {"w": {}}}, "l": {"type": "array"}, "n": {"type": "integer"}}
    )
    records = [
        b'{"v": {"a" : [1, 2.50]}, "s": {"w": "x"}, "l": [1, "a", null], "n": 1}',
        b'{"v": null, "n": 2}',
        b'{"v": "\\u00e9", "n": 3}',
    ]
    expected = [
        {"v": '{"a" : [1, 2.50]}', "s": {"w": '"x"'}, "l": ["1", '"a"', None], "n": 1},
        {"v": None, "s": None, "l": None, "n": 2},
        {"v": '"\\u00e9"', "s": None, "l": None, "n": 3},
    ]
    for given in (records, [*records, b'{"n": "x"}']):
        rows, failures = pickle.loads(pickle.dumps(JsonKernel(schema))).decode(pa.array(given))
        assert rows.to_pylist() == expected
        assert [failure.index for failure in failures] == [3][: len(given) - 3]
    reference = ReferenceDecoder(schema)
    assert [reference.decode(record) for record in records] == expected
