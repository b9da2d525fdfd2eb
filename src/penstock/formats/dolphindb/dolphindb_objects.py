"""Lists and numpy arrays of Python objects as vectors: of one type, of rows, or of anything (ANY)."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.errors import FormatError
from penstock.formats.arrow.arrow_columns import to_array
from penstock.formats.dolphindb import choosing, dolphindb_texts, fixed, scalars
from penstock.formats.dolphindb.arrow_conversion import BY_ARROW, has_type, known, packed
from penstock.formats.dolphindb.containers import AnyVector
from penstock.formats.dolphindb.dolphindb_types import (
    BY_NAME,
    FIXED_KINDS,
    MONTHS_BEFORE_1970,
    Type,
)
from penstock.formats.format_values import loaded
from penstock.formats.json.json_columns import is_null

_FAST: dict[frozenset[type], pa.DataType] = {
    frozenset((bool,)): pa.bool_(),
    frozenset((int,)): pa.int64(),
    frozenset((float,)): pa.float64(),
    frozenset((int, float)): pa.float64(),
    frozenset((str,)): pa.string(),
    frozenset((bytes,)): pa.binary(),
    frozenset((scalars.Int,)): pa.int32(),
    frozenset((scalars.Short,)): pa.int16(),
    frozenset((scalars.Char,)): pa.int8(),
}
_DIGITS: dict[type, int] = {scalars.Decimal32: 9, scalars.Decimal64: 18, scalars.Decimal128: 38}
_LISTS = (list, tuple, np.ndarray)


def to_vector(value: Any) -> pa.Array | AnyVector:
    """Return any vector as an Arrow array of a type that DolphinDB has, or as an ANY vector."""
    if isinstance(value, AnyVector):
        return value
    if isinstance(value, list | tuple):
        return of_objects(value)
    if loaded(value, "numpy", "ndarray") and value.dtype.kind in "OMc":
        return _of_numpy(value)
    return known(to_array(value))


def of_objects(items: Sequence[Any]) -> pa.Array | AnyVector:
    """Return a list: of one type a vector, of rows of numbers an array vector, of anything else ANY."""
    kinds = frozenset(map(type, items)) - {type(None)}
    if not kinds:
        return pa.nulls(len(items)) if items else AnyVector()
    if kinds in _FAST:
        return _fast(items, _FAST[kinds])
    if all(issubclass(each, Decimal) for each in kinds):
        return _decimals(items, kinds)
    if all(issubclass(each, _LISTS) for each in kinds):
        return _rows(items)
    return _of_one_type(items)


def _fast(items: Sequence[Any], wanted: pa.DataType) -> pa.Array | AnyVector:
    try:
        return pa.array(items, wanted)
    except pa.ArrowInvalid:
        # A whole number that a float cannot hold stays what it is, in a mixed vector.
        if wanted == pa.float64():
            return AnyVector(items)
        raise FormatError(f"DolphinDB's {BY_ARROW[wanted].name} cannot hold every item") from None
    except (OverflowError, UnicodeError) as error:
        raise FormatError(f"{BY_ARROW[wanted].name} cannot hold every item: {error}") from error


def _of_one_type(items: Sequence[Any]) -> pa.Array | AnyVector:
    try:
        pairs = [choosing.typed(each) for each in items if each is not None]
    except FormatError:
        return AnyVector(items)
    types = {each for each, _ in pairs}
    if len(types) != 1 or any(each.kind == "decimal" for each in types):
        return AnyVector(items)
    (only,) = types
    values = iter(value for _, value in pairs)
    ordered = [None if each is None else next(values) for each in items]
    return packed(only, ordered) if only.kind in FIXED_KINDS else _texts(only, ordered)


def _texts(type_: Type, values: Sequence[Any]) -> pa.Array | AnyVector:
    plain = [None if each is None or isinstance(each, scalars.Null) else each for each in values]
    if type_.kind == "symbol":
        return dolphindb_texts.as_symbols(pa.array(plain, pa.string()))
    return pa.array(plain, type_.arrow) if type_.kind in ("text", "blob") else AnyVector(values)


def _decimals(items: Sequence[Any], kinds: frozenset[type]) -> pa.Array | AnyVector:
    given = [each for each in items if each is not None]
    scale = max(map(choosing.scale_of, given))
    whole = max(choosing.digits_of(each) - choosing.scale_of(each) for each in given)
    widest = max(_DIGITS.get(each, 0) for each in kinds)
    precision = choosing.decimal_type(max(widest, whole + scale), scale).digits
    plain = [None if each is None else Decimal(each) for each in items]
    return pa.array(plain, pa.decimal128(precision, scale))


def _rows(items: Sequence[Any]) -> pa.Array | AnyVector:
    """Return rows of one fixed-width type as an array vector."""
    plain = [() if each is None else each for each in items]
    if any(isinstance(each, np.ndarray) and each.ndim != 1 for each in plain):
        return AnyVector(items)
    cells = list(chain.from_iterable(plain))
    if any(issubclass(each, _LISTS) for each in set(map(type, cells))):
        return AnyVector(items)
    flat = of_objects(cells)
    if not has_type(flat, FIXED_KINDS):
        return AnyVector(items)
    offsets = np.cumsum([0, *map(len, plain)])
    return pa.ListArray.from_arrays(pa.array(offsets.astype("<i4")), flat)


def _of_numpy(value: Any) -> pa.Array | AnyVector:
    if value.dtype.kind == "O":
        return of_objects([None if is_null(each) else each for each in value.tolist()])
    if value.dtype.kind == "c":
        twins, type_ = value.astype("<c16").view("<f8"), BY_NAME["COMPLEX"]
        if (twins == type_.null).any():
            raise FormatError("COMPLEX cannot hold every item: DolphinDB takes one for null")
        return fixed.to_arrow(type_, twins.tobytes())
    unit, step = np.datetime_data(value.dtype)
    if unit not in ("M", "h", "m") or step != 1:
        return known(to_array(value))
    type_ = BY_NAME[choosing.NUMPY_UNITS[unit]]
    numbers = value.astype(np.int64) + MONTHS_BEFORE_1970 * (unit == "M")
    outside = (np.abs(numbers) >= 2**31) & ~np.isnat(value)
    if outside.any():
        raise FormatError(f"{type_.name} cannot hold every item: one is out of range")
    raw = np.where(np.isnat(value), type_.null, numbers).astype("<i4")
    return fixed.to_arrow(type_, raw.tobytes())
