"""What parsers return is fitted to the declared columns; what does not fit is one record's error."""

from __future__ import annotations

from collections import OrderedDict
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from penstock.decode.kernels.outcome import Decoded
from penstock.decode.kernels.parser import ParserKernel, TableParserKernel
from penstock.pipeline.schema import Schema
from penstock.pipeline.values import Function

COLUMNS = "n int, text string"


def records(*values: bytes | None) -> pa.RecordBatch:
    keys = [b"k%d" % index for index in range(len(values))]
    arrays = [
        pa.array(values, pa.binary()),
        pa.array(keys, pa.binary()),
        pa.array(["t"] * len(keys)),
    ]
    return pa.RecordBatch.from_arrays(arrays, ["value", "key", "topic"])


def parsed(function: Any, *values: bytes | None, schema: str = COLUMNS) -> Decoded:
    kernel = ParserKernel(Function("m:f", value=function), Schema.parse(schema), ["value"])
    return kernel(records(*values))


def as_tables(function: Any, *values: bytes | None, form: Any = "pandas") -> Decoded:
    kernel = TableParserKernel(Function("m:f", value=function), Schema.parse(COLUMNS), form)
    return kernel(records(*values))


FORMS = {
    "a dict": {"n": 1, "text": "a"},
    "another mapping": OrderedDict(n=1, text="a"),
    "a tuple": (1, "a"),
    "a list": [{"n": 1, "text": "a"}],
    "a frame": pd.DataFrame({"text": ["a"], "n": [1]}),
    "a filtered frame": pd.DataFrame({"n": [0, 1], "text": ["", "a"]}).query("n == 1"),
    "an Arrow table": pa.table({"n": [1], "text": ["a"]}),
    "a batch": pa.record_batch({"n": pa.array([1], pa.int8()), "text": ["a"]}),
}


@pytest.mark.parametrize("result", FORMS.values(), ids=FORMS)
def test_rows_come_in_many_forms(result: Any) -> None:
    for found in (parsed(lambda _: result, b"x"), as_tables(lambda _: result, b"x")):
        assert found.rows.to_pylist() == [{"n": 1, "text": "a"}]
        assert list(found.failures) == []


WRONG = {
    "text for a number": ({"n": "1"}, "the column 'n': '1' does not fit int; the row: {'n': '1'}"),
    "too large": (
        {"n": 2**40},
        f"the column 'n': {2**40} does not fit int; the row: {{'n': {2**40}}}",
    ),
    "an unknown column": ({"m": 1}, "the parser returned the column 'm', which is not declared"),
    "too few values": ((1,), "the parser returned 1 values; the schema has 2 columns: n, text"),
    "no row": (5, "the parser returned int; a row is a dict or a tuple"),
    "a frame with text": (pd.DataFrame({"n": ["1"]}), "the column 'n'"),
    "a table with text": (pa.table({"n": ["1"]}), "the column 'n'"),
    "a fraction": (pa.table({"n": [1.5]}), "1.5"),
}


@pytest.mark.parametrize(("result", "message"), WRONG.values(), ids=WRONG)
def test_what_does_not_fit_is_refused_with_the_row(result: Any, message: str) -> None:
    def parse(value: str) -> Any:
        return (0, "good") if value == "good" else result

    found = parsed(parse, b"good", b"bad", b"good")
    assert found.rows.to_pylist() == [{"n": 0, "text": "good"}] * 2
    assert [failure.index for failure in found.failures] == [1]
    assert message in found.failures[0].message


EAST = timezone(timedelta(hours=8))
CHANGED = {
    "a whole number for a time": ("timestamp", 1700000000000),
    "a fraction for a time": ("timestamp", 1700000000.5),
    "nanoseconds for a time": ("timestamp", 1700000000000000000),
    "a fraction for a bigint": ("bigint", Decimal("1.5")),
    "a fraction for an int": ("int", 1.5),
    "a number that becomes infinite": ("float", 1e300),
    "a zone that is lost": ("timestamp_ntz", datetime(2024, 1, 1, tzinfo=EAST)),
    "a time of day for a date": ("date", datetime(2024, 1, 1, 23)),
    "a number for a date": ("date", 19000),
    "a required field that is missing": ("struct<x:int not null>", {}),
    "a required field that is null": ("struct<x:int not null>", {"x": None}),
    "a field that is not declared": ("struct<x:int,y:int>", {"x": 1, "z": 3}),
    "a fraction in a list": ("array<int>", [1, 1.5]),
    "a fraction in a map": ("map<string,int>", {"a": 1.5}),
    "a fraction in an entry of a map": ("map<string,int>", [{"key": "a", "value": 1.5}]),
    "a number for a time in a struct": ("struct<t:array<timestamp>>", {"t": [1]}),
    "a text for a list": ("array<string>", "ab"),
    "digits that pandas counts": ("timestamp", pd.Timestamp(1700000000000000001, unit="ns")),
}


@pytest.mark.parametrize(("type_", "value"), CHANGED.values(), ids=CHANGED)
def test_a_value_that_the_column_would_change_is_refused(type_: str, value: Any) -> None:
    found = parsed(lambda _: {"v": value}, b"x", schema=f"v {type_}")
    assert found.rows.num_rows == 0
    assert found.failures[0].message.startswith("the column 'v'")
    frame = pd.DataFrame({"v": pd.Series([value], dtype=object)})
    assert len(parsed(lambda _: frame, b"x", schema=f"v {type_}").failures) == 1


KEPT = {
    "a whole float": ("int", 2.0, 2),
    "a whole decimal": ("bigint", Decimal(2), 2),
    "a number of numpy": ("int", np.int16(2), 2),
    "a whole number for a double": ("double", 2, 2.0),
    "a rounded float": ("float", 0.1, float(np.float32(0.1))),
    "an infinite float": ("float", float("inf"), float("inf")),
    "a time at midnight": ("date", datetime(2024, 1, 1), date(2024, 1, 1)),
    "a time without a zone": (
        "timestamp",
        datetime(2024, 1, 1),
        datetime(2024, 1, 1, tzinfo=timezone.utc),
    ),
    "a whole number for a decimal": ("decimal(5,2)", 1, Decimal("1.00")),
    "pairs for a map": ("map<string,int>", [("a", 1)], [("a", 1)]),
    "a mapping for a map": ("map<string,int>", {"a": None}, [("a", None)]),
    "entries for a map": ("map<string,int>", [{"key": "a", "value": 1}], [("a", 1)]),
    "a tuple for a struct": ("struct<x:int not null,y:int>", (1, None), {"x": 1, "y": None}),
    "a struct with less": ("struct<x:int,y:int>", {"x": 1}, {"x": 1, "y": None}),
    "lists in lists": (
        "array<array<date>>",
        [[date(2024, 1, 1)], None],
        [[date(2024, 1, 1)], None],
    ),
}


@pytest.mark.parametrize(("type_", "value", "expected"), KEPT.values(), ids=KEPT)
def test_a_value_that_stays_the_same_is_taken(type_: str, value: Any, expected: Any) -> None:
    frame = pd.DataFrame({"v": pd.Series([value, None], dtype=object)})
    for result in ([{"v": value}, {"v": None}], frame):
        found = parsed(lambda _, rows=result: rows, b"x", schema=f"v {type_}")
        assert list(found.failures) == []
        assert found.rows.column("v").to_pylist() == [expected, None]


TABLES = {
    "numbers for a text": ("string", pa.array([1]), None),
    "numbers for times": ("timestamp", pa.array([1700000000000]), None),
    "doubles that become infinite": ("float", pa.array([1e300]), None),
    "times with a zone": ("timestamp_ntz", pa.array([0], pa.timestamp("us", "Asia/Tokyo")), None),
    "times of day": ("date", pa.array([3600], pa.timestamp("s")), None),
    "a field that is not declared": ("struct<x:int>", pa.array([{"x": 1, "z": 3}]), None),
    "whole numbers for a decimal": ("decimal(5,2)", pa.array([1]), Decimal("1.00")),
    "doubles for floats": ("array<float>", pa.array([[0.5, 0.1]]), [0.5, float(np.float32(0.1))]),
    "midnights": ("date", pa.array([86400], pa.timestamp("s", "UTC")), date(1970, 1, 2)),
    "bytes for a text": ("string", pa.array([b"a"]), "a"),
}


@pytest.mark.parametrize(("type_", "column", "expected"), TABLES.values(), ids=TABLES)
def test_a_column_of_a_table_is_cast_where_no_value_changes(
    type_: str, column: pa.Array, expected: Any
) -> None:
    found = parsed(lambda _: pa.table({"v": column}), b"x", schema=f"v {type_}")
    if expected is None:
        assert found.failures[0].message.startswith("the column 'v'")
    else:
        assert found.rows.to_pylist() == [{"v": expected}]


def test_a_frame_of_numbers_is_taken_for_decimals() -> None:
    found = parsed(lambda _: pd.DataFrame({"v": [1]}), b"x", schema="v decimal(5,2)")
    assert found.rows.to_pylist() == [{"v": Decimal("1.00")}]


def test_a_column_of_nulls_is_taken_whatever_its_type_in_the_frame() -> None:
    frame = pd.DataFrame({"b": [float("nan")], "t": [float("nan")], "n": [1]})
    found = parsed(lambda _: frame, b"x", schema="b boolean, t timestamp, n int")
    assert found.rows.to_pylist() == [{"b": None, "t": None, "n": 1}]


def test_required_columns_are_named_with_the_row() -> None:
    found = parsed(lambda _: {"text": "a"}, b"x", schema="n int not null, text string")
    assert found.failures[0].message == (
        "the column 'n' is required, and the parser gave no value; the row: {'text': 'a'}"
    )


@pytest.mark.parametrize("form", ["pandas", "arrow"])
def test_a_parser_of_tables_sees_payload_key_and_topic(form: str) -> None:
    seen = []

    def parse(table: Any) -> Any:
        seen.append(list(table.columns) if form == "pandas" else table.column_names)
        return [(index, None) for index in range(len(table))]

    assert as_tables(parse, b"a", b"b", form=form).rows.num_rows == 2
    assert seen == [["payload", "key", "topic"]]


def test_the_records_on_which_a_parser_of_tables_fails_are_found() -> None:
    def parse(table: pd.DataFrame) -> Any:
        if (table.payload == "bad").any():
            raise RuntimeError("a bad one is in it")
        return pd.DataFrame({"n": table.payload.astype("int32")})

    found = as_tables(parse, b"1", b"bad", b"3", b"4", b"bad", b"\xff")
    assert [row["n"] for row in found.rows.to_pylist()] == [1, 3, 4]
    assert [failure.index for failure in found.failures] == [1, 4, 5]
    assert [failure.error_type for failure in found.failures[:2]] == ["RuntimeError"] * 2


def test_frames_bring_their_types() -> None:
    frame = pd.DataFrame(
        {"d": pd.to_datetime(["2024-08-30"]), "n": [None], "x": [1.0], "b": [True]}
    )
    found = parsed(lambda _: frame, b"x", schema="d date, n int, x bigint, b boolean")
    assert found.rows.to_pylist() == [{"d": date(2024, 8, 30), "n": None, "x": 1, "b": True}]


def as_hex(value: bytes, key: bytes | None, topic: str) -> dict[str, Any]:
    return {"v": f"{value.hex()}/{key!r}/{topic}"}


def hex_table(table: pa.Table) -> pa.Table:
    return pa.table({"v": [each.hex() for each in table.column("payload").to_pylist()]})


def test_a_parser_gets_bytes_where_that_is_configured() -> None:
    batch = pa.record_batch({"value": [b"\xff", b"a"], "key": [b"\xfe", None], "topic": ["t", "t"]})
    columns = ["value", "key", "topic"]
    kernel = ParserKernel(Function("x", value=as_hex), Schema.parse("v string"), columns, "bytes")
    expected = ["ff/b'\\xfe'/t", "61/None/t"]
    assert kernel(batch).rows.column("v").to_pylist() == expected
    assert kernel._one_by_one(batch).rows.column("v").to_pylist() == expected
    for form in ("arrow", "pandas"):
        of_table = hex_table if form == "arrow" else lambda table: hex_table(pa.table(table))
        function = Function("x", value=of_table)
        tables = TableParserKernel(function, Schema.parse("v string"), form, "bytes")
        assert tables(batch).rows.column("v").to_pylist() == ["ff", "61"]
