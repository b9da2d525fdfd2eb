"""JSON: what each value becomes, what is refused, and that no digit is lost on the way back."""

from __future__ import annotations

import json
import math
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from ipaddress import ip_address
from types import MappingProxyType
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import FormatError
from penstock.formats.json import Json

from .names import named

FORMAT = Json()
INF = math.inf
TABLE = pa.table(
    {
        "i": [1, None],
        "f": [1.5, None],
        "s": ["a", None],
        "t": pa.array([1_700_000_000_123_456_789, None], pa.timestamp("ns")),
        "z": pa.array([0, None], pa.timestamp("ms", "UTC")),
        "d": [Decimal("1.50"), None],
        "y": pa.array(["x", "y"]).dictionary_encode(),
        "l": [[1.5, None], None],
        "m": pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int64())),
        "u": pa.array([bytes(15) + b"\1", None], pa.uuid()),
    }
)
WRITTEN: list[tuple[Any, str]] = [
    (1, "[1]"),
    (None, "[null]"),
    ("é", '["é"]'),
    (True, "[true]"),
    (2**63 - 1, "[9223372036854775807]"),
    (2**64 - 1, "[18446744073709551615]"),
    (math.nan, "[null]"),
    (Decimal("1.50"), '["1.50"]'),
    (Decimal("NaN"), "[null]"),
    (Decimal("sNaN"), "[null]"),
    (date(2024, 2, 29), '["2024-02-29"]'),
    (time(1, 2, 3, 4), '["01:02:03.000004"]'),
    (datetime(2024, 2, 29, 1, 2, 3), '["2024-02-29T01:02:03"]'),
    (datetime(2024, 2, 29, tzinfo=timezone.utc), '["2024-02-29T00:00:00+00:00"]'),
    (UUID(int=1), '["00000000-0000-0000-0000-000000000001"]'),
    (ip_address("10.0.0.1"), '["10.0.0.1"]'),
    (np.int64(-(2**63)), "[-9223372036854775808]"),
    (np.float32(1.1), "[1.1]"),
    (np.float64("nan"), "[null]"),
    (np.datetime64("2024-02-29T01:02:03.123456789"), '["2024-02-29T01:02:03.123456789"]'),
    (np.datetime64("NaT"), "[null]"),
    (np.array(3), "[3]"),
    (pd.NaT, "[null]"),
    (pd.NA, "[null]"),
    (pd.Timestamp("2024-02-29 00:00:00.000000001"), '["2024-02-29T00:00:00.000000001"]'),
    (pa.scalar(3), "[3]"),
    ([1, 2, 3], "[1,2,3]"),
    ((1, None, "a"), '[1,null,"a"]'),
    ([], "[]"),
    (
        [Decimal("0.1"), date(2024, 1, 1), UUID(int=0)],
        '["0.1","2024-01-01","' + str(UUID(int=0)) + '"]',
    ),
    (np.arange(6)[::2], "[0,2,4]"),
    (np.array([1, 2], ">i4"), "[1,2]"),
    (np.array([1.5, math.nan]), "[1.5,null]"),
    (np.array(["2024-01-01", "NaT"], "M8[D]"), '["2024-01-01",null]'),
    (np.array(["a", None, 1], object), '["a",null,1]'),
    (np.array([[1, 2], [3, 4]]), "[[1,2],[3,4]]"),
    (pa.array([1, None]), "[1,null]"),
    (pa.chunked_array([[1], [2]]), "[1,2]"),
    (pa.array([1.5, None], pa.float16()), "[1.5,null]"),
    (pa.array([1, None], pa.time64("ns")), '["00:00:00.000000001",null]'),
    (pd.Series([1, None], dtype="Int64"), "[1,null]"),
    (pl.Series(["a", None]), '["a",null]'),
    ({"a": {"b": [1, np.int8(2)]}, "c": np.array([1, 2])}, '{"a":{"b":[1,2]},"c":[1,2]}'),
    (MappingProxyType({"a": 1}), '{"a":1}'),
    ({}, "{}"),
    (pa.table({"c1": [1, 2, 3], "c2": ["a", "b", "c"]}), '{"c1":[1,2,3],"c2":["a","b","c"]}'),
    (pd.DataFrame({"c1": [1, 2], "c2": ["a", None]}), '{"c1":[1,2],"c2":["a",null]}'),
    (
        pd.DataFrame({"t": pd.to_datetime(["2024-01-01", None])}),
        '{"t":["2024-01-01T00:00:00",null]}',
    ),
    (pd.DataFrame({"c": pd.Categorical(["u", "v"])}), '{"c":["u","v"]}'),
    (pd.DataFrame([[1.5, math.nan]]), '{"0":[1.5],"1":[null]}'),
    (pl.DataFrame({"c1": [1, None]}), '{"c1":[1,null]}'),
    (pa.table({"a": pa.array([], pa.int64())}), '{"a":[]}'),
    ([pa.table({"a": [1]})], '[{"a":[1]}]'),
]
REFUSED: list[tuple[Any, str]] = [
    (b"a", "JSON cannot represent bytes"),
    (1j, "JSON cannot represent complex"),
    (timedelta(1), "JSON cannot represent datetime.timedelta"),
    (2**64, "exceeds 64-bit range"),
    (-(2**63) - 1, "exceeds 64-bit range"),
    ({1: 2}, "with text for keys"),
    ({"a": object()}, "object is not a value for a message"),
    ({1, 2}, "set is not a value for a message"),
    ("\ud800", "surrogates not allowed"),
    (np.array([1j]), "numpy's complex128"),
    (np.array([b"a"]), r"numpy's \|S1"),
    (pa.array([b"a"]), "JSON cannot represent bytes"),
    (pa.array([1], pa.duration("s")), r"JSON cannot represent duration\[s\]"),
    (pd.DataFrame([[1, 2]], columns=["a", "a"]), "two columns are named 'a'"),
]
INFINITE: list[Any] = [
    INF, -INF, [1, INF], {"a": [{"b": -INF}]}, (1, (INF,)), Decimal("Infinity"), np.float32("inf"),
    np.float64("inf"), np.array([1.5, INF]), np.array([INF, None], object), pa.array([INF]),
    pa.array([[INF]]), pd.DataFrame({"a": [INF]}), pd.Series([INF, "a"]), MappingProxyType({"a": INF}),
]  # fmt: skip
PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
    max_leaves=20,
)


@pytest.mark.parametrize(("value", "expected"), WRITTEN, ids=named)
def test_a_value_becomes_its_json(value: Any, expected: str) -> None:
    assert FORMAT.encode(value).decode() == expected


def test_a_table_becomes_its_columns_with_every_type() -> None:
    assert json.loads(FORMAT.encode(TABLE)) == {
        "i": [1, None],
        "f": [1.5, None],
        "s": ["a", None],
        "t": ["2023-11-14T22:13:20.123456789", None],
        "z": ["1970-01-01T00:00:00.000Z", None],
        "d": ["1.50", None],
        "y": ["x", "y"],
        "l": [[1.5, None], None],
        "m": [{"k": 1}, None],
        "u": ["00000000-0000-0000-0000-000000000001", None],
    }


@pytest.mark.parametrize(("value", "why"), REFUSED, ids=named)
def test_what_json_cannot_hold_is_refused(value: Any, why: str) -> None:
    with pytest.raises(FormatError, match=why):
        FORMAT.encode(value)


@pytest.mark.parametrize("value", INFINITE, ids=named)
def test_an_infinity_is_refused_wherever_it_stands(value: Any) -> None:
    with pytest.raises(FormatError, match="JSON has no infinity"):
        FORMAT.encode(value)


@given(st.lists(PLAIN) | st.dictionaries(st.text(), PLAIN))
def test_plain_python_is_read_back(value: Any) -> None:
    assert FORMAT.decode(FORMAT.encode(value)) == value


@given(PLAIN.filter(lambda value: not isinstance(value, list | dict)))
def test_a_scalar_is_read_back_in_a_list(value: Any) -> None:
    assert FORMAT.decode(FORMAT.encode(value)) == [value]


@given(st.integers())
def test_a_whole_number_of_any_length_is_read_exactly(number: int) -> None:
    assert FORMAT.decode(b'{"a": [%d]}' % number) == {"a": [number]}


@given(st.lists(st.floats(allow_infinity=False) | st.none()))
def test_arrow_numbers_and_nulls_are_read_back(values: list[float | None]) -> None:
    expected = [None if each is None or math.isnan(each) else each for each in values]

    assert FORMAT.decode(FORMAT.encode(pa.array(values, pa.float64()))) == expected


def test_of_two_equal_keys_the_last_is_read() -> None:
    assert FORMAT.decode(b'{"a":1,"a":2}') == {"a": 2}


@pytest.mark.parametrize("data", [
    b"", b"{", b"[1,]", b"{'a':1}", b"NaN", b"[Infinity]", b"[1e400]", b"\xff",
    b'"\xff"', b"\xef\xbb\xbf1",
    b'"\\ud800"', b"[1] [2]", b"01", b"nul",
])  # fmt: skip
def test_bytes_that_are_no_json_are_refused(data: bytes) -> None:
    with pytest.raises(FormatError, match="not JSON"):
        FORMAT.decode(data)


def test_a_number_beyond_the_floats_is_refused() -> None:
    with pytest.raises(FormatError, match="not JSON: number is infinity"):
        FORMAT.decode(b"[" + b"9" * 5000 + b"]")
