"""Kafka's primitive types, as its Java serdes write them: big-endian numbers, UTF-8, UUIDs as text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from penstock.encode.column_bytes import (
    Encode,
    Flags,
    as_bytes,
    fixed_width,
    numbers,
    refuse_where,
)
from penstock.errors import ConfigError

_WHOLE = {"short": ">i2", "int": ">i4", "long": ">i8"}
_REAL = {"float": ">f4", "double": ">f8"}
_UUID = r"^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$"
PRIMITIVES = ("string", *_WHOLE, *_REAL, "bytes", "uuid")


def primitive_encode(name: str, type_: pa.DataType, path: str) -> Encode:
    """Return the encode of one of Kafka's primitive types for a column, or refuse the column's type.

    >>> primitive_encode("short", pa.int64(), "n")(pa.array([258])).to_pylist()
    [b'\\x01\\x02']
    """
    for takes, encode in _makers(name, path):
        if takes(type_):
            return encode
    raise ConfigError(
        f"the format {name!r} cannot write the column {path!r} of type {type_}; a step can cast it"
    )


Takes = Callable[[pa.DataType], bool]


def _makers(name: str, path: str) -> list[tuple[Takes, Encode]]:
    if name in _WHOLE:
        return [(pa.types.is_signed_integer, whole_numbers(_WHOLE[name], name, path))]
    if name in _REAL:
        return [
            (pa.types.is_floating, real_numbers(_REAL[name], name, path)),
            (pa.types.is_signed_integer, real_numbers(_REAL[name], name, path)),
        ]
    if name == "uuid":
        return [(pa.types.is_string, uuids(path))]
    return [(pa.types.is_binary if name == "bytes" else pa.types.is_string, as_bytes)]


def whole_numbers(form: str, name: str, path: str) -> Encode:
    """Return the encode of whole numbers of a width, given as numpy's code: `>i4`, `<i8`."""
    limits = np.iinfo(np.dtype(form))

    def encode(column: pa.Array) -> pa.Array:
        values = numbers(column)
        bad = (values < limits.min) | (values > limits.max)
        refuse_where(bad, column, path, f"is beyond the range of {name}")
        return _raw(values.astype(form))

    return encode


def real_numbers(form: str, name: str, path: str) -> Encode:
    """Return the encode of IEEE 754 numbers; a whole number must stay what it is."""

    def encode(column: pa.Array) -> pa.Array:
        values = numbers(column)
        with np.errstate(over="ignore"):
            written = values.astype(form)
        if pa.types.is_floating(column.type):
            bad = np.isinf(written) & ~np.isinf(values)
        else:
            bad = not_exact(values, written)
        refuse_where(bad, column, path, f"has no exact form as {name}")
        return _raw(written)

    return encode


def not_exact(values: npt.NDArray[Any], written: npt.NDArray[Any]) -> Flags:
    """Return which whole numbers are not equal to their floating-point form."""
    wide = written.astype(np.float64)
    # The greatest number of 64 bits becomes 2**63, which cannot be cast back.
    inside = np.abs(wide) < 2.0**63
    back = np.where(inside, wide, 0).astype(np.int64)
    inexact: Flags = (~inside & (values != np.iinfo(np.int64).min)) | (inside & (back != values))
    return inexact


def uuids(path: str) -> Encode:
    """Return the encode of UUIDs in their text form, in lower case."""

    def encode(column: pa.Array) -> pa.Array:
        bad = ~numbers(pc.match_substring_regex(column, _UUID))
        refuse_where(bad, column, path, "is not a UUID of 36 characters")
        return as_bytes(pc.ascii_lower(column))

    return encode


def _raw(values: npt.NDArray[Any]) -> pa.Array:
    width = values.dtype.itemsize
    return fixed_width(values.view(np.uint8).reshape(-1, width))
