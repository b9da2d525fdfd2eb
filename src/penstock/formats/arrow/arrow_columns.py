"""Any table or vector as an Arrow one, and an Arrow column as values that orjson writes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import FormatError
from penstock.formats.arrow.arrow_objects import from_numpy, from_objects
from penstock.formats.format_values import PANDAS_ARRAY, kind, loaded
from penstock.formats.json import json_columns


def to_table(value: Any) -> pa.Table:
    """Return a table of any library as an Arrow one; the index of a DataFrame is not included."""
    if isinstance(value, pa.Table):
        return value
    return _arrow(lambda: _read_table(value), value)


def to_array(value: Any) -> pa.Array:
    """Return a vector of any library as one Arrow array."""
    array = _arrow(lambda: _read_array(value), value)
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


def one_scalar(array: pa.Array) -> Any:
    """Return the only item of an array as a Python scalar, or a numpy one where Python has none."""
    type_ = array.type
    if pa.types.is_timestamp(type_) and type_.unit == "ns" and type_.tz is None:
        exact = array.cast(pa.int64())[0].as_py()
        if exact is not None and exact % 1000:
            return array.to_numpy(zero_copy_only=False)[0]
        return array.cast(pa.timestamp("us"))[0].as_py()
    try:
        return array[0].as_py()
    except (ValueError, OverflowError):
        # Python's years end at 9999; numpy's do not.
        if pa.types.is_temporal(type_) and getattr(type_, "tz", None) is None:
            return array.to_numpy(zero_copy_only=False)[0]
        raise


def column(array: pa.Array | pa.ChunkedArray) -> Any:
    """Return a column for JSON: numbers as text made from memory, times and decimals as text."""
    type_ = array.type
    if pa.types.is_dictionary(type_):
        return column(array.cast(type_.value_type))
    if pa.types.is_floating(type_):
        wide = array.cast(pa.float32()) if pa.types.is_float16(type_) else array
        return json_columns.numpy_array(wide.fill_null(float("nan")).to_numpy())
    if pa.types.is_integer(type_) and not array.null_count:
        return json_columns.numpy_array(array.to_numpy())
    if pa.types.is_temporal(type_) or pa.types.is_decimal(type_):
        return _texts(array)
    return _items(array)


def _read_table(value: Any) -> pa.Table:
    if isinstance(value, pa.RecordBatchReader):
        return value.read_all()
    if isinstance(value, pa.RecordBatch):
        return pa.Table.from_batches([value])
    if loaded(value, "pandas", "DataFrame"):
        return pa.table({str(name): _read_array(each) for name, each in value.items()})
    return pa.table(value)


def _read_array(value: Any) -> pa.Array | pa.ChunkedArray:
    if isinstance(value, pa.Array | pa.ChunkedArray):
        return value
    if isinstance(value, list | tuple):
        return from_objects(value)
    if loaded(value, "numpy", "ndarray"):
        return from_objects(value.tolist()) if value.dtype == object else from_numpy(value)
    if loaded(value, "pandas", "Series", "Index"):
        return _series(value)
    if loaded(value, *PANDAS_ARRAY):
        return _series(sys.modules["pandas"].Series(value))
    streams = hasattr(type(value), "__arrow_c_stream__")
    return pa.chunked_array(value) if streams else pa.array(value)


def _series(value: Any) -> pa.Array | pa.ChunkedArray:
    if value.dtype != object:
        return pa.array(value, from_pandas=True)
    return from_objects([None if json_columns.is_null(each) else each for each in value.tolist()])


def _arrow(read: Callable[[], Any], value: Any) -> Any:
    try:
        return read()
    except (pa.ArrowException, TypeError, ValueError, OverflowError, RecursionError) as error:
        given = value[0] if isinstance(value, list) and len(value) == 1 else value
        raise FormatError(f"{kind(given)} has no Arrow form: {error}") from error


def _texts(array: pa.Array | pa.ChunkedArray) -> list[str | None]:
    if pa.types.is_duration(array.type) or pa.types.is_interval(array.type):
        raise FormatError(f"JSON cannot represent {array.type}; give it as text or a number")
    texts = array.cast(pa.string())
    if pa.types.is_timestamp(array.type):
        texts = pc.replace_substring(texts, " ", "T", max_replacements=1)
    items: list[str | None] = texts.to_pylist()
    return items


def _items(array: pa.Array | pa.ChunkedArray) -> list[Any]:
    try:
        items: list[Any] = array.to_pylist()
    except (ValueError, OverflowError) as error:
        raise FormatError(f"JSON cannot represent every value of {array.type}: {error}") from error
    if pa.types.is_map(array.type):
        items = [None if each is None else dict(each) for each in items]
    if pa.types.is_nested(array.type):
        json_columns.refuse_infinity(items)
    return items
