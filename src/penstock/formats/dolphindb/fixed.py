"""Items of fixed width between the wire and Arrow, whole buffers at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from penstock.errors import FormatError
from penstock.formats.dolphindb.dolphindb_types import MONTHS_BEFORE_1970, Type, width
from penstock.formats.dolphindb.scalars import UNITS

Raw = Any  # a numpy array: its own types say less than they ask for


def to_arrow(type_: Type, data: bytes, scale: int = 0) -> pa.Array:
    """Return the items of some bytes as an Arrow array."""
    count = len(data) // width(type_)
    raw = _raw(type_, data)
    nulls = _nulls(type_, raw)
    _check(type_, raw, nulls)
    storage = _storage(type_, raw, nulls)
    array = _array(type_, storage, count, nulls, scale)
    if isinstance(type_.arrow, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(type_.arrow, array)
    return array


def to_wire(type_: Type, array: pa.Array) -> bytes:
    """Return the bytes of an Arrow array of the type's own Arrow type."""
    stored = array.storage if isinstance(array, pa.ExtensionArray) else array
    nulls = stored.is_null().to_numpy(zero_copy_only=False)
    if type_.kind in ("number", "twin") and type_.dtype.kind == "f":
        values = _buffer(type_, stored)
        nulls = nulls | _pairwise(type_, np.isnan(values))
    raw = _unstored(type_, stored, nulls)
    clash = _nulls(type_, raw) & ~nulls
    if clash.any():
        raise FormatError(f"{type_.name} at item {clash.argmax()} is what DolphinDB takes for null")
    _check(type_, raw, nulls)
    data: bytes = _with_nulls(type_, raw, nulls).tobytes()
    return data


def _raw(type_: Type, data: bytes) -> Raw:
    if type_.dtype.itemsize == 16:
        return np.frombuffer(data, "<i8").reshape(-1, 2)
    flat = np.frombuffer(data, type_.dtype)
    return flat.reshape(-1, 2) if type_.kind == "twin" else flat


def _nulls(type_: Type, raw: Raw) -> Raw:
    if type_.kind == "reversed":
        return (raw == 0).all(axis=1)
    if type_.name == "DECIMAL128":
        return (raw[:, 0] == 0) & (raw[:, 1] == np.iinfo(np.int64).min)
    if type_.name == "DURATION":
        return raw[:, 0] == type_.null
    nulls = raw == type_.null
    if type_.dtype.kind == "f":
        nulls |= np.isnan(raw)
    return _pairwise(type_, nulls)


def _pairwise(type_: Type, marks: Raw) -> Raw:
    if type_.kind != "twin":
        return marks
    return marks.reshape(-1, 2).any(axis=1)


def _check(type_: Type, raw: Raw, nulls: Raw) -> None:
    """Refuse numbers that are not values of the type: a second BOOL, a 25th hour, an unknown unit."""
    limit = {"bool": 2, "twin": len(UNITS)}.get(type_.kind, type_.limit)
    if limit is None or (type_.kind == "twin" and type_.name != "DURATION"):
        return
    numbers = raw[:, 1] if type_.kind == "twin" else raw
    wrong = ((numbers < 0) | (numbers >= limit)) & ~nulls
    if wrong.any():
        place = int(wrong.argmax())
        raise FormatError(
            f"{type_.name} {numbers[place]} at item {place} is outside of 0 to {limit - 1}"
        )


def _storage(type_: Type, raw: Raw, nulls: Raw) -> Raw:
    if type_.kind == "bool":
        return np.packbits(raw == 1, bitorder="little")
    if type_.kind == "reversed":
        return raw.view("u1").reshape(-1, 16)[:, ::-1]
    if type_.kind == "decimal" and type_.name != "DECIMAL128":
        wide = raw.astype("<i8")
        return np.stack([wide, wide >> 63], axis=1)
    if type_.kind == "month":
        return _days(np.where(nulls, 0, raw))
    if type_.kind == "number" and type_.dtype.kind == "i":
        return _scaled(type_, raw, nulls)
    return raw


def _scaled(type_: Type, raw: Raw, nulls: Raw) -> Raw:
    wanted = np.dtype(f"<i{type_.storage.bit_width // 8}")
    if type_.unit == 1:
        return raw.astype(wanted, copy=False)
    return np.where(nulls, 0, raw).astype(wanted) * type_.unit


def _days(months: Raw) -> Raw:
    days = (months.astype("<i8") - MONTHS_BEFORE_1970).astype("M8[M]").astype("M8[D]").astype("<i8")
    if days.size and np.abs(days).max() >= 2**31:
        raise FormatError("MONTH is too far from 1970 for Arrow's dates")
    return days.astype("<i4")


def _array(type_: Type, storage: Raw, count: int, nulls: Raw, scale: int) -> pa.Array:
    valid = pa.py_buffer(np.packbits(~nulls, bitorder="little")) if nulls.any() else None
    data = pa.py_buffer(np.ascontiguousarray(storage))
    if type_.kind == "twin":
        flat = pa.Array.from_buffers(type_.storage.value_type, count * 2, [None, data])
        return pa.Array.from_buffers(type_.storage, count, [valid], children=[flat])
    if type_.kind != "decimal":
        return pa.Array.from_buffers(type_.storage, count, [valid, data])
    array = pa.Array.from_buffers(pa.decimal128(type_.digits, scale), count, [valid, data])
    try:
        array.validate(full=True)
    except pa.ArrowInvalid as error:
        raise FormatError(f"{type_.name} holds {type_.digits} digits: {error}") from error
    return array


def _buffer(type_: Type, stored: pa.Array) -> Raw:
    """Return the numbers of an Arrow array without copying them."""
    if type_.kind == "twin":
        flat = stored.values
        numbers = np.frombuffer(flat.buffers()[1] or b"", type_.dtype)
        first = flat.offset + stored.offset * 2
        return numbers[first : first + len(stored) * 2].reshape(-1, 2)
    size = 16 if type_.kind in ("reversed", "decimal") else stored.type.bit_width // 8
    data = np.frombuffer(stored.buffers()[1] or b"", "u1")
    part = data[stored.offset * size : (stored.offset + len(stored)) * size]
    if size == 16:
        return part.view("<i8").reshape(-1, 2)
    return part.view(f"<{type_.dtype.kind}{size}")


def _unstored(type_: Type, stored: pa.Array, nulls: Raw) -> Raw:
    if type_.kind == "bool":
        return stored.fill_null(False).to_numpy(zero_copy_only=False).astype("i1")
    values = _buffer(type_, stored)
    if type_.kind == "reversed":
        return np.ascontiguousarray(values.view("u1").reshape(-1, 16)[:, ::-1]).view("<i8")
    if type_.kind == "decimal" and type_.name != "DECIMAL128":
        return _narrow(type_, values[:, 0], nulls)
    if type_.kind == "month":
        return _months(np.where(nulls, 0, values))
    if type_.kind == "number" and type_.dtype.kind == "i":
        return _units(type_, np.where(nulls, 0, values))
    return values


def _units(type_: Type, values: Raw) -> Raw:
    if type_.unit > 1 and (values % type_.unit).any():
        raise FormatError(f"{type_.name} cannot hold the smaller units of a value; round it first")
    return _narrow(type_, values // type_.unit, np.zeros(len(values), bool))


def _narrow(type_: Type, values: Raw, nulls: Raw) -> Raw:
    known = np.where(nulls, 0, values)
    limits = np.iinfo(type_.dtype)
    if known.size and (known.min() < limits.min or known.max() > limits.max):
        raise FormatError(f"{type_.name} cannot hold every value: one is out of range")
    return known.astype(type_.dtype)


def _months(days: Raw) -> Raw:
    dates = days.astype("M8[D]")
    months = dates.astype("M8[M]")
    if (months.astype("M8[D]") != dates).any():
        raise FormatError("MONTH cannot hold a day of the month; take the first of it")
    return (months.astype("<i8") + MONTHS_BEFORE_1970).astype("<i4")


def _with_nulls(type_: Type, raw: Raw, nulls: Raw) -> Raw:
    if not nulls.any():
        return raw
    marked = raw.copy()
    if type_.kind == "reversed":
        marked[nulls] = 0
    elif type_.name == "DECIMAL128":
        marked[nulls] = (0, np.iinfo(np.int64).min)
    elif type_.name == "DURATION":
        marked[nulls] = (type_.null, 0)
    else:
        marked[nulls] = type_.null
    return marked
