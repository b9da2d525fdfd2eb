"""Items of fixed width between the wire and Arrow, whole buffers at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from penstock.errors import FormatError
from penstock.formats.dolphindb.scalars import UNITS
from penstock.formats.dolphindb.types import Type, width

_MONTHS_BEFORE_1970 = 1970 * 12
Raw = Any  # a numpy array: its own types say less than they ask for


def to_arrow(found: Type, data: bytes, scale: int = 0) -> pa.Array:
    """Give the items of some bytes as an Arrow array."""
    count = len(data) // width(found)
    raw = _raw(found, data)
    nulls = _nulls(found, raw)
    _check(found, raw, nulls)
    storage = _storage(found, raw, nulls)
    array = _array(found, storage, count, nulls, scale)
    if isinstance(found.arrow, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(found.arrow, array)
    return array


def to_wire(found: Type, array: pa.Array) -> bytes:
    """Give the bytes of an Arrow array of the type's own Arrow type."""
    stored = array.storage if isinstance(array, pa.ExtensionArray) else array
    nulls = stored.is_null().to_numpy(zero_copy_only=False)
    if found.kind in ("number", "twin") and found.dtype.kind == "f":
        values = _buffer(found, stored)
        nulls = nulls | _pairwise(found, np.isnan(values))
    raw = _unstored(found, stored, nulls)
    clash = _nulls(found, raw) & ~nulls
    if clash.any():
        raise FormatError(f"{found.name} at item {clash.argmax()} is what DolphinDB takes for null")
    _check(found, raw, nulls)
    data: bytes = _with_nulls(found, raw, nulls).tobytes()
    return data


def _raw(found: Type, data: bytes) -> Raw:
    if found.dtype.itemsize == 16:
        return np.frombuffer(data, "<i8").reshape(-1, 2)
    flat = np.frombuffer(data, found.dtype)
    return flat.reshape(-1, 2) if found.kind == "twin" else flat


def _nulls(found: Type, raw: Raw) -> Raw:
    if found.kind == "reversed":
        return (raw == 0).all(axis=1)
    if found.name == "DECIMAL128":
        return (raw[:, 0] == 0) & (raw[:, 1] == np.iinfo(np.int64).min)
    if found.name == "DURATION":
        return raw[:, 0] == found.null
    nulls = raw == found.null
    if found.dtype.kind == "f":
        nulls |= np.isnan(raw)
    return _pairwise(found, nulls)


def _pairwise(found: Type, marks: Raw) -> Raw:
    if found.kind != "twin":
        return marks
    return marks.reshape(-1, 2).any(axis=1)


def _check(found: Type, raw: Raw, nulls: Raw) -> None:
    """Refuse numbers that are no value of the type: a second BOOL, a 25th hour, an unknown unit."""
    limit = {"bool": 2, "twin": len(UNITS)}.get(found.kind, found.limit)
    if limit is None or (found.kind == "twin" and found.name != "DURATION"):
        return
    numbers = raw[:, 1] if found.kind == "twin" else raw
    wrong = ((numbers < 0) | (numbers >= limit)) & ~nulls
    if wrong.any():
        place = int(wrong.argmax())
        raise FormatError(
            f"{found.name} {numbers[place]} at item {place} is outside of 0 to {limit - 1}"
        )


def _storage(found: Type, raw: Raw, nulls: Raw) -> Raw:
    if found.kind == "bool":
        return np.packbits(raw == 1, bitorder="little")
    if found.kind == "reversed":
        return raw.view("u1").reshape(-1, 16)[:, ::-1]
    if found.kind == "decimal" and found.name != "DECIMAL128":
        wide = raw.astype("<i8")
        return np.stack([wide, wide >> 63], axis=1)
    if found.kind == "month":
        return _days(np.where(nulls, 0, raw))
    if found.kind == "number" and found.dtype.kind == "i":
        return _scaled(found, raw, nulls)
    return raw


def _scaled(found: Type, raw: Raw, nulls: Raw) -> Raw:
    wanted = np.dtype(f"<i{found.storage.bit_width // 8}")
    if found.unit == 1:
        return raw.astype(wanted, copy=False)
    return np.where(nulls, 0, raw).astype(wanted) * found.unit


def _days(months: Raw) -> Raw:
    days = (
        (months.astype("<i8") - _MONTHS_BEFORE_1970).astype("M8[M]").astype("M8[D]").astype("<i8")
    )
    if days.size and np.abs(days).max() >= 2**31:
        raise FormatError("MONTH is too far from 1970 for Arrow's dates")
    return days.astype("<i4")


def _array(found: Type, storage: Raw, count: int, nulls: Raw, scale: int) -> pa.Array:
    valid = pa.py_buffer(np.packbits(~nulls, bitorder="little")) if nulls.any() else None
    data = pa.py_buffer(np.ascontiguousarray(storage))
    if found.kind == "twin":
        flat = pa.Array.from_buffers(found.storage.value_type, count * 2, [None, data])
        return pa.Array.from_buffers(found.storage, count, [valid], children=[flat])
    if found.kind != "decimal":
        return pa.Array.from_buffers(found.storage, count, [valid, data])
    array = pa.Array.from_buffers(pa.decimal128(found.digits, scale), count, [valid, data])
    try:
        array.validate(full=True)
    except pa.ArrowInvalid as error:
        raise FormatError(f"{found.name} holds {found.digits} digits: {error}") from error
    return array


def _buffer(found: Type, stored: pa.Array) -> Raw:
    """Look at the numbers of an Arrow array, as they lie in memory."""
    if found.kind == "twin":
        flat = stored.values
        numbers = np.frombuffer(flat.buffers()[1] or b"", found.dtype)
        first = flat.offset + stored.offset * 2
        return numbers[first : first + len(stored) * 2].reshape(-1, 2)
    size = 16 if found.kind in ("reversed", "decimal") else stored.type.bit_width // 8
    data = np.frombuffer(stored.buffers()[1] or b"", "u1")
    part = data[stored.offset * size : (stored.offset + len(stored)) * size]
    if size == 16:
        return part.view("<i8").reshape(-1, 2)
    return part.view(f"<{found.dtype.kind}{size}")


def _unstored(found: Type, stored: pa.Array, nulls: Raw) -> Raw:
    if found.kind == "bool":
        return stored.fill_null(False).to_numpy(zero_copy_only=False).astype("i1")
    values = _buffer(found, stored)
    if found.kind == "reversed":
        return np.ascontiguousarray(values.view("u1").reshape(-1, 16)[:, ::-1]).view("<i8")
    if found.kind == "decimal" and found.name != "DECIMAL128":
        return _narrow(found, values[:, 0], nulls)
    if found.kind == "month":
        return _months(np.where(nulls, 0, values))
    if found.kind == "number" and found.dtype.kind == "i":
        return _units(found, np.where(nulls, 0, values))
    return values


def _units(found: Type, values: Raw) -> Raw:
    if found.unit > 1 and (values % found.unit).any():
        raise FormatError(f"{found.name} cannot hold the smaller units of a value; round it first")
    return _narrow(found, values // found.unit, np.zeros(len(values), bool))


def _narrow(found: Type, values: Raw, nulls: Raw) -> Raw:
    known = np.where(nulls, 0, values)
    limits = np.iinfo(found.dtype)
    if known.size and (known.min() < limits.min or known.max() > limits.max):
        raise FormatError(f"{found.name} cannot hold every value: one is out of range")
    return known.astype(found.dtype)


def _months(days: Raw) -> Raw:
    dates = days.astype("M8[D]")
    months = dates.astype("M8[M]")
    if (months.astype("M8[D]") != dates).any():
        raise FormatError("MONTH cannot hold a day of the month; take the first of it")
    return (months.astype("<i8") + _MONTHS_BEFORE_1970).astype("<i4")


def _with_nulls(found: Type, raw: Raw, nulls: Raw) -> Raw:
    if not nulls.any():
        return raw
    marked = raw.copy()
    if found.kind == "reversed":
        marked[nulls] = 0
    elif found.name == "DECIMAL128":
        marked[nulls] = (0, np.iinfo(np.int64).min)
    elif found.name == "DURATION":
        marked[nulls] = (found.null, 0)
    else:
        marked[nulls] = found.null
    return marked
