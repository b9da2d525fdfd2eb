"""Protobuf's scalar types as encodes of columns, without the field's tag."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from penstock.encode.column_bytes import (
    Encode,
    as_bytes,
    byte_lengths,
    fixed_width,
    joined,
    numbers,
    refuse_where,
    varints,
    zigzag,
)
from penstock.encode.exact_casts import exactly
from penstock.encode.primitive_encodes import real_numbers, whole_numbers
from penstock.encode.text_forms import texts_of

VARINT, WIDE, LENGTH, NARROW = 0, 1, 2, 5
_BOOL, _STRING, _BYTES, _ENUM = 8, 9, 12, 14
_REAL = {1: ("<f8", "double"), 2: ("<f4", "float")}
_FIXED = {
    6: ("<u8", "fixed64"),
    7: ("<u4", "fixed32"),
    15: ("<i4", "sfixed32"),
    16: ("<i8", "sfixed64"),
}
_VARINTS: dict[int, tuple[str, type[np.integer[Any]]]] = {
    3: ("int64", np.int64),
    4: ("uint64", np.uint64),
    5: ("int32", np.int32),
    13: ("uint32", np.uint32),
    17: ("sint32", np.int32),
    18: ("sint64", np.int64),
}
_ZIGZAG = (17, 18)
_UNSIGNED_64 = (4, 6)
_DIGITS = re.compile(r"-?[0-9]{1,10}")
_NUMBERS = (*_REAL, *_FIXED, *_VARINTS)
TYPE_NAMES = {
    **{code: name for code, (_, name) in (_REAL | _FIXED).items()},
    **{code: name for code, (name, _) in _VARINTS.items()},
    _BOOL: "bool",
    _STRING: "string",
    _BYTES: "bytes",
    _ENUM: "enum",
}
_WIDE_TYPES, _NARROW_TYPES = (1, 6, 16), (2, 7, 15)


class Scalar(NamedTuple):
    """How a scalar is written, and the kind of its bytes."""

    encode: Encode
    wire: int


def wire_of(type_code: int) -> int:
    """Return the kind of bytes of a field's type: a varint, four or eight bytes, or a length.

    >>> wire_of(3), wire_of(9)
    (0, 2)
    """
    if type_code in _WIDE_TYPES:
        return WIDE
    if type_code in _NARROW_TYPES:
        return NARROW
    return VARINT if type_code in (*_VARINTS, _BOOL, _ENUM) else LENGTH


def scalar_of(field: Any, type_: pa.DataType, path: str) -> Scalar | None:
    """Return how a column is written into a field; None where its type does not fit."""
    encode = _encode(field, type_, path)
    return encode and Scalar(encode, wire_of(field.type))


def _encode(field: Any, type_: pa.DataType, path: str) -> Encode | None:
    code = field.type
    if code in _NUMBERS:
        return _number_encode(code, type_, path)
    if code == _ENUM:
        return _symbols(field.enum_type, path) if pa.types.is_string(type_) else None
    if code == _STRING and (pa.types.is_decimal(type_) or pa.types.is_timestamp(type_)):
        texts = texts_of(type_)
        return texts and (lambda column: _with_size(texts(column)))
    takes = {_BOOL: pa.types.is_boolean, _STRING: pa.types.is_string, _BYTES: pa.types.is_binary}
    if not takes[code](type_):
        return None
    return _booleans if code == _BOOL else _with_size


def _number_encode(code: int, type_: pa.DataType, path: str) -> Encode | None:
    whole = pa.types.is_signed_integer(type_)
    if code in _UNSIGNED_64 and pa.types.is_decimal(type_):
        exact = exactly(pa.uint64(), path, f"is beyond the range of {TYPE_NAMES[code]}")
        encode = varints if code in _VARINTS else _eight_bytes
        return lambda column: encode(numbers(exact(column)))
    if code in _REAL and (whole or pa.types.is_floating(type_)):
        return real_numbers(*_REAL[code], path)
    if code in _FIXED and whole:
        return whole_numbers(*_FIXED[code], path)
    return _varint_encode(code, path) if code in _VARINTS and whole else None


def _varint_encode(code: int, path: str) -> Encode:
    name, kind = _VARINTS[code]
    limits = np.iinfo(kind)
    least, most = int(limits.min), min(int(limits.max), np.iinfo(np.int64).max)

    def encode(column: pa.Array) -> pa.Array:
        values = numbers(column)
        bad = (values < least) | (values > most)
        refuse_where(bad, column, path, f"is beyond the range of {name}")
        wide = values.astype(np.int64)
        return varints(zigzag(wide) if code in _ZIGZAG else wide.view(np.uint64))

    return encode


def _symbols(enum: Any, path: str) -> Encode:
    names = pa.array([value.name for value in enum.values], pa.string())
    codes = np.array([value.number for value in enum.values], np.int64)
    reason = f"is not a value of the enum {enum.full_name}"

    def encode(column: pa.Array) -> pa.Array:
        places = pc.index_in(column, names)
        unknown = numbers(places.is_null())
        values = codes[numbers(places.fill_null(0))]
        if unknown.any():
            given = [None if enum.is_closed else _enum_number(each) for each in column.to_pylist()]
            bad = unknown & np.array([each is None for each in given])
            refuse_where(bad, column, path, reason)
            values[unknown] = [given[at] for at in np.flatnonzero(unknown)]
        return varints(values.view(np.uint64))

    return encode


def _enum_number(text: str) -> int | None:
    """Return the number of a value without a name, which the decode reads as its digits."""
    number = int(text) if _DIGITS.fullmatch(text) else None
    return number if number is not None and -(2**31) <= number < 2**31 else None


def _eight_bytes(values: npt.NDArray[np.uint64]) -> pa.Array:
    return fixed_width(values.astype("<u8").view(np.uint8).reshape(-1, 8))


def _booleans(column: pa.Array) -> pa.Array:
    return fixed_width(numbers(column).astype(np.uint8).reshape(-1, 1))


def _with_size(column: pa.Array) -> pa.Array:
    return joined(varints(byte_lengths(column).astype(np.uint64)), as_bytes(column))


def default_test(field: Any) -> Callable[[pa.Array], pa.Array]:
    """Return what finds the items that are the default of their field, which proto3 leaves out."""
    if field.type in _UNSIGNED_64:
        return _zeros
    if field.type != _ENUM:
        return _defaults
    first = field.enum_type.values_by_number[0].name
    return lambda column: pc.equal(column, first)


def _zeros(column: pa.Array) -> pa.Array:
    return pc.equal(column, pa.scalar(0, column.type))


def _defaults(column: pa.Array) -> pa.Array:
    if pa.types.is_string(column.type) or pa.types.is_binary(column.type):
        return pc.equal(pc.binary_length(column), 0)
    if pa.types.is_decimal(column.type) or pa.types.is_timestamp(column.type):
        return pa.repeat(pa.scalar(False), len(column))  # written as a text, which is never empty
    values = numbers(column)
    negative_zero = np.signbit(values) if values.dtype.kind == "f" else np.zeros(len(values), bool)
    return pa.array((values == 0) & ~negative_zero)
