"""Python objects as Arrow arrays: one type for all of them, or an error, never a silent compromise."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from ipaddress import IPv4Address, IPv6Address
from itertools import chain
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa

from penstock.formats.arrow.from_numpy import from_numpy, from_scalars
from penstock.formats.arrow.types import IpType

# In this order: bool is an int, and datetime a date, too.
_SCALARS = (
    bool,
    int,
    float,
    str,
    bytes,
    bytearray,
    memoryview,
    Decimal,
    datetime,
    date,
    time,
    timedelta,
)
_LISTS = (list, tuple, np.ndarray)
_NULL = type(None)


def from_objects(items: Sequence[Any]) -> pa.Array:
    """Give an Arrow array of Python objects: scalars, UUIDs, addresses, lists or mappings, and None.

    >>> from_objects([UUID(int=1), None])[0].as_py()
    UUID('00000000-0000-0000-0000-000000000001')
    >>> from_objects([{"a": [1, 2]}]).to_pylist()
    [{'a': [1, 2]}]
    """
    kinds = set(map(type, items)) - {_NULL}
    if not kinds:
        return pa.nulls(len(items))
    for matches, make in _MAKERS:
        if all(map(matches, kinds)):
            return make(items)
    names = ", ".join(sorted(each.__name__ for each in kinds))
    raise TypeError(f"items of different or unknown types: {names}")


def _uuids(items: Sequence[Any]) -> pa.Array:
    return pa.array([None if each is None else each.bytes for each in items], pa.uuid())


def _addresses(items: Sequence[Any]) -> pa.Array:
    texts = pa.array([None if each is None else str(each) for each in items], pa.string())
    return pa.ExtensionArray.from_storage(IpType(), texts)


def _scalars(items: Sequence[Any]) -> pa.Array:
    given = [each for each in items if each is not None]
    bases = {next(base for base in _SCALARS if isinstance(each, base)) for each in given}
    if len(bases) > 1 and bases != {int, float}:
        raise TypeError(f"items of different types: {', '.join(sorted(b.__name__ for b in bases))}")
    if len({getattr(each, "tzinfo", None) is None for each in given}) > 1:
        raise TypeError("times with and without a zone")
    if time in bases and given[0].tzinfo is not None:
        raise TypeError("Arrow's times of day have no zone")
    return pa.array(items)


def _numpy(items: Sequence[Any]) -> pa.Array:
    if len(set(map(type, items)) - {_NULL}) > 1:
        raise TypeError("numpy scalars of different types")
    return from_scalars(items)


def _pandas(items: Sequence[Any]) -> pa.Array:
    import pandas as pd  # noqa: PLC0415 - it is here, since its scalars are

    found = pd.Series(items)
    if found.isna().all():
        return pa.nulls(len(items))
    if found.dtype == object:
        raise TypeError("pandas scalars of different types")
    return pa.array(found, from_pandas=True)


def _lists(items: Sequence[Any]) -> pa.Array:
    offsets = np.cumsum([0, *(0 if each is None else len(each) for each in items)])
    starts = [None if each is None else place for each, place in zip(items, offsets, strict=False)]
    values = _values([each for each in items if each is not None])
    return pa.ListArray.from_arrays(pa.array([*starts, offsets[-1]], pa.int32()), values)


def _values(rows: Sequence[Any]) -> pa.Array:
    if len({each.dtype if isinstance(each, np.ndarray) else None for each in rows}) == 1 and all(
        isinstance(each, np.ndarray) and each.ndim == 1 and each.dtype != object for each in rows
    ):
        return from_numpy(np.concatenate(rows))
    return from_objects(list(chain.from_iterable(rows)))


def _structs(items: Sequence[Any]) -> pa.Array:
    names = list(dict.fromkeys(chain.from_iterable(each for each in items if each is not None)))
    if not all(isinstance(name, str) for name in names):
        raise TypeError("the keys of a mapping must be text")
    nulls = pa.array([each is None for each in items], pa.bool_())
    if not names:
        return pa.array(items, pa.struct([]))
    columns = [
        from_objects([None if each is None else each.get(name) for each in items]) for name in names
    ]
    return pa.StructArray.from_arrays(columns, names, mask=nulls)


def _is_of(*classes: type) -> Callable[[type], bool]:
    return lambda kind: issubclass(kind, classes)


_MAKERS: list[tuple[Callable[[type], bool], Callable[[Sequence[Any]], pa.Array]]] = [
    (lambda kind: kind.__module__.startswith("pandas."), _pandas),
    (_is_of(np.generic), _numpy),
    (_is_of(pa.Scalar), pa.array),
    (_is_of(*_SCALARS), _scalars),
    (_is_of(UUID), _uuids),
    (_is_of(IPv4Address, IPv6Address), _addresses),
    (_is_of(*_LISTS), _lists),
    (_is_of(Mapping), _structs),
]
