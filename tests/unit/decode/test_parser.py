"""What parsers return is fitted to the declared columns; what does not fit is one record's error."""

from __future__ import annotations

from collections import OrderedDict
from datetime import date
from typing import Any

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
