"""Python values as Arrow arrays, where each is stored as what it is.

Arrow refuses most of what does not fit a type. Of some values it would store another one: fractions
are cut off, numbers become times, zones are lost, fields of structs are left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import date, datetime, time
from functools import lru_cache
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

_Check = Callable[[list[Any]], None]
_NONE = type(None)
_NULLS = frozenset(("NAType", "NaTType"))
_TEXTS = (str, bytes, bytearray)
# Doubles from here on become infinite when they are rounded to 32 bits.
_INFINITE = float(np.finfo(np.float32).max) + 2.0**103
# Arrow takes only the unit of the type, and its own values only of the type itself.
_STRICT = (pa.Scalar, np.datetime64)


def array_of(values: Any, type_: pa.DataType, *, from_pandas: bool = False) -> pa.Array:
    """Return values as an array, or raise an error where one does not fit the type as it is.

    With `from_pandas` the values are a series, and NaN is null.

    >>> array_of([1, 2.0, None], pa.int64()).to_pylist()
    [1, 2, None]
    >>> array_of([1, 2.5], pa.int64())
    Traceback (most recent call last):
    ValueError: 2.5 is not a whole number
    """
    made = pa.array(values, type_, from_pandas=from_pandas)
    check = _check_of(type_)
    if check is not None:
        check(values if isinstance(values, list) else list(values))
    return made


@lru_cache(maxsize=256)
def _check_of(type_: pa.DataType) -> _Check | None:
    """Return what finds the values that Arrow would change; None where it changes none."""
    if pa.types.is_integer(type_):
        return _whole
    if type_ == pa.float32():
        return _finite
    if pa.types.is_date(type_):
        return _dates
    if pa.types.is_timestamp(type_):
        return _moments if type_.tz else _local_moments
    return _nested_check(type_)


def _nested_check(type_: pa.DataType) -> _Check | None:
    if pa.types.is_list(type_):
        item = _check_of(type_.value_type)
        return lambda values: _lists(values, item)
    if pa.types.is_map(type_):
        item = _check_of(type_.item_type)
        return None if item is None else lambda values: _maps(values, item)
    if pa.types.is_struct(type_):
        fields = list(type_)
        return lambda values: _structs(values, fields)
    return None


def _whole(values: list[Any]) -> None:
    if set(map(type, values)) <= {int, _NONE}:
        return
    for value in _given(values):
        if not isinstance(value, int) and value != int(value):
            raise ValueError(f"{value!r} is not a whole number")


def _finite(values: list[Any]) -> None:
    for value in values:
        if isinstance(value, float) and math.isfinite(value) and abs(value) >= _INFINITE:
            raise ValueError(f"{value!r} is too large for 32 bits")


def _dates(values: list[Any]) -> None:
    if set(map(type, values)) <= {date, _NONE}:
        return
    for value in _given(values):
        if not isinstance(value, date):
            raise TypeError(f"{value!r} is not a date")
        if isinstance(value, datetime) and value.time() != time():
            raise ValueError(f"{value!r} has a time of day")


def _moments(values: list[Any]) -> None:
    if set(map(type, values)) <= {datetime, _NONE}:
        return
    for value in _given(values):
        if not isinstance(value, datetime):
            raise TypeError(f"{value!r} is not a datetime")
        if getattr(value, "nanosecond", 0):  # of pandas
            raise ValueError(f"{value!r} has nanoseconds")


def _local_moments(values: list[Any]) -> None:
    _moments(values)
    for value in _given(values):
        if value.tzinfo is not None:
            raise ValueError(f"{value!r} has a zone")


def _lists(values: list[Any], check: _Check | None) -> None:
    given = _given(values)
    if any(issubclass(kind, _TEXTS) for kind in set(map(type, given))):
        text = next(value for value in given if isinstance(value, _TEXTS))
        raise TypeError(f"{text!r} is not a list")
    if check is not None:
        check([item for value in given for item in value])


def _maps(values: list[Any], check: _Check) -> None:
    items: list[Any] = []
    for value in _given(values):
        items += value.values() if isinstance(value, Mapping) else map(_item, value)
    check(items)


def _item(pair: Any) -> Any:
    """Return the value of a pair, which is a tuple, or a row as polars makes them."""
    return pair.get("value") if isinstance(pair, Mapping) else pair[1]


def _structs(values: list[Any], fields: list[pa.Field]) -> None:
    names = [field.name for field in fields]
    known = set(names)
    rows = _given(values)
    if set(map(type, rows)) != {dict}:
        rows = [
            dict(zip(names, value, strict=True)) if isinstance(value, tuple) else dict(value)
            for value in rows
        ]
    if not known.issuperset(chain.from_iterable(rows)):
        unknown = next(name for row in rows for name in row if name not in known)
        raise ValueError(f"the field {unknown!r}")
    for field in fields:
        check = _check_of(field.type)
        if check is None and field.nullable:
            continue
        column = [row.get(field.name) for row in rows]
        if not field.nullable and any(map(_is_null, column)):
            raise ValueError(f"the field {field.name!r} is required")
        if check is not None:
            check(column)


def _given(values: list[Any]) -> list[Any]:
    """Return the values that are to be checked; their types say whether any is to be left out."""
    left_out = {kind for kind in set(map(type, values)) if _may_be_left_out(kind)}
    if not left_out:
        return values
    if left_out == {_NONE}:
        return [value for value in values if value is not None]
    return [value for value in values if not _is_null(value) and not isinstance(value, _STRICT)]


def _may_be_left_out(kind: type) -> bool:
    return kind is _NONE or issubclass(kind, (float, *_STRICT)) or kind.__name__ in _NULLS


def _is_null(value: Any) -> bool:
    """Return whether a value is null for Arrow; NaN is where it was accepted as a value of the type."""
    if value is None:
        return True
    return (isinstance(value, float) and math.isnan(value)) or type(value).__name__ in _NULLS
