"""Rows as Avro: the bytes are those of fastavro and of the client's own format, for any schema."""

from __future__ import annotations

import json
from decimal import Decimal
from io import BytesIO
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given
from tests.unit.encode.row_strategies import plain, rows

from penstock.encode.avro_derivation import derived_avro
from penstock.encode.avro_encode import avro_encode
from penstock.errors import ConfigError, RefusedError
from penstock.formats.avro.avro_schema import Parsed
from penstock.formats.avro.avro_writer import Writers
from penstock.formats.registry import Registry, Schema

REGISTRY = Registry("http://unused")


class DerivedText(str):
    """The text of a schema, where other texts are names of types."""

    __slots__ = ()


def parsed(schema: Any) -> Parsed:
    return Parsed(
        Schema(schema if isinstance(schema, DerivedText) else json.dumps(schema)), REGISTRY
    )


def encoded(schema: Any, column: pa.Array) -> list[bytes]:
    made: list[bytes] = avro_encode(parsed(schema), column.type, "c")(column).to_pylist()
    return made


def read(schema: Any, data: bytes) -> Any:
    return fastavro.schemaless_reader(BytesIO(data), fastavro.parse_schema(schema), None)


@given(rows())
def test_rows_are_written_as_the_clients_own_format_writes_them(column: pa.Array) -> None:
    schema = parsed(DerivedText(derived_avro(column.type, "shop.Row")))
    write = Writers(schema.names).make(schema.root)
    expected = []
    for row in column.to_pylist():
        out = bytearray()
        write(plain(row, column.type), out)
        expected.append(bytes(out))

    assert avro_encode(schema, column.type)(column).to_pylist() == expected


@given(rows())
def test_fastavro_reads_what_was_written(column: pa.Array) -> None:
    text = DerivedText(derived_avro(column.type, "shop.Row"))

    read_rows = [read(json.loads(text), data) for data in encoded(text, column)]

    assert read_rows == [plain(row, column.type) for row in column.to_pylist()]


@pytest.mark.parametrize(
    ("schema", "column", "expected"),
    [
        ("int", pa.array([1, -2]), [1, -2]),
        ("double", pa.array([2**52]), [2.0**52]),
        ("float", pa.array([0.5]), [0.5]),
        (["null", "int", "long"], pa.array([2**40, None]), [2**40, None]),
        (["string", "null"], pa.array(["a", None]), ["a", None]),
        (["null", "double"], pa.array([3], pa.int32()), [3.0]),
        ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, pa.array(["B"]), ["B"]),
        ({"type": "fixed", "name": "F", "size": 2}, pa.array([b"ab"]), [b"ab"]),
        (
            {"type": "fixed", "name": "D", "size": 3, "logicalType": "decimal", "precision": 6},
            pa.array([Decimal(-999999), Decimal(1)]),
            [Decimal(-999999), Decimal(1)],
        ),
        (
            {"type": "fixed", "name": "D", "size": 20, "logicalType": "decimal", "precision": 38},
            pa.array([Decimal(-5)], pa.decimal128(38, 0)),
            [Decimal(-5)],
        ),
        ({"type": "int", "logicalType": "time-millis"}, pa.array([0]), None),
    ],
)
def test_columns_fit_wider_and_narrower_types_where_values_do(
    schema: Any, column: pa.Array, expected: Any
) -> None:
    read_values = [read(schema, data) for data in encoded(schema, column)]

    assert expected is None or read_values == expected


@pytest.mark.parametrize(
    ("schema", "column", "message"),
    [
        ("int", pa.array([1, 2**31]), "column 'c': 2147483648 is beyond the 32 bits"),
        ("float", pa.array([2**24 + 1]), "column 'c': 16777217 has no exact form as float"),
        ("float", pa.array([1e300]), "column 'c': 1e\\+300 has no exact form"),
        ("double", pa.array([2**63 - 1]), "no exact form as double"),
        ("long", pa.array([1, None]), "column 'c' is null"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, pa.array(["C"]), "'C' is not a symbol"),
        (
            {"type": "fixed", "name": "F", "size": 2},
            pa.array([b"abc"]),
            "the 2 bytes of the schema",
        ),
        ({"type": "string", "logicalType": "uuid"}, pa.array(["x"]), "'x' is not a UUID"),
        (
            {"type": "long", "logicalType": "timestamp-millis"},
            pa.array([1], pa.timestamp("us", "UTC")),
            "finer than the schema's unit, ms",
        ),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 3, "scale": 1},
            pa.array([Decimal("1.5"), Decimal("2.55")], pa.decimal128(9, 2)),
            r"Decimal\('2.55'\) is not a decimal\(3,1\)",
        ),
    ],
)
def test_a_value_that_does_not_fit_is_refused_with_its_column(
    schema: Any, column: pa.Array, message: str
) -> None:
    with pytest.raises(RefusedError, match=message):
        encoded(schema, column)


ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "note", "type": "string", "default": "none"},
    ],
}


def test_a_field_without_a_column_has_its_default() -> None:
    column = pa.array([{"id": 1}])

    assert [read(ORDER, data) for data in encoded(ORDER, column)] == [{"id": 1, "note": "none"}]


@pytest.mark.parametrize(
    ("schema", "type_", "message"),
    [
        (
            ORDER,
            pa.struct({"id": pa.int64(), "nota": pa.string()}),
            "no field .* 'c.nota'; did you",
        ),
        (ORDER, pa.struct({"note": pa.string()}), "'id' of the Avro record Order has no default"),
        (ORDER, pa.struct({"id": pa.string()}), "column 'c.id' is string, .* has long"),
        (["null", ORDER], pa.struct({"id": pa.string()}), "column 'c.id' is string, .* has long"),
        (["null", "int", "string"], pa.bool_(), "is bool, .* null or int or string"),
        ("bytes", pa.string(), "is string, and the Avro schema has bytes"),
        (
            {"type": "long", "logicalType": "timestamp-micros"},
            pa.timestamp("us"),
            "timestamp-micros",
        ),
        ({"type": "array", "items": "long"}, pa.int64(), "has array"),
    ],
)
def test_a_type_that_does_not_fit_is_refused_before_any_row(
    schema: Any, type_: pa.DataType, message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        avro_encode(parsed(schema), type_, "c")


def test_a_union_of_several_types_is_a_struct_with_one_value() -> None:
    union = ["null", "long", {"type": "array", "items": "string"}]
    type_ = pa.struct({"long": pa.int64(), "array": pa.list_(pa.string())})
    one = [{"long": 5, "array": None}, {"long": None, "array": ["a"]}, None]

    assert [read(union, data) for data in encoded(union, pa.array(one, type_))] == [5, ["a"], None]
    for bad in ({"long": 5, "array": []}, {"long": None, "array": None}):
        with pytest.raises(RefusedError, match="has not one value for its union"):
            encoded(union, pa.array([bad], type_))


def test_a_struct_with_a_field_of_its_records_name_is_that_record() -> None:
    schema = ["null", {"type": "record", "name": "a", "fields": [{"name": "a", "type": "int"}]}]

    assert [read(schema, data) for data in encoded(schema, pa.array([{"a": 1}]))] == [{"a": 1}]


def test_durations_and_uuids_are_written_as_the_decode_reads_them() -> None:
    duration = {"type": "fixed", "name": "D", "size": 12, "logicalType": "duration"}
    uuid = {"type": "fixed", "name": "U", "size": 16, "logicalType": "uuid"}
    parts = {"months": 1, "days": 2, "millis": 2**32 - 1}

    assert encoded(duration, pa.array([parts])) == [b"\1\0\0\0\2\0\0\0" + b"\xff" * 4]
    assert encoded(uuid, pa.array(["00000000-0000-0000-0000-0000000000ff"])) == [
        b"\0" * 15 + b"\xff"
    ]
    with pytest.raises(RefusedError, match=r"column 'c.days': -1 is beyond the range of uint32"):
        encoded(duration, pa.array([parts | {"days": -1}]))


def test_a_recursive_schema_ends_where_the_columns_end() -> None:
    node = {
        "type": "record",
        "name": "Node",
        "fields": [
            {"name": "n", "type": "int"},
            {"name": "next", "type": ["null", "Node"], "default": None},
        ],
    }
    rows = [{"n": 1, "next": {"n": 2}}, {"n": 3, "next": None}]

    read_rows = [read(node, data) for data in encoded(node, pa.array(rows))]

    assert read_rows == [{"n": 1, "next": {"n": 2, "next": None}}, {"n": 3, "next": None}]


@pytest.mark.parametrize("name", ["a b", "a.b", "é", "1a"])
def test_a_column_that_avro_has_no_name_for_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="rename the column"):
        derived_avro(pa.struct({name: pa.int64()}), "R")
