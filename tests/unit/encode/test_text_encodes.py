"""Rows as JSON, CSV, Arrow and DolphinDB, and single columns as Kafka's primitives."""

from __future__ import annotations

import base64
import csv
import json
import math
from datetime import date, datetime
from decimal import Decimal
from io import StringIO
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft7Validator
from tests.unit.encode.row_strategies import TEXTS, column, plain, rows

from penstock.encode.csv_encode import csv_encode
from penstock.encode.json_columns_text import json_encode
from penstock.encode.json_schema_derivation import derived_json_schema
from penstock.encode.message_encodes import arrow_encode, dolphindb_encode
from penstock.encode.primitive_encodes import PRIMITIVES, primitive_encode
from penstock.errors import ConfigError, RefusedError
from penstock.formats import find_format
from penstock.formats.arrow import Arrow
from penstock.formats.dolphindb import DolphinDB


def json_form(item: Any) -> Any:
    """Return a value as JSON has it."""
    if isinstance(item, dict):
        return {key: json_form(value) for key, value in item.items()}
    if isinstance(item, list):
        return [json_form(value) for value in item]
    if isinstance(item, bytes):
        return base64.b64encode(item).decode()
    if isinstance(item, datetime):
        zone = "Z" if item.tzinfo else ""
        return item.replace(tzinfo=None).isoformat(timespec="microseconds") + zone
    return item.isoformat() if isinstance(item, date) else item


def comparable(item: Any, other: Any) -> bool:
    """Compare decoded JSON with values: numbers by value, the others exactly."""
    if isinstance(item, dict) and isinstance(other, dict):
        return item.keys() == other.keys() and all(comparable(item[k], other[k]) for k in item)
    if isinstance(item, list) and isinstance(other, list):
        return len(item) == len(other) and all(map(comparable, item, other))
    if isinstance(other, Decimal):
        return isinstance(item, str) and Decimal(item) == other
    if isinstance(other, float) and abs(other) < 1e38 and np.float32(other) == other:
        with np.errstate(over="ignore"):
            return bool(
                np.float32(item) == other
            )  # a float has its shortest text, as Spark writes it
    return bool(item == other)


@settings(max_examples=40)
@given(rows())
def test_json_is_read_back_as_it_was_and_fits_the_derived_schema(column: pa.Array) -> None:
    validator = Draft7Validator(json.loads(derived_json_schema(column.type, "Row")))

    written = [json.loads(data) for data in json_encode(column.type)(column).to_pylist()]

    wanted = [json_form(plain(row, column.type)) for row in column.to_pylist()]
    assert comparable(written, wanted)
    assert all(validator.is_valid(row) for row in written)


def test_nulls_are_left_out_where_the_schema_does_not_allow_them() -> None:
    schema = {"properties": {"a": {"type": "integer"}, "b": {"type": ["null", "integer"]}}}
    schema["properties"] |= {"d": {"enum": [1]}, "e": {"enum": [None, 1]}}
    column = pa.array([dict.fromkeys("abcde"), dict.fromkeys("abcde", 1)])

    assert json_encode(column.type, schema)(column).to_pylist() == [
        b'{"b":null,"c":null,"e":null}',
        b'{"a":1,"b":1,"c":1,"d":1,"e":1}',
    ]


def test_a_decimal_is_a_number_where_the_schema_has_one() -> None:
    column = pa.array([{"d": Decimal("1.50")}])

    written = json_encode(column.type, {"properties": {"d": {"type": "number"}}})(column)

    assert written.to_pylist() == [b'{"d":1.50}']


def test_json_has_no_infinity_and_nan_is_null() -> None:
    encode = json_encode(pa.float64(), None, "x")

    assert encode(pa.array([math.nan, 1.5, -0.0])).to_pylist() == [b"null", b"1.5", b"-0.0"]
    with pytest.raises(RefusedError, match="column 'x': inf has no form in JSON"):
        encode(pa.array([float("inf")]))


@given(st.lists(st.tuples(st.none() | TEXTS, st.none() | st.integers(-5, 5)), min_size=1))
def test_pythons_csv_reader_reads_what_was_written(items: list[tuple[Any, Any]]) -> None:
    rows = pa.array(
        [{"a": text, "n": number} for text, number in items],
        pa.struct({"a": pa.string(), "n": pa.int64()}),
    )

    lines = [data.decode() for data in csv_encode(rows.type)(rows).to_pylist()]

    read = [next(csv.reader(StringIO(line, newline=""), strict=True)) for line in lines]
    assert read == [[text or "", "" if n is None else str(n)] for text, n in items]
    assert [line.startswith('"",') for line in lines] == [text == "" for text, _ in items]


def test_csv_takes_other_marks() -> None:
    type_ = pa.struct(dict.fromkeys("abc", pa.string()))
    rows = pa.array([{"a": "x;'y", "b": None, "c": "NULL"}], type_)
    encode = csv_encode(rows.type, delimiter=";", quote="'", null="NULL")

    assert encode(rows).to_pylist() == [b"'x;''y';NULL;'NULL'"]


def test_csv_has_names_for_numbers_without_digits_and_base64_for_bytes() -> None:
    type_ = pa.struct({"x": pa.float64(), "y": pa.float32(), "b": pa.binary()})
    numbers = [(math.nan, 0.5), (math.inf, -math.inf)]
    rows = pa.array([{"x": x, "y": y, "b": b"\xff"} for x, y in numbers], type_)

    assert csv_encode(type_)(rows).to_pylist() == [b"NaN,0.5,/w==", b"Infinity,-Infinity,/w=="]


def test_csv_refuses_nested_columns() -> None:
    with pytest.raises(ConfigError, match="CSV has no type for the column 'a'"):
        csv_encode(pa.struct({"a": pa.list_(pa.int64())}))


@settings(max_examples=40)
@given(rows())
def test_arrow_is_read_back_as_it_was(column: pa.Array) -> None:
    read = [Arrow().decode(data) for data in arrow_encode(column.type)(column).to_pylist()]

    assert [table.num_rows for table in read] == [1] * len(column)
    assert [table.to_pylist()[0] for table in read] == column.to_pylist()


def test_dolphindb_tables_have_one_row() -> None:
    moment = datetime(2024, 1, 31, 12, 0, 0, 250000)
    type_ = pa.struct({"n": pa.int64(), "at": pa.timestamp("us", "UTC"), "s": pa.string()})
    rows = column([{"n": 1, "at": moment, "s": "a"}, {"n": None, "at": None, "s": "b"}], type_)

    read = [DolphinDB().decode(data) for data in dolphindb_encode(type_)(rows).to_pylist()]

    assert [table.column("n").to_pylist() for table in read] == [[1], [None]]
    assert [table.column("s").to_pylist() for table in read] == [["a"], ["b"]]
    assert str(read[0].column("at")[0].as_py())[:23] == "2024-01-31 12:00:00.250"


def test_dolphindb_refuses_a_type_that_it_lacks_before_any_row() -> None:
    with pytest.raises(ConfigError, match="the column 'd': DolphinDB has no type"):
        dolphindb_encode(pa.struct({"d": pa.duration("us")}))


UUID_TEXT = "0F8FAD5B-D9CB-469F-A165-70867728950E"
SAMPLES: dict[str, pa.Array] = {
    "string": pa.array(["é", ""]),
    "short": pa.array([1, -2]),
    "int": pa.array([2**31 - 1]),
    "long": pa.array([-(2**63)]),
    "float": pa.array([1.5, 0.1]),
    "double": pa.array([0.1, 7]),
    "bytes": pa.array([b"\xff"]),
    "uuid": pa.array([UUID_TEXT]),
}


@pytest.mark.parametrize("name", PRIMITIVES)
def test_primitives_are_what_the_clients_formats_write(name: str) -> None:
    sample = SAMPLES[name]
    form = find_format("integer" if name == "int" else name)

    written = primitive_encode(name, sample.type, "c")(sample).to_pylist()

    read = [form.decode(data) for data in written]
    assert [form.encode(value) for value in read] == written
    if name not in ("float", "uuid"):
        assert read == sample.to_pylist()


@pytest.mark.parametrize(
    ("name", "value"),
    [("short", 2**15), ("int", -(2**31) - 1), ("uuid", "x"), ("float", 2**24 + 1)],
)
def test_a_primitive_that_does_not_fit_is_refused(name: str, value: Any) -> None:
    with pytest.raises(RefusedError, match="column 'c'"):
        primitive_encode(name, pa.array([value]).type, "c")(pa.array([value]))


@pytest.mark.parametrize(
    ("name", "type_"), [("long", pa.string()), ("string", pa.int64()), ("uuid", pa.binary())]
)
def test_a_primitive_of_another_type_is_refused_before_any_row(
    name: str, type_: pa.DataType
) -> None:
    with pytest.raises(ConfigError, match=f"the format '{name}' cannot write the column 'c'"):
        primitive_encode(name, type_, "c")
