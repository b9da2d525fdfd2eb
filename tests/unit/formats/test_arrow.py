"""ARROW: what is written comes back as what it was, with types and nulls; others can read it."""

from __future__ import annotations

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
from penstock.formats.arrow import Arrow

from .names import named

FORMAT = Arrow()
TABLE = pa.table(
    {
        "i": pa.array([1, None], pa.int16()),
        "s": pa.array(["a", None]).dictionary_encode(),
        "t": pa.array([1, None], pa.timestamp("ns", "Asia/Tokyo")),
        "l": pa.array([[1.5, None], None]),
        "u": pa.array([bytes(16), None], pa.uuid()),
    }
)
COLUMN = st.sampled_from(
    [
        (pa.int8(), st.integers(-128, 127)),
        (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
        (pa.uint64(), st.integers(0, 2**64 - 1)),
        (pa.float64(), st.floats(allow_nan=False)),
        (pa.string(), st.text()),
        (pa.binary(), st.binary()),
        (pa.bool_(), st.booleans()),
        (pa.date32(), st.dates()),
        (pa.timestamp("us"), st.datetimes()),
        (pa.list_(pa.int32()), st.lists(st.integers(-(2**31), 2**31 - 1) | st.none())),
    ]
)
SCALARS = (
    st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary()
    | st.dates()
    | st.times()
    | st.datetimes()
    | st.timedeltas(timedelta(-100_000_000), timedelta(100_000_000))
    | st.uuids()
    | st.ip_addresses()
    | st.decimals(
        allow_nan=False, allow_infinity=False, places=3, min_value=-(10**20), max_value=10**20
    )
)


@given(SCALARS)
def test_a_scalar_is_read_back_as_what_it_was(value: Any) -> None:
    found = FORMAT.decode(FORMAT.encode(value))

    assert found == value
    assert type(found) is type(value)


@given(st.data())
def test_a_vector_is_read_back_with_type_and_nulls(data: st.DataObject) -> None:
    kind, items = data.draw(COLUMN)
    array = pa.array(data.draw(st.lists(items | st.none())), kind)

    found = FORMAT.decode(FORMAT.encode(array))

    assert isinstance(found, pa.Array)
    assert found.equals(array)


@given(st.data())
def test_a_table_is_read_back_with_types_and_nulls(data: st.DataObject) -> None:
    kinds = data.draw(st.lists(COLUMN, max_size=4))
    count = data.draw(st.integers(0, 5))
    columns = [
        pa.array(data.draw(st.lists(items | st.none(), min_size=count, max_size=count)), kind)
        for kind, items in kinds
    ]
    names = data.draw(st.lists(st.text(), min_size=len(kinds), max_size=len(kinds)))
    table = pa.table(columns, names)

    assert FORMAT.decode(FORMAT.encode(table)).equals(table)


@pytest.mark.parametrize(("value", "expected"), [
    (np.int16(3), 3), (np.array(3), 3), (pa.scalar(3), 3),
    (np.datetime64("2024-01-01"), date(2024, 1, 1)),
    (np.datetime64("2024-01-01T00:00:00", "ns"), datetime(2024, 1, 1)),
    (np.datetime64(1, "ns"), np.datetime64(1, "ns")), (pd.Timestamp(1), np.datetime64(1, "ns")),
    (np.datetime64("30000-01-01"), np.datetime64("30000-01-01")),
    ({"u": UUID(int=1), "a": [np.int8(1)]}, {"u": UUID(int=1), "a": [1]}),
    (pd.NaT, None), (pd.NA, None), (np.datetime64("NaT", "s"), None), (Decimal("1E+3"), Decimal(1000)),
    (datetime(2024, 1, 1, tzinfo=timezone(timedelta(hours=5))),
     datetime(2024, 1, 1, tzinfo=timezone(timedelta(hours=5)))),
    ({"a": 1, "b": [1, None], "c": {"d": "x"}}, {"a": 1, "b": [1, None], "c": {"d": "x"}}), ({}, {}),
    (MappingProxyType({"a": 1}), {"a": 1}),
])  # fmt: skip
def test_scalars_of_other_libraries_and_mappings_become_pythons(value: Any, expected: Any) -> None:
    assert FORMAT.decode(FORMAT.encode(value)) == expected


def test_nan_stays_nan() -> None:
    assert math.isnan(FORMAT.decode(FORMAT.encode(math.nan)))


@pytest.mark.parametrize(("value", "expected"), [
    ([1, None], pa.array([1, None])),
    ((1, 2.5), pa.array([1.0, 2.5])),
    ([], pa.nulls(0)),
    ([None], pa.nulls(1)),
    ([[1], None], pa.array([[1], None])),
    ([UUID(int=1), None], pa.array([bytes(15) + b"\1", None], pa.uuid())),
    ([np.int8(1), np.int8(2)], pa.array([1, 2], pa.int8())),
    (np.array([1, 2], "i2"), pa.array([1, 2], pa.int16())),
    (np.array([1, 2], ">i2"), pa.array([1, 2], pa.int16())),
    (np.array([1, 2], "M8[5s]"), pa.array([5, 10], pa.timestamp("s"))),
    (np.array(["2024-02", "NaT"], "M8[M]"), pa.array([date(2024, 2, 1), None])),
    (np.array([1], "M8[h]"), pa.array([3600], pa.timestamp("s"))),
    (np.zeros((2, 0)), pa.array([[], []], pa.list_(pa.float64()))),
    (np.zeros((1, 2, 1), "i1"), pa.array([[[0], [0]]], pa.list_(pa.list_(pa.int8())))),
    ([np.array([1], "i2"), None], pa.array([[1], None], pa.list_(pa.int16()))),
    ([np.float32(1.5), None], pa.array([1.5, None], pa.float32())),
    ([[UUID(int=1)], []],
     pa.ListArray.from_arrays([0, 1, 1], pa.array([bytes(15) + b"\1"], pa.uuid()))),
    ([{"a": 1}, {"b": "x"}, None], pa.array([{"a": 1}, {"b": "x"}, None])),
    ([pd.Timestamp(1), pd.NaT], pa.array([1, None], pa.timestamp("ns"))),
    (np.array([[1, 2]], "i2"), pa.array([[1, 2]], pa.list_(pa.int16()))),
    (np.array(["a", None], object), pa.array(["a", None])),
    (pa.chunked_array([[1], [2]]), pa.array([1, 2])),
    (pa.chunked_array([], pa.int8()), pa.array([], pa.int8())),
    (pd.Series([1.5, None]), pa.array([1.5, None])),
    (pd.Series([time(1), None]), pa.array([time(1), None])),
    (pl.Series([1, None]), pa.array([1, None])),
])  # fmt: skip
def test_vectors_of_any_library_become_arrow_arrays(value: Any, expected: pa.Array) -> None:
    assert FORMAT.decode(FORMAT.encode(value)).equals(expected)


def test_addresses_keep_their_version() -> None:
    values = [ip_address("0.0.0.1"), ip_address("::1"), None]

    assert FORMAT.decode(FORMAT.encode(values)).to_pylist() == values


@pytest.mark.parametrize("value", [
    TABLE, TABLE.to_batches()[0], TABLE.to_reader(),
], ids=lambda value: type(value).__name__)  # fmt: skip
def test_arrow_tables_keep_every_type(value: Any) -> None:
    assert FORMAT.decode(FORMAT.encode(value)).equals(TABLE)


def test_a_dataframe_becomes_its_columns_without_the_index() -> None:
    frame = pd.DataFrame({"a": [1, 2], "u": [UUID(int=1), None]}, index=[7, 8])

    found = FORMAT.decode(FORMAT.encode(frame))

    assert found.to_pydict() == {"a": [1, 2], "u": [UUID(int=1), None]}


def test_polars_reads_the_bytes() -> None:
    assert pl.read_ipc_stream(FORMAT.encode(pa.table({"a": [1, None]})))["a"].to_list() == [1, None]


def test_a_stream_of_another_writer_is_a_table() -> None:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, TABLE.schema) as writer:
        writer.write_table(TABLE)

    assert FORMAT.decode(sink.getvalue().to_pybytes()).equals(TABLE)


def test_a_table_with_the_mark_of_a_scalar_stays_a_table() -> None:
    table = pa.table({"value": [1]}).replace_schema_metadata({"penstock.shape": "scalar", "k": "v"})

    found = FORMAT.decode(FORMAT.encode(table))

    assert found.to_pydict() == {"value": [1]}
    assert found.schema.metadata == {b"k": b"v"}


@pytest.mark.parametrize("value", [
    [1, "a"], [2**53 + 1, 0.5], 2**64, 1j, {1: 2}, {b"a": 1}, object(), {1, 2}, "\ud800", Decimal("NaN"),
    pd.DataFrame({"a": [1, "x"]}), [True, 1], [date(2024, 1, 1), datetime(2024, 1, 1)],
    [datetime(2024, 1, 1), datetime(2024, 1, 1, tzinfo=timezone.utc)], time(1, tzinfo=timezone.utc),
    np.array([2**40], "M8[D]"), np.array([2**62], "M8[h]"), np.array([1], "M8[ps]"), np.array([1j]),
    np.zeros(2, "i4,f8"), [np.int8(1), np.int16(1)], [np.void(b"abc"), None], pa.array([1], pa.date64()),
], ids=named)  # fmt: skip
def test_what_arrow_cannot_hold_is_refused(value: Any) -> None:
    with pytest.raises(FormatError):
        FORMAT.encode(value)


def test_a_stream_without_its_end_is_refused() -> None:
    data = FORMAT.encode(TABLE)

    for length in range(len(data)):
        with pytest.raises(FormatError):
            FORMAT.decode(data[:length])


def test_bytes_behind_the_end_are_refused() -> None:
    data = FORMAT.encode([1])

    with pytest.raises(FormatError, match="follow the end"):
        FORMAT.decode(data + data)
    with pytest.raises(FormatError, match="its end is missing"):
        FORMAT.decode(data + b"\0")
