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
from penstock.formats.dolphindb.dolphindb_types import BY_NAME, MONTHS_BEFORE_1970, Type
from penstock.formats.format_values import kind, loaded
from penstock.formats.json.json_columns import is_null

_NAMES: dict[type, str] = {
    **{each: name for name, each in scalars.CLASSES.items()},
    type(None): "VOID",
    bool: "BOOL",
    int: "LONG",
    date: "DATE",
    time: "NANOTIME",
    datetime: "NANOTIMESTAMP",
    np.datetime64: "NANOTIMESTAMP",
    float: "DOUBLE",
    str: "STRING",
    UUID: "UUID",
    IPv4Address: "IPADDR",
    IPv6Address: "IPADDR",
    bytes: "BLOB",
    bytearray: "BLOB",
    memoryview: "BLOB",
    complex: "COMPLEX",
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


def typed(value: Any) -> tuple[Type, Any]:
    """Return the type of a scalar, and the scalar as a value of the class of that type.

    >>> typed(7)[0].name, typed(np.int16(7))[0].name, typed(Decimal("1.50"))[0].name
    ('LONG', 'SHORT', 'DECIMAL32')
    """
    if type(value) in _OWN:
        return BY_NAME[_NAMES[type(value)]], value
    simple = _simple(value)
    if isinstance(simple, scalars.Null):
        type_ = BY_NAME.get(simple.type.upper())
        if type_ is None or type_.kind == "any":
            raise FormatError(f"DolphinDB has no null of type {simple.type!r}")
        return type_, simple
    for each in type(simple).__mro__:
        if each in _NAMES:
            return BY_NAME[_NAMES[each]], simple
    if isinstance(simple, Decimal):
        return decimal_type(digits_of(simple), scale_of(simple)), simple
    raise FormatError(f"DolphinDB has no type for {kind(value)}")


def decimal_type(digits: int, scale: int) -> Type:
    """Return the narrowest decimal type for this many digits."""
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
        made = _NUMPY.get(value.dtype.str[1:])
        if made is None:
            raise FormatError(f"DolphinDB has no type for numpy's {value.dtype}")
        return made(value.item())
    return value


def _moment(value: np.datetime64) -> Any:
    unit, step = np.datetime_data(value.dtype)
    name = NUMPY_UNITS.get(unit)
    if name is None or step != 1:
        raise FormatError(f"DolphinDB has no type for numpy's {value.dtype}; choose another unit")
    if np.isnat(value):
        return scalars.Null(name)
    number = int(value.astype(np.int64)) * (1000 if unit == "us" else 1)
    return moments.to_python(BY_NAME[name], number + MONTHS_BEFORE_1970 * (unit == "M"))
