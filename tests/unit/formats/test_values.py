"""What shape a value has, and how vectors and tables are counted and cut."""

from __future__ import annotations

from datetime import date, datetime, time
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

from penstock.errors import FormatError
from penstock.formats.dolphindb import AnyVector
from penstock.formats.format_values import Shape, cut, rows, settle, shape


class ArrayLike:
    """An array of a library that is not here: all that is known of it is its Arrow interface."""

    def __init__(self, array: pa.Array) -> None:
        self.array = array

    def __arrow_c_array__(self, requested_schema: Any = None) -> Any:
        return self.array.__arrow_c_array__(requested_schema)


class Query:
    """A table that is computed again each time it is read, as duckdb's relations are."""

    def __init__(self) -> None:
        self.runs = 0

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        self.runs += 1
        return pa.table({"a": [1, 2, 3]}).__arrow_c_stream__(requested_schema)


SCALARS = [
    None, True, 1, 1.5, 1j, "a", b"a", Decimal("1.5"), date(2024, 1, 1), time(1, 2), datetime(2024, 1, 1),
    UUID(int=1), ip_address("1.2.3.4"), ip_address("::1"), np.int8(1), np.float32(1), np.bool_(True),
    np.datetime64("2024-01-01"), np.array(3), pa.scalar(1), pd.Timestamp("2024-01-01"), pd.NaT, pd.NA,
]  # fmt: skip
VECTORS = [
    [1, 2, 3], (1, 2, 3), np.array([1, 2, 3]), pa.array([1, 2, 3]), pa.chunked_array([[1], [2, 3]]),
    pd.Series([1, 2, 3]), pl.Series([1, 2, 3]), AnyVector([1, 2, 3]),
]  # fmt: skip
TABLES = [
    pa.table({"a": [1, 2, 3]}), pa.record_batch({"a": [1, 2, 3]}), pd.DataFrame({"a": [1, 2, 3]}),
    pl.DataFrame({"a": [1, 2, 3]}),
]  # fmt: skip


@pytest.mark.parametrize("value", SCALARS, ids=repr)
def test_a_scalar_is_one_and_cannot_be_split(value: Any) -> None:
    assert shape(value) is Shape.SCALAR
    assert rows(value) is None


@pytest.mark.parametrize("value", VECTORS, ids=lambda value: type(value).__name__)
def test_a_vector_is_cut_by_elements_into_its_own_kind(value: Any) -> None:
    piece = cut(value, 1, 3)

    assert shape(value) is Shape.VECTOR
    assert rows(value) == 3
    assert type(piece) is type(value)
    assert [getattr(each, "as_py", lambda each=each: each)() for each in piece] == [2, 3]


@pytest.mark.parametrize("value", TABLES, ids=lambda value: type(value).__module__)
def test_a_table_is_cut_by_rows_into_its_own_kind(value: Any) -> None:
    piece = cut(value, 1, 3)

    assert shape(value) is Shape.TABLE
    assert rows(value) == 3
    assert type(piece) is type(value)
    assert pa.table(piece).column("a").to_pylist() == [2, 3]


@pytest.mark.parametrize("value", [{"a": 1}, MappingProxyType({"a": 1})])
def test_a_mapping_is_one_and_cannot_be_split(value: Any) -> None:
    assert shape(value) is Shape.MAPPING
    assert rows(value) is None


def test_a_matrix_is_a_vector_that_cannot_be_split() -> None:
    assert shape(np.zeros((2, 2))) is Shape.VECTOR
    assert rows(np.zeros((2, 2))) is None


def test_an_array_of_an_unknown_library_is_a_vector() -> None:
    value = ArrayLike(pa.array([1, 2]))

    assert shape(value) is Shape.VECTOR
    assert rows(value) is None


@pytest.mark.parametrize("make", [Query, lambda: pa.table({"a": [1, 2, 3]}).to_reader()])
def test_a_stream_is_a_table_that_is_read_once(make: Any) -> None:
    value = make()
    settled = settle(value)

    assert shape(value) is Shape.TABLE
    assert rows(value) is None
    assert (rows(settled), cut(settled, 1, 2).to_pydict()) == (3, {"a": [2]})
    assert getattr(value, "runs", 1) == 1


@pytest.mark.parametrize(
    "value", [1, [1], {"a": 1}, *TABLES], ids=lambda value: type(value).__name__
)
def test_what_can_be_read_again_stays_as_it_is(value: Any) -> None:
    assert settle(value) is value


@pytest.mark.parametrize("value", [object(), {1, 2}, range(3), print])
def test_what_is_no_value_is_refused_by_its_type(value: Any) -> None:
    with pytest.raises(FormatError, match=rf"{type(value).__name__} is not a value for a message"):
        shape(value)
    assert rows(value) is None


def test_an_error_names_the_type_and_never_the_value() -> None:
    class Password:
        def __repr__(self) -> str:
            return "secret"

    with pytest.raises(FormatError) as refused:
        shape(Password())
    assert "secret" not in str(refused.value)
