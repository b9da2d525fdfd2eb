"""One item of a vector, or one scalar, as bytes; and one scalar from its bytes."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from decimal import Decimal
from typing import Any
from uuid import UUID

from penstock.errors import FormatError
from penstock.formats.dolphindb import moments, scalars
from penstock.formats.dolphindb.choosing import scale_of
from penstock.formats.dolphindb.cursor import Cursor, int32
from penstock.formats.dolphindb.dolphindb_types import Type, width

LONGEST_TEXT = 262_144
_CODES = {"i1": "<b", "i2": "<h", "i4": "<i", "i8": "<q", "f4": "<f", "f8": "<d"}
_PYTHON: dict[str, Callable[[Any], Any]] = {
    **scalars.CLASSES,
    "LONG": int,
    "DOUBLE": float,
    "UUID": lambda number: UUID(int=number),
    "IPADDR": scalars.address,
}


def write_one(type_: Type, value: Any) -> bytes:
    """Return the bytes of a scalar that follow its flag."""
    if type_.kind != "decimal":
        return pack(type_, value)
    scale = value.scale if isinstance(value, scalars.Null) else scale_of(value)
    return write_scale(type_, scale) + pack(type_, value, scale)


def write_scale(type_: Type, scale: int) -> bytes:
    """Write the scale of a decimal type."""
    return int32(_checked_scale(type_, scale))


def pack(type_: Type, value: Any, scale: int = 0) -> bytes:
    """Return the bytes of one item; None and `Null` are the null of the type."""
    if value is None or isinstance(value, scalars.Null):
        return _null_item(type_)
    if type_.kind in ("text", "symbol"):
        return zero_ended(value)
    if type_.kind == "blob":
        return int32(len(value), "a BLOB") + bytes(value)
    data = _pack(type_, value, scale)
    if data == _null_item(type_) and not _is_nan(value):
        raise FormatError(f"{type_.name} cannot hold {value}: DolphinDB takes it for null")
    return data


def _null_item(type_: Type) -> bytes:
    if type_.kind in ("void", "text", "symbol"):
        return b"\0"
    if type_.kind in ("blob", "reversed"):
        return bytes(4 if type_.kind == "blob" else 16)
    if type_.name == "DECIMAL128":
        return bytes(15) + b"\x80"
    one = struct.pack(_CODES[type_.dtype.str[1:]], type_.null)
    if type_.name == "DURATION":
        return one + bytes(4)
    return one * (2 if type_.kind == "twin" else 1)


def zero_ended(text: str) -> bytes:
    """Return text with its end."""
    try:
        data = text.encode()
    except UnicodeEncodeError as error:
        raise FormatError(f"the text has no UTF-8 form: {error.reason}") from error
    if b"\0" in data:
        raise FormatError(
            "DolphinDB's text cannot hold a zero character; send bytes (BLOB) instead"
        )
    if len(data) >= LONGEST_TEXT:
        raise FormatError(f"text of {len(data)} bytes: DolphinDB takes less than {LONGEST_TEXT}")
    return data + b"\0"


def _pack(type_: Type, value: Any, scale: int) -> bytes:
    if type_.kind == "decimal":
        return _pack_decimal(type_, value, scale)
    if type_.kind == "reversed":
        return _pack_reversed(type_, value)
    if type_.kind == "twin":
        return _pack_twin(type_, value)
    number = moments.to_number(type_, value) if type_.name in moments.NAMES else value
    number = type_.null if _is_nan(number) else number
    try:
        return struct.pack(_CODES[type_.dtype.str[1:]], number)
    except (struct.error, OverflowError) as error:
        raise FormatError(f"{type_.name} cannot hold {value}: it is out of range") from error


def _pack_twin(type_: Type, value: Any) -> bytes:
    try:
        if isinstance(value, complex):
            twin = struct.pack("<dd", value.real, value.imag)
        elif isinstance(value, scalars.Point):
            twin = struct.pack("<dd", value.x, value.y)
        else:
            twin = struct.pack("<ii", value.count, scalars.UNITS.index(value.unit))
    except (struct.error, OverflowError, TypeError) as error:
        raise FormatError(f"{type_.name} cannot hold {value}: it is out of range") from error
    halves = struct.unpack("<dd" if type_.dtype.kind == "f" else "<ii", twin)
    if any(map(_is_nan, halves)):
        return _null_item(type_)
    if halves[0] == type_.null or (type_.dtype.kind == "f" and halves[1] == type_.null):
        raise FormatError(f"{type_.name} cannot hold {value}: DolphinDB takes it for null")
    return twin


def _pack_reversed(type_: Type, value: Any) -> bytes:
    number = value.int if isinstance(value, UUID) else int(value)
    if getattr(value, "scope_id", None):
        raise FormatError("DolphinDB's addresses have no zone; send the address as text")
    if getattr(value, "version", None) == 6 and type_.name == "IPADDR" and number < 2**32:
        raise FormatError(f"DolphinDB takes the IPv6 address {value} for an IPv4 one")
    try:
        return number.to_bytes(16, "little")
    except OverflowError as error:
        raise FormatError(f"{type_.name} holds 128 bits without a sign, not {number}") from error


def _pack_decimal(type_: Type, value: Decimal, scale: int) -> bytes:
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise FormatError(f"DolphinDB's decimals cannot hold {value}; send a null instead")
    number = int("".join(map(str, digits)))
    # A large exponent would make a number of that many digits before it is refused.
    if number and not 0 <= exponent + scale <= type_.digits:
        raise FormatError(f"{type_.name} with scale {scale} cannot hold {value}")
    number *= 10 ** max(exponent + scale, 0)
    if number >= 10**type_.digits:
        raise FormatError(f"{type_.name} holds {type_.digits} digits; {value} has more")
    data: bytes = (-number if sign else number).to_bytes(width(type_), "little", signed=True)
    return data


def _checked_scale(type_: Type, scale: int) -> int:
    if not 0 <= scale <= type_.digits:
        raise FormatError(f"{type_.name} has a scale from 0 to {type_.digits}, not {scale}")
    return scale


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def read_one(cursor: Cursor, type_: Type) -> Any:
    """Return the scalar whose bytes come next; None for a null."""
    if type_.kind == "any":
        raise FormatError("DolphinDB has no scalar of ANY")
    if type_.kind == "void":
        raw = cursor.take(1)[0]
        if raw not in (0, 1):
            raise FormatError(f"VOID {raw} is neither 0 nor 1")
        return None
    if type_.kind in ("text", "symbol"):
        text = cursor.text()
        return scalars.Symbol(text) if type_.kind == "symbol" else text
    if type_.kind == "blob":
        return cursor.take(cursor.count("a BLOB"), "a BLOB")
    if type_.kind == "decimal":
        scale = read_scale(cursor, type_)
        return _decimal(type_, cursor.take(width(type_), type_.name), scale)
    return _fixed(type_, cursor.take(width(type_), type_.name))


def read_scale(cursor: Cursor, type_: Type) -> int:
    """Return the scale of a decimal type."""
    return _checked_scale(type_, cursor.int32(f"the scale of {type_.name}"))


def _fixed(type_: Type, data: bytes) -> Any:
    if type_.kind == "reversed":
        number = int.from_bytes(data, "little")
        return _PYTHON[type_.name](number) if number else None
    if type_.kind == "twin":
        return _twin(type_, data)
    (raw,) = struct.unpack(_CODES[type_.dtype.str[1:]], data)
    if raw == type_.null or _is_nan(raw):
        return None
    if type_.kind == "bool":
        if raw not in (0, 1):
            raise FormatError(f"BOOL {raw} is neither 0 nor 1")
        return raw == 1
    if type_.name in moments.NAMES:
        return moments.to_python(type_, raw)
    return _PYTHON[type_.name](raw)


def _twin(type_: Type, data: bytes) -> Any:
    first, second = struct.unpack("<dd" if type_.dtype.kind == "f" else "<ii", data)
    if first == type_.null or _is_nan(first) or _is_nan(second):
        return None
    if type_.dtype.kind == "f" and second == type_.null:
        return None
    return scalars.FROM_STORAGE[type_.name]((first, second))


def _decimal(type_: Type, data: bytes, scale: int) -> Any:
    number = int.from_bytes(data, "little", signed=True)
    if number == -(2 ** (width(type_) * 8 - 1)):
        return None
    if abs(number) >= 10**type_.digits:
        raise FormatError(f"{type_.name} holds {type_.digits} digits, not {number}")
    digits = tuple(map(int, str(abs(number))))
    return _PYTHON[type_.name]((int(number < 0), digits, -scale))
