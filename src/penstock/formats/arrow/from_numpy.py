"""Numpy arrays as Arrow arrays. pyarrow's own way takes a unit of five seconds for one of a second."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

# The unit that holds every value of a unit that Arrow lacks.
_FINER = {"Y": "D", "M": "D", "W": "D", "h": "s", "m": "s"}
_ARROW_UNITS = ("D", "s", "ms", "us", "ns")


def from_numpy(value: Any) -> pa.Array:
    """Give an array of numbers, text, bytes or times; one of more dimensions as lists.

    >>> from_numpy(np.array([[1, 2], [3, 4]], "i2")).type
    ListType(list<item: int16>)
    """
    found = _flat(value.reshape(-1))
    for size in reversed(value.shape[1:]):
        found = (
            pa.FixedSizeListArray.from_arrays(found, size) if size else _empty_rows(value, found)
        )
        found = found.cast(pa.list_(found.type.value_type))
    return found


def from_scalars(items: Sequence[Any]) -> pa.Array:
    """Give numpy scalars of one type, and None."""
    given = [each for each in items if each is not None]
    found = from_numpy(np.array(given))
    if len(given) == len(items):
        return found
    places = np.cumsum([each is not None for each in items]) - 1
    return found.take(pa.array(places, mask=np.array([each is None for each in items])))


def _flat(value: Any) -> pa.Array:
    kind = value.dtype.kind
    if kind in "Mm":
        return _times(value)
    if kind in "US":
        return pa.array(value.tolist(), pa.string() if kind == "U" else pa.binary())
    if kind not in "biuf" or value.dtype.itemsize > 8:
        raise TypeError(f"Arrow has no type for numpy's {value.dtype}")
    return pa.array(np.ascontiguousarray(value, value.dtype.newbyteorder("=")))


def _times(value: Any) -> pa.Array:
    unit, _step = np.datetime_data(value.dtype)
    wanted = unit if unit in _ARROW_UNITS else _FINER.get(unit)
    if wanted is None or (value.dtype.kind == "m" and wanted == "D"):
        raise TypeError(f"Arrow has no type for numpy's {value.dtype}; choose another unit")
    exact = value.astype(f"{value.dtype.kind}8[{wanted}]")
    known = ~np.isnat(value)
    days_fit = wanted != "D" or (np.abs(exact.astype(np.int64)[known]) < 2**31).all()
    if not days_fit or (exact.astype(value.dtype) != value)[known].any():
        raise OverflowError(f"numpy's {value.dtype} is too far from 1970 for the unit {wanted}")
    return pa.array(np.ascontiguousarray(exact))


def _empty_rows(value: Any, found: pa.Array) -> pa.Array:
    rows = int(np.prod(value.shape[:-1]))
    return pa.ListArray.from_arrays(pa.array(np.zeros(rows + 1, "i4")), found)
