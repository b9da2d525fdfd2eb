"""DolphinDB's values as numpy and pandas hold them: the one place where Arrow becomes either.

A vector becomes a numpy array of the type that holds each of its values exactly; where numpy has no such
type it is an array of objects. docs/dolphindb.md has the table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from penstock.errors import missing_extra
from penstock.formats.arrow.columns import to_array
from penstock.formats.dolphindb import AnyVector, Dictionary, Matrix, Pair, ValueSet, WireType
from penstock.formats.dolphindb.containers import python_items

if TYPE_CHECKING:
    from pandas import DataFrame

# Types that are kept in a smaller unit than DolphinDB's own, and numpy's unit for them.
_UNITS = {"MONTH": "M8[M]", "DATEHOUR": "M8[h]", "DATEMINUTE": "M8[m]"}


def to_numpy(array: pa.Array) -> np.ndarray[Any, Any]:
    """A vector as a numpy array that may be written to.

    >>> to_numpy(pa.array([1, 2], pa.int32())), to_numpy(pa.array([1, None], pa.int32()))
    (array([1, 2], dtype=int32), array([ 1., nan]))
    >>> to_numpy(pa.array([2**60, None]))
    array([1152921504606846976, None], dtype=object)
    """
    found = array.type
    if pa.types.is_dictionary(found):
        return to_numpy(array.dictionary_decode())
    if isinstance(found, WireType) and found.dolphindb in _UNITS:
        return to_numpy(array.storage).astype(_UNITS[found.dolphindb])
    if pa.types.is_list(found):
        return objects([None if row is None else to_numpy(row) for row in _rows(array)])
    if _is_exact(array):
        return np.asarray(array.to_numpy(zero_copy_only=False, writable=True))
    return objects(list(map(to_python, python_items(array))))


def objects(items: list[Any]) -> np.ndarray[Any, Any]:
    """An array of Python objects: numpy would take lists of one length for a matrix."""
    made = np.empty(len(items), dtype=object)
    made[:] = items
    return made


def to_frame(table: pa.Table) -> DataFrame:
    """A table as a DataFrame, each column as `to_numpy` has it."""
    columns = [to_numpy(to_array(column)) for column in table.columns]
    return frame(dict(zip(table.column_names, columns, strict=True)))


def frame(columns: Mapping[Any, Any]) -> DataFrame:
    """A DataFrame of columns by their names."""
    try:
        # Half a second that a script without a table need not spend.
        import pandas as pd  # noqa: PLC0415
    except ModuleNotFoundError as missing:
        raise missing_extra(missing, "a table of penstock.compat.dolphindb") from missing
    return pd.DataFrame(dict(columns))


def to_python(value: Any) -> Any:
    """A decoded value as numpy and pandas have it; what they have no word for stays as it is."""
    for kind, convert in _CONVERSIONS:
        if isinstance(value, kind):
            return convert(value)
    return value


def _rows(array: pa.Array) -> list[Any]:
    return [row.values for row in array]


def _is_exact(array: pa.Array) -> bool:
    """Whether numpy has a type that holds every value: nulls among whole numbers make them floats."""
    found = array.type
    if pa.types.is_date(found) or pa.types.is_timestamp(found) or pa.types.is_floating(found):
        return True
    if array.null_count:
        return bool(pa.types.is_integer(found) and found.bit_width <= 32)
    return bool(pa.types.is_integer(found) or pa.types.is_boolean(found))


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


_CONVERSIONS: list[tuple[type, Callable[[Any], Any]]] = [
    (pa.Table, to_frame),
    (pa.Array, to_numpy),
    (AnyVector, lambda items: list(map(to_python, items))),
    (Dictionary, lambda pairs: {key: to_python(value) for key, value in pairs.items()}),
    (Matrix, _matrix),
    (Pair, lambda pair: to_numpy(pair.items)),
    (ValueSet, set),
]
