"""DolphinDB's values as numpy and pandas objects: the only conversion from Arrow to either.

A vector becomes a numpy array of a type that represents each of its values exactly; if numpy has no such
type it is an array of objects. A scalar is that of DolphinDB's own Python API.
docs/dolphindb.md has the tables.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date, datetime, time
from ipaddress import IPv4Address, IPv6Address
from typing import TYPE_CHECKING, Any
from uuid import UUID

import numpy as np
import pyarrow as pa

from penstock.errors import missing_extra
from penstock.formats.arrow.arrow_columns import to_array
from penstock.formats.arrow.arrow_size import python_size
from penstock.formats.dolphindb import (
    AnyVector,
    Dictionary,
    Matrix,
    Pair,
    ValueSet,
    WireType,
    scalars,
)
from penstock.formats.dolphindb.containers import python_items, shared
from penstock.formats.limits import check_size

if TYPE_CHECKING:
    from pandas import DataFrame

# Types that are stored in a smaller unit than DolphinDB's own, and numpy's unit for them.
_UNITS = {"MONTH": "M8[M]", "DATEHOUR": "M8[h]", "DATEMINUTE": "M8[m]"}
# Types that numpy would take for arrays.
_ARRAY = 256
_FIRST_DAY = date(1970, 1, 1)
_NANOSECONDS_BEGIN, _NANOSECONDS_END = datetime(1677, 9, 22), datetime(2262, 4, 11)


def to_numpy(array: pa.Array) -> np.ndarray[Any, Any]:
    """Return a vector as a numpy array that may be written to.

    >>> to_numpy(pa.array([1, 2], pa.int32())), to_numpy(pa.array([1, None], pa.int32()))
    (array([1, 2], dtype=int32), array([ 1., nan]))
    >>> to_numpy(pa.array([2**60, None]))
    array([1152921504606846976, None], dtype=object)
    """
    check_size(_objects_size(array), "a vector of objects")
    return _to_numpy(array)


def _to_numpy(array: pa.Array) -> np.ndarray[Any, Any]:
    type_ = array.type
    if pa.types.is_dictionary(type_):
        return _symbols(array)
    if isinstance(type_, WireType) and type_.dolphindb in _UNITS:
        return _to_numpy(array.storage).astype(_UNITS[type_.dolphindb])
    if pa.types.is_list(type_):
        return objects(
            [None if row is None else _to_numpy(row) for row in (item.values for item in array)]
        )
    if _is_exact(array):
        return np.asarray(array.to_numpy(zero_copy_only=False, writable=True))
    if isinstance(type_, WireType) and type_.dolphindb == "ANY":
        return objects(list(map(to_python, python_items(array))))
    return objects(python_items(array))


def objects(items: list[Any]) -> np.ndarray[Any, Any]:
    """Return an array of Python objects: numpy would take lists of one length for a matrix."""
    made = np.empty(len(items), dtype=object)
    made[:] = items
    return made


def to_frame(table: pa.Table) -> DataFrame:
    """Return a table as a DataFrame of `to_numpy` columns."""
    arrays = list(map(to_array, table.columns))
    check_size(sum(map(_objects_size, arrays)), "a table with columns of objects")
    columns = list(map(_to_numpy, arrays))
    return frame(dict(zip(table.column_names, columns, strict=True)))


def frame(columns: Mapping[Any, Any]) -> DataFrame:
    """Return a DataFrame of columns by their names."""
    try:
        # Importing pandas takes half a second, which only scripts with tables need.
        import pandas as pd  # noqa: PLC0415
    except ModuleNotFoundError as missing:
        raise missing_extra(missing, "a table of penstock.compat.dolphindb") from missing
    return pd.DataFrame(dict(columns))


def to_python(value: Any) -> Any:
    """Return a decoded value as a numpy or pandas object; values without one are unchanged."""
    if type(value) in _SCALARS:
        return _SCALARS[type(value)](value)
    for kind, convert in _CONVERSIONS:
        if isinstance(value, kind):
            return convert(value)
    return value


def _symbols(array: pa.DictionaryArray) -> np.ndarray[Any, Any]:
    """Return symbols as objects of their base: many indexes may refer to one long text."""
    base = _to_numpy(array.dictionary)
    if array.null_count or not len(base):
        places = array.indices.to_pylist()
        return objects([None if place is None else base[place] for place in places])
    taken: np.ndarray[Any, Any] = base[array.indices.to_numpy(zero_copy_only=False)]
    return taken


def _objects_size(array: pa.Array) -> int:
    """Count the memory of the objects of a vector; numbers and timestamps stay in numpy arrays."""
    if _is_exact(array) or (isinstance(array.type, WireType) and array.type.dolphindb in _UNITS):
        return 0
    if pa.types.is_list(array.type):
        return _ARRAY * len(array) + _objects_size(array.values)
    return python_size(shared(array)) + 8 * len(array)


def _is_exact(array: pa.Array) -> bool:
    """Return whether numpy has a type for every value: nulls among integers make them floats."""
    type_ = array.type
    if pa.types.is_date(type_) or pa.types.is_timestamp(type_) or pa.types.is_floating(type_):
        return True
    if array.null_count:
        return bool(pa.types.is_integer(type_) and type_.bit_width <= 32)
    return bool(pa.types.is_integer(type_) or pa.types.is_boolean(type_))


def _matrix(matrix: Matrix) -> Any:
    values = to_numpy(matrix.values).reshape(matrix.columns, matrix.rows).T
    if matrix.row_labels is None and matrix.column_labels is None:
        return values
    labelled = frame(dict(enumerate(values.T)))
    if matrix.row_labels is not None:
        labelled.index = to_numpy(matrix.row_labels)
    if matrix.column_labels is not None:
        labelled.columns = to_numpy(matrix.column_labels)
    return labelled


def _day(unit: str) -> Callable[[Any], Any]:
    return lambda value: np.datetime64(value, "D").astype(f"M8[{unit}]")


def _moment(unit: str) -> Callable[[Any], Any]:
    return lambda value: np.datetime64(value, "us").astype(f"M8[{unit}]")


def _clock(unit: str) -> Callable[[Any], Any]:
    convert = _moment(unit)
    return lambda value: value if value.tzinfo else convert(datetime.combine(_FIRST_DAY, value))


def _nanoseconds(value: datetime) -> Any:
    """Return a datetime as NANOTIMESTAMP, unless it comes from another format and is out of range."""
    if value.tzinfo is not None or not _NANOSECONDS_BEGIN < value < _NANOSECONDS_END:
        return value
    return _moment("ns")(value)


# The conversion of each class that represents a DolphinDB type; other values are unchanged. A time of
# day is a moment of 1970-01-01, as in DolphinDB's own API; UUID, IPADDR and INT128 are text.
_SCALARS: dict[type, Callable[[Any], Any]] = {
    date: _day("D"),
    scalars.Month: _day("M"),
    scalars.Time: _clock("ms"),
    scalars.Minute: _clock("m"),
    scalars.Second: _clock("s"),
    scalars.DateHour: _moment("h"),
    scalars.DateMinute: _moment("m"),
    scalars.DateTime: _moment("s"),
    scalars.Timestamp: _moment("ms"),
    time: _clock("ns"),
    scalars.NanoTime: lambda value: np.datetime64(int(value), "ns"),
    datetime: _nanoseconds,
    UUID: str,
    IPv4Address: str,
    IPv6Address: str,
    scalars.Int128: str,
}
_CONVERSIONS: list[tuple[type, Callable[[Any], Any]]] = [
    (pa.Table, to_frame),
    (pa.Array, to_numpy),
    (AnyVector, lambda items: list(map(to_python, items))),
    (Dictionary, lambda pairs: {to_python(key): to_python(pairs[key]) for key in pairs}),
    (Matrix, _matrix),
    (Pair, lambda pair: to_numpy(pair.items)),
    (ValueSet, lambda members: set(map(to_python, members))),
]
