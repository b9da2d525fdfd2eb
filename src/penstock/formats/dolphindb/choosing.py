"""Which type of DolphinDB a Python or numpy scalar is written as."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, time
from decimal import Decimal
from ipaddress import IPv4Address, IPv6Address
from typing import Any
from uuid import UUID

import numpy as np

from penstock.errors import FormatError
from penstock.formats.dolphindb import moments, scalars
from penstock.formats.dolphindb.types import BY_NAME, Type
from penstock.formats.json.columns import is_null
from penstock.formats.values import kind, loaded

_NAMES: dict[type, str] = {
    type(None): "VOID",
    bool: "BOOL",
    scalars.Char: "CHAR",
    scalars.Short: "SHORT",
    scalars.Int: "INT",
    int: "LONG",
    date: "DATE",
    scalars.Month: "MONTH",
    scalars.Time: "TIME",
    scalars.Minute: "MINUTE",
    scalars.Second: "SECOND",
    scalars.DateTime: "DATETIME",
    scalars.Timestamp: "TIMESTAMP",
    scalars.NanoTime: "NANOTIME",
    time: "NANOTIME",
    datetime: "NANOTIMESTAMP",
    np.datetime64: "NANOTIMESTAMP",
    scalars.Float: "FLOAT",
    float: "DOUBLE",
    scalars.Symbol: "SYMBOL",
    str: "STRING",
    UUID: "UUID",
    scalars.DateHour: "DATEHOUR",
    scalars.DateMinute: "DATEMINUTE",
    IPv4Address: "IPADDR",
    IPv6Address: "IPADDR",
    scalars.Int128: "INT128",
    bytes: "BLOB",
    bytearray: "BLOB",
    memoryview: "BLOB",
    complex: "COMPLEX",
    scalars.Point: "POINT",
    scalars.Duration: "DURATION",
    scalars.Decimal32: "DECIMAL32",
    scalars.Decimal64: "DECIMAL64",
    scalars.Decimal128: "DECIMAL128",
}
# These need no second look; numpy's datetimes have a unit, which decides.
_OWN = frozenset(_NAMES) - {np.datetime64}
_NUMPY: dict[str, Callable[[Any], Any]] = {
    "b1": bool, "i1": scalars.Char, "i2": scalars.Short, "i4": scalars.Int, "i8": int,
    "u1": scalars.Short, "u2": scalars.Int, "u4": int, "u8": int,
    "f2": scalars.Float, "f4": scalars.Float, "f8": float, "c8": complex, "c16": complex,
}  # fmt: skip
NUMPY_UNITS = {
    "M": "MONTH", "D": "DATE", "h": "DATEHOUR", "m": "DATEMINUTE", "s": "DATETIME", "ms": "TIMESTAMP",
    "us": "NANOTIMESTAMP", "ns": "NANOTIMESTAMP",
}  # fmt: skip
_ONLY_HERE = (scalars.Null, scalars.Point, scalars.Duration)
MONTHS_BEFORE_1970 = 1970 * 12


def typed(value: Any) -> tuple[Type, Any]:
    """Give the type of a scalar, and the scalar as a value of one of the classes that stand for types.

    >>> typed(7)[0].name, typed(np.int16(7))[0].name, typed(Decimal("1.50"))[0].name
    ('LONG', 'SHORT', 'DECIMAL32')
    """
    if type(value) in _OWN:
        return BY_NAME[_NAMES[type(value)]], value
    simple = _simple(value)
    if isinstance(simple, scalars.Null):
        return _type_of_null(simple), simple
    for each in type(simple).__mro__:
        if each in _NAMES:
            return BY_NAME[_NAMES[each]], simple
    if isinstance(simple, Decimal):
        return decimal_type(digits_of(simple), scale_of(simple)), simple
    raise FormatError(f"DolphinDB has no type for {kind(value)}")


def is_scalar(value: Any) -> bool:
    """Say whether a value is one of the scalars that only this format knows."""
    return isinstance(value, _ONLY_HERE)


def decimal_type(digits: int, scale: int) -> Type:
    """Give the narrowest decimal type that holds so many digits."""
    for name in ("DECIMAL32", "DECIMAL64", "DECIMAL128"):
        if max(digits, scale) <= BY_NAME[name].digits:
            return BY_NAME[name]
    raise FormatError(f"DolphinDB's decimals hold 38 digits, not {max(digits, scale)}")


def scale_of(value: Decimal) -> int:
    """Count the digits after the point."""
    exponent = value.as_tuple().exponent
    if isinstance(exponent, str):
        raise FormatError(f"DolphinDB's decimals cannot hold {value}; send a null instead")
    return max(-exponent, 0)


def digits_of(value: Decimal) -> int:
    """Count the digits before and after the point, zeros included."""
    return scale_of(value) + (max(value.adjusted() + 1, 0) if value else 0)


def _simple(value: Any) -> Any:
    if is_null(value) and not isinstance(value, float | complex | np.generic):
        return None
    if loaded(value, "pandas", "Timestamp"):
        moments.refuse_zone("NANOTIMESTAMP", value)
        value = value.to_datetime64()
    if isinstance(value, np.datetime64):
        return _moment(value)
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if isinstance(value, np.generic) and not isinstance(value, str | bytes):
        return _number(value)
    return value


def _number(value: Any) -> Any:
    made = _NUMPY.get(value.dtype.str[1:])
    if made is None:
        raise FormatError(f"DolphinDB has no type for numpy's {value.dtype}")
    return made(value.item())


def _moment(value: np.datetime64) -> Any:
    unit, step = np.datetime_data(value.dtype)
    name = NUMPY_UNITS.get(unit)
    if name is None or step != 1:
        raise FormatError(f"DolphinDB has no type for numpy's {value.dtype}; choose another unit")
    if np.isnat(value):
        return scalars.Null(name)
    number = int(value.astype(np.int64)) * (1000 if unit == "us" else 1)
    return moments.to_python(BY_NAME[name], number + MONTHS_BEFORE_1970 * (unit == "M"))


def _type_of_null(null: scalars.Null) -> Type:
    found = BY_NAME.get(null.type.upper())
    if found is None or found.kind == "any":
        raise FormatError(f"DolphinDB has no null of type {null.type!r}")
    return found
