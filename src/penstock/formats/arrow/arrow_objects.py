"""Python objects and numpy arrays as Arrow arrays: one type for all of them, or an error.

pyarrow's own way would take numpy's unit of five seconds for one of a second.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from ipaddress import IPv4Address, IPv6Address, ip_address
from itertools import chain
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa

# In this order: bool is an int, and datetime a date, too.
_SCALARS = (
    bool, int, float, str, bytes, bytearray, memoryview, Decimal, datetime, date, time, timedelta,
)  # fmt: skip
_LISTS = (list, tuple, np.ndarray)
_NULL = type(None)
# The unit that holds every value of a unit that Arrow lacks.
_FINER = {"Y": "D", "M": "D", "W": "D", "h": "s", "m": "s"}
_ARROW_UNITS = ("D", "s", "ms", "us", "ns")


class IpScalar(pa.ExtensionScalar):  # type: ignore[misc]
    """One address."""

    def as_py(self, **_options: Any) -> IPv4Address | IPv6Address | None:
        """Return the address as Python has it."""
        return None if self.value is None else ip_address(self.value.as_py())


class IpType(pa.ExtensionType):  # type: ignore[misc]
    """IPv4 and IPv6 addresses, kept as text: other readers see the text."""

    def __init__(self) -> None:
        super().__init__(pa.string(), "penstock.ip")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, _data: bytes) -> IpType:
        if storage_type != pa.string():
            raise ValueError(f"penstock.ip is kept as string, not as {storage_type}")
        return cls()

    def __hash__(self) -> int:
        return hash(self.extension_name)

    def __arrow_ext_scalar_class__(self) -> type[IpScalar]:
        return IpScalar


pa.register_extension_type(IpType())


def from_objects(items: Sequence[Any]) -> pa.Array:
    """Return an Arrow array of Python objects: scalars, UUIDs, addresses, lists or mappings, and None.

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


def from_numpy(value: Any) -> pa.Array:
    """Return an array of numbers, text, bytes or times; one of more dimensions as lists.

    >>> from_numpy(np.array([[1, 2], [3, 4]], "i2")).type
    ListType(list<item: int16>)
    """
    array = _flat(value.reshape(-1))
    for size in reversed(value.shape[1:]):
        if size:
            array = pa.FixedSizeListArray.from_arrays(array, size)
        else:
            rows = int(np.prod(value.shape[:-1]))
            array = pa.ListArray.from_arrays(pa.array(np.zeros(rows + 1, "i4")), array)
        array = array.cast(pa.list_(array.type.value_type))
    return array


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
    given = [each for each in items if each is not None]
    array = from_numpy(np.array(given))
    if len(given) == len(items):
        return array
    places = np.cumsum([each is not None for each in items]) - 1
    return array.take(pa.array(places, mask=np.array([each is None for each in items])))


def _pandas(items: Sequence[Any]) -> pa.Array:
    import pandas as pd  # noqa: PLC0415 - it is here, since its scalars are

    series = pd.Series(items)
    if series.isna().all():
        return pa.nulls(len(items))
    if series.dtype == object:
        raise TypeError("pandas scalars of different types")
    return pa.array(series, from_pandas=True)


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
