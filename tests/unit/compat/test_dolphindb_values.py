"""What DolphinDB's types become in numpy and pandas, and JSON of tables."""

from __future__ import annotations

import json
from datetime import date, datetime, time
from decimal import Decimal
from ipaddress import IPv4Address
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from tests.integration.dolphindb.documented import documented

from penstock.compat import dolphindb as kafka
from penstock.compat.dolphindb.consuming import answer_of
from penstock.compat.dolphindb.dolphindb_values import to_numpy, to_python
from penstock.errors import ConfigError, FormatError
from penstock.formats import find_format
from penstock.formats.dolphindb import (
    AnyVector,
    DateHour,
    DateMinute,
    DateTime,
    Int,
    Int128,
    Matrix,
    Minute,
    Month,
    NanoTime,
    Null,
    Pair,
    Second,
    Symbol,
    Time,
    Timestamp,
    WireType,
)
from penstock.formats.format_values import Shape, cut, rows, shape
from penstock.record import Record

DOLPHINDB = find_format("dolphindb")


def through(value: Any) -> Any:
    """A value that went through a message."""
    return to_python(DOLPHINDB.decode(DOLPHINDB.encode(value)))


@pytest.mark.parametrize(
    ("array", "dtype", "items"),
    [
        (pa.array([True, False]), "bool", [True, False]),
        (pa.array([True, None]), "object", [True, None]),
        (pa.array([1, 2], pa.int8()), "int8", [1, 2]),
        (pa.array([1, 2]), "int64", [1, 2]),
        (pa.array([2**60 + 1, None]), "object", [2**60 + 1, None]),
        (pa.array([1.5, 2.5], pa.float32()), "float32", [1.5, 2.5]),
        (pa.array(["a", ""]), "object", ["a", ""]),
        (pa.array(["a", "b", "a"]).dictionary_encode(), "object", ["a", "b", "a"]),
        (pa.array([b"\xff"]), "object", [b"\xff"]),
        (pa.array([date(2024, 8, 30), None]), "datetime64[D]", [date(2024, 8, 30), None]),
        (pa.array([Decimal("1.50"), None]), "object", [Decimal("1.50"), None]),
        (pa.array([time(1, 2, 3), None], pa.time32("s")), "object", [time(1, 2, 3), None]),
        (pa.array([UUID(int=7).bytes], pa.uuid()), "object", [UUID(int=7)]),
        (pa.nulls(2), "object", [None, None]),
    ],
)  # fmt: skip
def test_a_vector_keeps_every_value(array: pa.Array, dtype: str, items: list[Any]) -> None:
    found = through(array)
    assert (str(found.dtype), found.tolist()) == (dtype, items)
    found[0] = found[-1]


def test_small_whole_numbers_with_nulls_are_floats() -> None:
    found = through(pa.array([7, None], pa.int32()))
    assert found.dtype == np.float64
    assert (found[0], np.isnan(found[1])) == (7, True)


@pytest.mark.parametrize("unit", ["M", "h", "m", "s", "ms", "ns"])
def test_moments_keep_their_unit(unit: str) -> None:
    moments = np.array(["2024-08-30", "NaT"], dtype=f"M8[{unit}]")
    found = through(moments)
    assert found.dtype == moments.dtype
    np.testing.assert_array_equal(found, moments)


def test_a_table_becomes_a_data_frame() -> None:
    table = pa.table(
        {
            "day": pa.array([date(2024, 8, 30)]),
            "sym": pa.array(["a"]).dictionary_encode(),
            "rows": pa.array([[1, 2]], pa.list_(pa.int32())),
            "price": pa.array([Decimal("1.5")]),
        }
    )
    found = through(table)
    assert [str(kind) for kind in found.dtypes] == ["datetime64[s]", "object", "object", "object"]
    assert found["rows"][0].tolist() == [1, 2]
    assert found["price"][0] == Decimal("1.5")


def test_the_other_forms_become_pythons_own() -> None:
    mixed = through(AnyVector([1, "a", [1.5, 2.5], pa.table({"x": [1]})]))
    assert mixed[:2] == [1, "a"]
    assert mixed[2].tolist() == [1.5, 2.5]
    assert mixed[3].to_dict("list") == {"x": [1]}
    assert through({"a": 1, "b": 2}) == {"a": 1, "b": 2}
    assert through({1, 2}) == {1, 2}
    assert through(Pair(pa.array([3, 5]))).tolist() == [3, 5]
    assert through(np.array([[1, 2, 3], [4, 5, 6]])).tolist() == [[1, 2, 3], [4, 5, 6]]
    assert through({date(2024, 8, 30): 1}) == {np.datetime64("2024-08-30"): 1}
    assert through([IPv4Address("10.0.0.1")]).tolist() == [IPv4Address("10.0.0.1")]


@pytest.mark.parametrize(
    ("scalar", "given"),
    [
        (None, None),
        (True, True),
        (Int(7), 7),
        (2**40, 2**40),
        (1.5, 1.5),
        ("text", "text"),
        (Symbol("s"), "s"),
        (b"\xff", b"\xff"),
        (date(2012, 6, 13), np.datetime64("2012-06-13", "D")),
        (Month(2012, 6, 1), np.datetime64("2012-06", "M")),
        (Time(13, 30, 10, 8000), np.datetime64("1970-01-01T13:30:10.008", "ms")),
        (Minute(13, 30), np.datetime64("1970-01-01T13:30", "m")),
        (Second(13, 30, 10), np.datetime64("1970-01-01T13:30:10", "s")),
        (DateHour(2012, 6, 13, 13), np.datetime64("2012-06-13T13", "h")),
        (DateMinute(2012, 6, 13, 13, 30), np.datetime64("2012-06-13T13:30", "m")),
        (DateTime(2012, 6, 13, 13, 30, 10), np.datetime64("2012-06-13T13:30:10", "s")),
        (Timestamp(2012, 6, 13, 13, 30, 10, 8000), np.datetime64("2012-06-13T13:30:10.008", "ms")),
        (time(13, 30), np.datetime64("1970-01-01T13:30", "ns")),
        (NanoTime(7), np.datetime64(7, "ns")),
        (datetime(2012, 6, 13), np.datetime64("2012-06-13", "ns")),
        (np.datetime64(7, "ns"), np.datetime64(7, "ns")),
        (UUID(int=7), "00000000-0000-0000-0000-000000000007"),
        (IPv4Address("10.0.0.1"), "10.0.0.1"),
        (Int128(10), "0000000000000000000000000000000a"),
        (Decimal("1.50"), Decimal("1.50")),
        (Null("INT"), None),
        (Null("MONTH"), None),
    ],
)
def test_a_scalar_is_what_dolphindbs_own_python_api_gives(scalar: Any, given: Any) -> None:
    found = through(scalar)
    assert found == given
    if isinstance(given, np.datetime64):
        assert found.dtype == given.dtype
    else:
        assert isinstance(found, type(given))
    assert through(AnyVector([scalar, "x"]))[0] == (scalar if given is None else given)


def test_a_value_that_python_cannot_hold_is_an_answer_with_an_error() -> None:
    far = pa.array([[2**40]], pa.list_(pa.timestamp("s"), 1))
    error, message = answer_of(Record.of("test", 0, 7, key=b"k", value=far))
    assert "Python cannot hold every value" in error
    assert message is not None
    assert (message[:2], message[2]) == (("test", "k"), far)


@pytest.mark.parametrize("name", ["json", "arrow", "dolphindb"])
@pytest.mark.parametrize(
    ("array", "items"),
    [
        (pd.Categorical(["a", "b", "a"]), ["a", "b", "a"]),
        (pd.Categorical([1, 2, 1]), [1, 2, 1]),
        (pd.array([1, None], "Int64"), [1, None]),
        (pd.array([1, None], "UInt8"), [1, None]),
        (pd.array([True, None], "boolean"), [True, None]),
        (pd.array([1.5, None], "Float32"), [1.5, None]),
        (pd.array(["a", "b"], "string"), ["a", "b"]),
        (pd.array(["a", "b"], "string[pyarrow]"), ["a", "b"]),
        (pd.array([1, None], pd.ArrowDtype(pa.int32())), [1, None]),
    ],
)
def test_pandas_own_arrays_are_vectors(name: str, array: Any, items: list[Any]) -> None:
    format = find_format(name)
    found = format.decode(format.encode(array))
    assert (found if name == "json" else found.to_pylist()) == items
    assert shape(array) is Shape.VECTOR
    assert (rows(array), list(cut(array, 0, 1))) == (len(items), items[:1])


def test_the_labels_of_a_matrix_are_those_of_a_data_frame() -> None:
    matrix = Matrix(pa.array([1, 2, 3, 4]), 2, 2, pa.array(["x", "y"]), pa.array(["a", "b"]))
    assert through(matrix).to_dict() == {"a": {"x": 1, "y": 2}, "b": {"x": 3, "y": 4}}


def test_an_extension_type_without_a_unit_of_numpys_own_is_objects() -> None:
    found = to_numpy(pa.array([None], WireType("MINUTE")))
    assert (str(found.dtype), found.tolist()) == ("object", [None])


@documented("toStdJson")
def test_json_of_a_table_has_an_object_for_each_row() -> None:
    table = pd.DataFrame({"c1": [1, 2], "c2": ["ä", None], "c3": [np.nan, 1.5]})
    text = kafka.toStdJson(table)
    assert text == '[{"c1": 1,"c2": "ä","c3": null},{"c1": 2,"c2": null,"c3": 1.5}]'
    assert json.loads(kafka.toStdJson(table[:0])) == []
    assert kafka.toStdJson({"a": [1, 2]}) == '{"a": [1,2]}'


@documented("parseJsonTable")
def test_json_texts_become_a_table_of_declared_types() -> None:
    texts = [
        '{"date": "2024.08.30", "id": 1, "msg": "kafka", "at": "2024.08.30T12:00:00.125"}',
        '{"date": "2024-08-31", "id": null, "more": [1]}',
    ]
    names = ["date", "id", "msg", "at"]
    schema = pd.DataFrame({"name": names, "type": ["DATE", "INT", "STRING", "TIMESTAMP"]})
    found = kafka.parseJsonTable(pd.Series(texts), schema)
    assert list(found.columns) == names
    assert found["date"].tolist() == [pd.Timestamp("2024-08-30"), pd.Timestamp("2024-08-31")]
    assert found["id"].isna().tolist() == [False, True]
    assert found["msg"].tolist() == ["kafka", None]
    assert found["at"][0] == pd.Timestamp("2024-08-30T12:00:00.125")
    whole = kafka.parseJsonTable(['{"id": 1}'], {"id": "int"})
    assert str(whole["id"].dtype) == "int32"


@documented("parseJsonTable")
@pytest.mark.parametrize(
    ("text", "schema", "error", "words"),
    [
        ('{"id": 1', {"id": "INT"}, FormatError, "row 0 is not JSON"),
        ("[1]", {"id": "INT"}, FormatError, "row 0 is not a JSON object, but list"),
        ('{"id": "x"}', {"id": "INT"}, FormatError, "column 'id' of type INT"),
        ('{"d": 7}', {"d": "DATE"}, FormatError, "column 'd' of type DATE: 7 is not text"),
        ('{"d": "soon"}', {"d": "DATE"}, FormatError, "column 'd' of type DATE"),
        ("{}", {"id": "INTEGER"}, ConfigError, "type 'INTEGER' is unknown here"),
        ("{}", ["id"], ConfigError, "a schema of list is not allowed"),
    ],
)
def test_json_that_does_not_fit_is_reported_with_its_place(
    text: str, schema: Any, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        kafka.parseJsonTable([text], schema)


def one_value(kind: str, value: Any) -> Any:
    return kafka.parseJsonTable([json.dumps({"c": value})], {"c": kind})["c"][0]


@pytest.mark.parametrize(
    ("kind", "text", "moment"),
    [
        ("MONTH", "2024.08", "2024-08-01"),
        ("DATE", "1600.01.01", "1600-01-01"),
        ("DATE", "2024.08.30T00:00:00", "2024-08-30"),
        ("DATEHOUR", "2024.08.30T12:00", "2024-08-30T12"),
        ("DATETIME", "2024.08.30 12:34", "2024-08-30T12:34"),
        ("DATETIME", "2024-08-30T12:34:56.000", "2024-08-30T12:34:56"),
        ("TIMESTAMP", "2024.08.30T12:34:56.7", "2024-08-30T12:34:56.7"),
        ("NANOTIMESTAMP", "1677.09.21T00:12:43.145224193", "1677-09-21T00:12:43.145224193"),
        ("NANOTIMESTAMP", "2262.04.11T23:47:16.854775807", "2262-04-11T23:47:16.854775807"),
    ],
)
def test_a_time_in_json_keeps_its_value(kind: str, text: str, moment: str) -> None:
    assert one_value(kind, text) == pd.Timestamp(moment)
    assert one_value(kind, "") is pd.NaT


@pytest.mark.parametrize(
    ("kind", "text", "words"),
    [
        ("NANOTIMESTAMP", "2500.01.01T00:00:00", "is not in 1677-09-21"),
        ("NANOTIMESTAMP", "1600.01.01", "is not in 1677-09-21"),
        ("NANOTIMESTAMP", "2262.04.11T23:47:16.854775808", "is not in 1677-09-21"),
        ("NANOTIMESTAMP", "2024.08.30T12:34:56.1234567891", "finer than the type"),
        ("TIMESTAMP", "2024.08.30T12:34:56.123456789", "finer than the type"),
        ("DATETIME", "2024.08.30T12:34:56.789", "finer than the type"),
        ("DATEHOUR", "2024.08.30T12:30", "finer than the type"),
        ("DATE", "2024.08.30T12:00:00", "finer than the type"),
        ("MONTH", "2024.08.30", "finer than the type"),
        ("DATE", "2024.02.30", "Day out of range"),
        ("DATE", "20240830", "not a time"),
        ("TIMESTAMP", "now", "not a time"),
        ("DATE", "today", "not a time"),
        ("TIMESTAMP", "2024.08.30T12:00:00+08:00", "not a time without a zone"),
        ("TIMESTAMP", "2024.08.30T12:00:00\n", "not a time"),
    ],
)
def test_a_time_in_json_that_its_type_cannot_hold_is_refused(
    kind: str, text: str, words: str
) -> None:
    with pytest.raises(FormatError, match=f"column 'c' of type {kind}: .*{words}"):
        one_value(kind, text)


def test_whole_numbers_in_json_are_rounded_to_the_nearest_floating_number() -> None:
    assert one_value("DOUBLE", 9_007_199_254_740_993) == 9_007_199_254_740_992.0
    assert one_value("FLOAT", 20_000_001) == 20_000_000.0
    column = kafka.parseJsonTable(['{"c": 20000001}', "{}", '{"c": 0.5}'], {"c": "FLOAT"})["c"]
    assert (str(column.dtype), column[0], column[2]) == ("float32", 20_000_000.0, 0.5)
    assert column.isna().tolist() == [False, True, False]


@pytest.mark.parametrize(
    ("kind", "number", "words"),
    [
        ("FLOAT", 1e300, r"1e\+300 is too large"),
        ("FLOAT", -1e39, r"-1e\+39 is too large"),
        ("INT", 1.5, "1.5 is not a whole number"),
        ("LONG", 1e19, "Could not convert"),
    ],
)
def test_a_number_in_json_that_its_type_cannot_hold_is_refused(
    kind: str, number: float, words: str
) -> None:
    with pytest.raises(FormatError, match=f"column 'c' of type {kind}: .*{words}"):
        one_value(kind, number)
