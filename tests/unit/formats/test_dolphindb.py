"""DOLPHINDB beyond the vectors: what Python values become, what is refused, and the way back."""

from __future__ import annotations

import math
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from ipaddress import ip_address
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import FormatError
from penstock.formats import dolphindb as ddb
from penstock.formats.dolphindb import AnyVector, DolphinDB, Int, Null, WireType

from .names import named

FORMAT = DolphinDB()
EXAMPLES: list[tuple[Any, str]] = [
    (7, "0500 0700000000000000"),
    (Int(7), "0400 07000000"),
    (np.int32(7), "0400 07000000"),
    (np.uint8(7), "0300 0700"),
    (1.5, "1000 000000000000f83f"),
    (np.float32(2.5), "0f00 00002040"),
    (math.nan, "1000 ffffffffffffefff"),
    ("abc", "1200 61626300"),
    (ddb.Symbol("abc"), "1100 61626300"),
    (b"\0\xff{A", "2000 04000000 00ff7b41"),
    (None, "000000"),
    (date(2012, 6, 13), "0600 903c0000"),
    (ddb.Month(2012, 6, 1), "0700 555e0000"),
    (np.datetime64("2012-06"), "0700 555e0000"),
    (np.datetime64("2012-06-13T13"), "1c00 8dad0500"),
    (np.datetime64("NaT", "s"), "0b00 00000080"),
    (ddb.Timestamp(2012, 6, 13, 13, 30, 10, 8000), "0c00 d87a09e637010000"),
    (np.datetime64("2012-06-13T13:30:10.008"), "0c00 d87a09e637010000"),
    (datetime(2012, 6, 13, 13, 30, 10, 8007), "0e00 5881b226d6319712"),
    (pd.Timestamp("2012-06-13 13:30:10.008007006"), "0e00 5e81b226d6319712"),
    (UUID("5d212a78-cc48-e3b1-4235-b4d91473ee87"), "1300 87ee7314d9b43542b1e348cc782a215d"),
    (ip_address("192.168.1.13"), "1e00 0d01a8c0000000000000000000000000"),
    (Decimal("3.145"), "2500 03000000 490c0000"),
    (Decimal("-1E+3"), "2500 00000000 18fcffff"),
    (pa.scalar(7, pa.int32()), "0400 07000000"),
    (pa.scalar(None, pa.int32()), "0400 00000080"),
    (1.5 - 2j, "2200 000000000000f83f 00000000000000c0"),
    (ddb.Point(1.5, -2.0), "2300 000000000000f83f 00000000000000c0"),
    (ddb.Duration(3, "h"), "2400 03000000 05000000"),
    (ddb.DateMinute(1970, 1, 1, 1, 1), "1d00 3d000000"),
    ([Int(1), Int(2), None, Int(3)], "0401 04000000 01000000 01000000 02000000 00000080 03000000"),
    (np.array([1, 2], "i4"), "0401 02000000 01000000 01000000 02000000"),
    (["a", "", "xyz"], "1201 03000000 01000000 6100 00 78797a00"),
    (["a", None], "1201 02000000 01000000 6100 00"),
    (pa.array(["b", "a", None, "b"]).dictionary_encode(),
     "9101 04000000 01000000 00000000 03000000 00 6200 6100 01000000 02000000 00000000 01000000"),
    ([], "1901 00000000 01000000"),
    ([None, None], "0001 02000000 01000000"),
    ([Decimal("10.50"), Decimal("-0.01"), None],
     "2501 03000000 01000000 02000000 1a040000 ffffffff 00000080"),
    ([[Int(1), Int(2)], [Int(3)], [Int(4), None, Int(6)]],
     "4401 03000000 06000000 0300 01 00 020103"
     "01000000 02000000 03000000 04000000 00000080 06000000"),
    (pa.array([[1], [], None], pa.list_(pa.int8())), "4201 03000000 03000000 0300 01 00 010101 01 80 80"),
    (pa.array([], pa.list_(pa.int8())), "4201 00000000 00000000"),
    ([Int(1), "abc", 2.5, np.array([1, 2], "i4")],
     "1901 04000000 01000000 040001000000 120061626300 10000000000000000440"
     "04010200000001000000 01000000 02000000"),
    (np.array([[1, 3, 5], [2, 4, 6]], "i4"),
     "0403 00 0403 02000000 03000000 0100000002000000 0300000004000000 0500000006000000"),
    (np.zeros((0, 3), "c8"), "2203 00 2203 00000000 03000000"),
    (np.array([1.5 - 2j, complex("nan")]),
     "2201 02000000 01000000 000000000000f83f 00000000000000c0 ffffffffffffefff ffffffffffffefff"),
    ({"k1"}, "1204 1201 01000000 01000000 6b3100"),
    ({"a": Int(1), "b": Int(2)},
     "0405 1201 02000000 01000000 61006200 0401 02000000 01000000 01000000 02000000"),
    ({}, "1905 1201 00000000 01000000 1901 00000000 01000000"),
    (pd.DataFrame({"id": np.array([1, 2], "i4"), "name": ["x", "y"]}),
     "0006 02000000 02000000 00 696400 6e616d6500 0401 02000000 01000000 0100000002000000"
     "1201 02000000 01000000 78007900"),
]  # fmt: skip
REFUSED: list[tuple[Any, str]] = [
    (Int(-(2**31)), "DolphinDB takes it for null"),
    (Int(2**31), "INT cannot hold 2147483648: it is out of range"),
    (2**63, "out of range"),
    (-1.7976931348623157e308, "DolphinDB takes it for null"),
    (UUID(int=0), "DolphinDB takes it for null"),
    (ip_address("0.0.0.0"), "DolphinDB takes it for null"),
    (ip_address("::1"), "takes the IPv6 address ::1 for an IPv4 one"),
    (ip_address("fe80::1%eth0"), "addresses have no zone"),
    ({math.nan: 1, None: 2}, "2 keys or members are null"),
    ({"": 1, None: 2}, "2 keys or members are null"),
    (np.array([complex(-1.7976931348623157e308, 0)]), "takes one for null"),
    (pa.ExtensionArray.from_storage(WireType("ANY"), pa.array([b"garbage"])), "not a DolphinDB value"),
    (ddb.Int128(2**128), "128 bits"),
    ("a\0b", "zero character"),
    ("\ud800", "no UTF-8"),
    ("a" * 262_144, "262144 bytes"),
    (["a" * 262_144], "262144 bytes"),
    (["a\0b"], "zero character"),
    (datetime(2024, 1, 1, tzinfo=timezone.utc), "has no time zone"),
    (pd.Timestamp("2024-01-01", tz="UTC"), "has no time zone"),
    (datetime(2300, 1, 1), "out of range"),
    (ddb.Timestamp(2024, 1, 1, 0, 0, 0, 1), "TIMESTAMP cannot hold the smaller units"),
    (ddb.NanoTime(86_400 * 10**9), "not a time of day"),
    (timedelta(1), "no type for datetime.timedelta"),
    (Decimal("Infinity"), "cannot hold Infinity"),
    (Decimal(10**38), "38 digits, not 39"),
    (ddb.Decimal32("1234567890"), "DECIMAL32"),
    (np.datetime64("2024", "Y"), "another unit"),
    (np.longdouble(1), "no type for numpy's"),
    ([2**63], "LONG cannot hold every item"),
    (pa.array([-(2**31)], pa.int32()), "at item 0 is what DolphinDB takes for null"),
    (pa.array([2**63], pa.uint64()), "cannot hold every value of uint64"),
    (pa.array([1], pa.timestamp("s", "UTC")), "give the local time"),
    (pa.array([1], pa.duration("s")), "give numbers, or Duration"),
    (pa.array([{"a": 1}]), "no type for Arrow's struct"),
    (pa.array([2**31], pa.timestamp("s")), "DATETIME cannot hold every value"),
    (pa.table({}), "columns with different names"),
    (pa.table([[1], [2]], ["a", "a"]), "columns with different names"),
    (pa.table({"a\0": [1]}), "zero character"),
    ({1, "a"}, "scalars of one type"),
    ({("a",): 1}, "scalars of one type"),
    (object(), "not a value for a message"),
    (ddb.Null("NOTHING"), "no null of type 'NOTHING'"),
]  # fmt: skip
MOMENTS = st.datetimes(datetime(1700, 1, 1), datetime(2260, 1, 1))
SCALARS = (
    st.booleans()
    | st.integers(-(2**63) + 1, 2**63 - 1)
    | st.floats(allow_nan=False, min_value=-1e308)
    | st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
    | st.binary()
    | st.dates()
    | st.times()
    | MOMENTS
    | st.uuids().filter(lambda value: value.int)
    | st.ip_addresses().filter(
        lambda value: int(value) > 2**32 or (value.version == 4 and int(value))
    )
    | st.decimals(
        allow_nan=False, allow_infinity=False, places=5, min_value=-(10**30), max_value=10**30
    )
    | st.integers(-(2**31) + 1, 2**31 - 1).map(Int)
    | st.dates().map(lambda day: ddb.Month(day.year, day.month, 1))
    | st.builds(ddb.Duration, st.integers(-(2**31) + 1, 2**31 - 1), st.sampled_from(["ns", "year"]))
)
ANYTHING = st.recursive(
    SCALARS | st.none(), lambda inner: st.lists(inner, max_size=4).map(AnyVector), max_leaves=12
)
COLUMNS = st.sampled_from(
    [
        (pa.bool_(), st.booleans()),
        (pa.int8(), st.integers(-127, 127)),
        (pa.int16(), st.integers(-(2**15) + 1, 2**15 - 1)),
        (pa.int32(), st.integers(-(2**31) + 1, 2**31 - 1)),
        (pa.int64(), st.integers(-(2**63) + 1, 2**63 - 1)),
        (pa.float32(), st.floats(width=32, allow_nan=False, min_value=-(2.0**127))),
        (pa.float64(), st.floats(allow_nan=False, min_value=-1e308)),
        (pa.date32(), st.dates()),
        (pa.time32("s"), st.integers(0, 86_399)),
        (pa.time32("ms"), st.integers(0, 86_399_999)),
        (pa.time64("ns"), st.integers(0, 86_400 * 10**9 - 1)),
        (pa.timestamp("s"), st.integers(-(2**31) + 1, 2**31 - 1)),
        (pa.timestamp("ms"), st.integers(-(2**63) + 1, 2**63 - 1)),
        (pa.timestamp("ns"), st.integers(-(2**63) + 1, 2**63 - 1)),
        (pa.decimal128(9, 3), st.decimals(-999999, 999999, places=3)),
        (pa.decimal128(18, 18), st.decimals("-0.9", "0.9", places=18)),
        (pa.decimal128(38, 0), st.integers(-(10**38) + 1, 10**38 - 1).map(Decimal)),
        (pa.list_(pa.int32()), st.lists(st.integers(-9, 9) | st.none(), min_size=1)),
    ]
)


def array_of(draw: st.DataObject, count: int | None = None) -> pa.Array:
    kind, items = draw.draw(COLUMNS)
    least, most = (count, count) if count is not None else (0, 20)
    nulls = st.nothing() if pa.types.is_list(kind) else st.none()
    return pa.array(draw.draw(st.lists(items | nulls, min_size=least, max_size=most)), kind)


def hexed(text: str) -> str:
    return text.replace(" ", "")


@pytest.mark.parametrize(("value", "expected"), EXAMPLES, ids=named)
def test_a_python_value_becomes_these_bytes(value: Any, expected: str) -> None:
    assert FORMAT.encode(value).hex() == hexed(expected)


@pytest.mark.parametrize(("value", "why"), REFUSED, ids=named)
def test_what_dolphindb_cannot_hold_is_refused(value: Any, why: str) -> None:
    with pytest.raises(FormatError, match=why):
        FORMAT.encode(value)


@given(SCALARS)
@settings(max_examples=500)
def test_a_scalar_is_read_back(value: Any) -> None:
    assert FORMAT.decode(FORMAT.encode(value)) == value


@given(st.lists(ANYTHING, max_size=5).map(AnyVector))
def test_a_vector_of_anything_is_read_back(value: AnyVector) -> None:
    assert FORMAT.decode(FORMAT.encode(value)) == value


@given(st.data())
@settings(max_examples=300)
def test_a_vector_is_read_back_with_type_and_nulls(draw: st.DataObject) -> None:
    array = array_of(draw)

    assert FORMAT.decode(FORMAT.encode(array)).equals(array)


@given(st.data())
def test_a_piece_of_a_vector_is_written_as_a_vector_of_its_own(draw: st.DataObject) -> None:
    array = array_of(draw)
    start = draw.draw(st.integers(0, len(array)))
    piece = array.slice(start, draw.draw(st.integers(0, len(array) - start)))

    assert FORMAT.decode(FORMAT.encode(piece)).equals(piece)


@given(st.data())
def test_a_table_is_read_back_with_types_and_nulls(draw: st.DataObject) -> None:
    count = draw.draw(st.integers(0, 5))
    columns = [array_of(draw, count) for _ in range(draw.draw(st.integers(1, 4)))]
    table = pa.table(columns, [f"c{place}" for place in range(len(columns))])

    assert FORMAT.decode(FORMAT.encode(table)).equals(table)


@given(
    st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])) | st.none())
)
def test_text_is_read_back_with_null_as_the_empty_text(values: list[str | None]) -> None:
    expected = [each or "" for each in values]

    assert FORMAT.decode(FORMAT.encode(pa.array(values, pa.string()))).to_pylist() == expected
    symbols = pa.array(values, pa.string()).dictionary_encode()
    assert FORMAT.decode(FORMAT.encode(symbols)).to_pylist() == expected


@given(st.lists(st.binary() | st.none()))
def test_blobs_are_read_back_with_null_as_the_empty_one(values: list[bytes | None]) -> None:
    found = FORMAT.decode(FORMAT.encode(pa.array(values, pa.binary())))

    assert found.to_pylist() == [each or b"" for each in values]


@pytest.mark.parametrize(("values", "kind"), [
    ([ddb.Month(2012, 6, 1), None], "MONTH"),
    ([ddb.Minute(13, 30), None], "MINUTE"),
    ([ddb.DateHour(2012, 6, 13, 13), None], "DATEHOUR"),
    ([ddb.DateMinute(2012, 6, 13, 13, 30), None], "DATEMINUTE"),
    ([ip_address("10.0.0.1"), None, ip_address("2001:db8::1")], "IPADDR"),
    ([ddb.Int128(2**127 + 5), None], "INT128"),
    ([1.5 - 2j, None], "COMPLEX"),
    ([ddb.Point(1.5, 2.5), None], "POINT"),
    ([ddb.Duration(-3, "business day"), None], "DURATION"),
])  # fmt: skip
def test_types_that_arrow_lacks_are_read_back_as_an_extension(values: list[Any], kind: str) -> None:
    array = FORMAT.decode(FORMAT.encode(values))

    assert array.type == WireType(kind)
    assert array.to_pylist() == values
    assert [type(each) for each in array.to_pylist()] == [type(each) for each in values]
    assert FORMAT.encode(array) == FORMAT.encode(values)
    assert FORMAT.encode(array.slice(1)) == FORMAT.encode([ddb.Null(kind), *values[2:]])


def test_extensions_travel_in_the_arrow_format() -> None:
    from penstock.formats.arrow import Arrow

    months = FORMAT.decode(FORMAT.encode([ddb.Month(2012, 6, 1), None]))

    assert Arrow().decode(Arrow().encode(months)).equals(months)


@pytest.mark.parametrize(("array", "kind"), [
    (pa.array([1], pa.uint8()), pa.int16()),
    (pa.array([1], pa.uint16()), pa.int32()),
    (pa.array([1], pa.uint32()), pa.int64()),
    (pa.array([1], pa.uint64()), pa.int64()),
    (pa.array([1.5], pa.float16()), pa.float32()),
    (pa.array([0], pa.date64()), pa.date32()),
    (pa.array([1], pa.time64("us")), pa.time64("ns")),
    (pa.array([1], pa.timestamp("us")), pa.timestamp("ns")),
    (pa.array(["a"], pa.large_string()), pa.string()),
    (pa.array(["a"], pa.string_view()), pa.string()),
    (pa.array([b"ab"], pa.binary(2)), pa.binary()),
    (pa.array([1], pa.int64()).dictionary_encode(), pa.int64()),
    (pa.array([Decimal("1.5")], pa.decimal128(4, 1)), pa.decimal128(9, 1)),
    (pa.array([Decimal("1.5")], pa.decimal256(12, 1)), pa.decimal128(18, 1)),
    (pa.array([[1]], pa.large_list(pa.int64())), pa.list_(pa.int64())),
    (pa.array([[1, 2]], pa.list_(pa.int64(), 2)), pa.list_(pa.int64())),
])  # fmt: skip
def test_arrow_types_that_dolphindb_lacks_become_the_nearest(
    array: pa.Array, kind: pa.DataType
) -> None:
    found = FORMAT.decode(FORMAT.encode(array))

    assert found.type == kind
    assert found.to_pylist() == array.cast(kind).to_pylist()


def test_rows_of_text_become_a_vector_of_vectors() -> None:
    found = FORMAT.decode(FORMAT.encode(pa.array([["a", "b"], None])))

    assert [each if each is None else each.to_pylist() for each in found] == [["a", "b"], None]


def test_a_column_of_anything_is_kept_and_read_item_by_item() -> None:
    table = FORMAT.decode(FORMAT.encode(pa.table({"a": pa.array([["x"], None])})))

    assert table["a"].type == WireType("ANY")
    assert table["a"][0].as_py().to_pylist() == ["x"]
    assert FORMAT.decode(FORMAT.encode(table)).equals(table)


def test_mixed_whole_numbers_and_floats_stay_exact() -> None:
    assert FORMAT.decode(FORMAT.encode([1, 2.5])).to_pylist() == [1.0, 2.5]
    assert FORMAT.decode(FORMAT.encode([2**53 + 1, 2.5])) == AnyVector([2**53 + 1, 2.5])


@pytest.mark.parametrize("table", [
    pl.DataFrame({"a": [1, None], "s": ["x", "y"]}),
    pd.DataFrame({"a": pd.array([1, None], "Int64"), "s": ["x", "y"]}),
    pa.record_batch({"a": [1, None], "s": ["x", "y"]}),
], ids=lambda table: type(table).__module__)  # fmt: skip
def test_tables_of_any_library_are_read_back(table: Any) -> None:
    assert FORMAT.decode(FORMAT.encode(table)).to_pydict() == {"a": [1, None], "s": ["x", "y"]}


def test_a_categorical_column_is_symbols() -> None:
    table = FORMAT.decode(FORMAT.encode(pd.DataFrame({"s": pd.Categorical(["u", None, "v"])})))

    assert table["s"].type == pa.dictionary(pa.int32(), pa.string())
    assert table["s"].to_pylist() == ["u", "", "v"]


def test_long_array_vectors_are_written_in_blocks() -> None:
    rows = pa.array([[place % 7] * (300 if place == 5 else 1) for place in range(70_000)])

    assert FORMAT.decode(FORMAT.encode(rows)).equals(rows)


def test_an_array_vector_in_many_blocks_is_read() -> None:
    data = "4401 03000000 03000000 0200 01 00 0101 01000000 02000000 0100 02 00 0100 03000000"

    assert FORMAT.decode(bytes.fromhex(data)).to_pylist() == [[1], [2], [3]]


def test_nested_values_are_read_back() -> None:
    value = {"a": AnyVector([1, {"b": [1, 2]}]), "c": "x"}

    found = FORMAT.decode(FORMAT.encode(value))

    assert (found["a"][0], found["a"][1]["b"].to_pylist(), found["c"]) == (1, [1, 2], "x")


def test_a_value_inside_itself_is_refused() -> None:
    value: list[Any] = ["a", 1]
    value.append(value)

    with pytest.raises(FormatError, match="nested more than 64 deep"):
        FORMAT.encode(value)


@pytest.mark.parametrize(("data", "why"), [
    ("", "a type and a form needs 2 bytes"),
    ("0407", "form 7"),
    ("1a01 00000000 01000000", "type 26 is not supported"),
    ("1400 00", "type 20 is not supported"),
    ("0000 02", "VOID 2"),
    ("0100 02", "BOOL 2"),
    ("0101 01000000 01000000 02", "BOOL 2 at item 0"),
    ("0401 ffffffff 01000000", "a count of -1"),
    ("0401 ffffff7f 01000000 00", "a vector of INT needs 8589934588 bytes"),
    ("0401 01000000 02000000 01000000", "2 columns"),
    ("1201 01000000 01000000 ff00", "not UTF-8"),
    ("1200 ff00", "not UTF-8"),
    ("1201 02000000 01000000 6100 61", "only 1 have an end"),
    ("0800 005c2605", "not a time of day"),
    ("0801 01000000 01000000 005c2605", "TIME 86400000 at item 0"),
    ("0600 ffffff7f", "outside Python's years"),
    ("0701 01000000 01000000 ffffff7f", "too far from 1970"),
    ("2400 01000000 0b000000", "no unit 11"),
    ("2401 01000000 01000000 01000000 0b000000", "DURATION 11 at item 0"),
    ("2500 0a000000 00000000", "scale from 0 to 9, not 10"),
    ("2500 00000000 00ca9a3b", "9 digits"),
    ("2501 01000000 01000000 00000000 00ca9a3b", "9 digits"),
    ("9101 01000000 01000000 00000000 00000000 00000000", "used, but was never given"),
    ("9101 01000000 01000000 00000000 01000000 6100 00000000", "begin with the empty text"),
    ("9101 01000000 01000000 00000000 01000000 00 01000000", "outside of its base"),
    ("5201 01000000 01000000 0100 01 00 01 6100", "no array vector of STRING"),
    ("4401 02000000 02000000 0300 01 00 010101", "no block of an array vector"),
    ("4401 01000000 02000000 0100 01 00 01 01000000", "an array vector of 2 cells has 1"),
    ("0402 03000000 01000000 01000000 01000000 01000000", "two values, not 3"),
    ("0403 04 0403 00000000 00000000", "label byte 4"),
    ("0403 00 0503 00000000 00000000", "the second flag"),
    ("0404 0401 02000000 01000000 01000000 01000000", "holds a value twice"),
    ("0405 0401 01000000 01000000 01000000 0401 00000000 01000000", "1 keys and 0 values"),
    ("0405 0401 02000000 01000000 0100000001000000 0401 02000000 01000000 0100000001000000",
     "a key twice"),
    ("0806 00000000 01000000 00 6100 0401 00000000 01000000", "kind 8"),
    ("0b06 00000000 01000000 00 6100 0401 00000000 01000000", "kind 11"),
    ("0006 00000000 00000000 00", "without columns"),
    ("0006 01000000 01000000 00 6100 0401 00000000 01000000", "'a' has 0 rows, the table 1"),
    ("0006 00000000 01000000 00 6100 0400 00000000 01000000", "'a' is not a vector"),
    ("0001 ffffff7f 01000000", "a vector of 2147483647 VOID"),
    ("1900 00", "no scalar of ANY"),
])  # fmt: skip
def test_bytes_that_break_a_rule_are_refused_with_the_rule(data: str, why: str) -> None:
    with pytest.raises(FormatError, match=why):
        FORMAT.decode(bytes.fromhex(hexed(data)))


def test_nan_and_the_other_void_are_read_as_null() -> None:
    assert FORMAT.decode(bytes.fromhex("1000000000000000f87f")) is None
    assert FORMAT.decode(bytes.fromhex("000001")) is None
    vector = FORMAT.decode(bytes.fromhex("1001 01000000 01000000 000000000000f87f"))
    assert vector.to_pylist() == [None]


@pytest.mark.parametrize(
    "value",
    [
        AnyVector([Null("INT"), 1]),
        AnyVector([Null("DECIMAL64", 3), None, "a"]),
        AnyVector([AnyVector([Null("DATE")]), Null("POINT")]),
        {"a": AnyVector([Null("UUID"), "b"])},
    ],
)
def test_a_null_inside_an_any_vector_keeps_its_type(value: Any) -> None:
    data = DolphinDB().encode(value)
    found = DolphinDB().decode(data)
    assert DolphinDB().encode(found) == data
    assert found == value


def test_a_null_inside_a_column_of_anything_keeps_its_type() -> None:
    items = AnyVector([Null("INT"), "b"])
    column = DolphinDB().encode(items)
    table = b"\0\6" + bytes((2, 0, 0, 0, 1, 0, 0, 0, 0)) + b"x\0" + column
    assert DolphinDB().decode(table)["x"].to_pylist() == list(items)
