"""One item of a vector, or one scalar, as bytes."""

from __future__ import annotations

import math
import struct
from decimal import Decimal
from typing import Any
from uuid import UUID

from penstock.errors import FormatError
from penstock.formats.dolphindb import moments, scalars
from penstock.formats.dolphindb.choosing import scale_of
from penstock.formats.dolphindb.cursor import int32
from penstock.formats.dolphindb.types import Type, width

LONGEST_TEXT = 262_144
CODES = {"i1": "<b", "i2": "<h", "i4": "<i", "i8": "<q", "f4": "<f", "f8": "<d"}


def write_one(found: Type, value: Any) -> bytes:
    """Give the bytes of a scalar that follow its flag."""
    if found.kind != "decimal":
        return pack(found, value)
    scale = value.scale if isinstance(value, scalars.Null) else scale_of(value)
    return write_scale(found, scale) + pack(found, value, scale)


def write_scale(found: Type, scale: int) -> bytes:
    """Write the scale of a decimal type."""
    return int32(checked_scale(found, scale))


def pack(found: Type, value: Any, scale: int = 0) -> bytes:
    """Give the bytes of one item; None and `Null` are the null of the type."""
    if value is None or isinstance(value, scalars.Null):
        return null_item(found)
    if found.kind in ("text", "symbol"):
        return zero_ended(value)
    if found.kind == "blob":
        return int32(len(value), "a BLOB") + bytes(value)
    data = _pack(found, value, scale)
    if data == null_item(found) and not is_nan(value):
        raise FormatError(f"{found.name} cannot hold {value}: DolphinDB takes it for null")
    return data


def null_item(found: Type) -> bytes:
    """Give the bytes that stand for null."""
    if found.kind in ("void", "text", "symbol"):
        return b"\0"
    if found.kind in ("blob", "reversed"):
        return bytes(4 if found.kind == "blob" else 16)
    if found.name == "DECIMAL128":
        return bytes(15) + b"\x80"
    one = struct.pack(CODES[found.dtype.str[1:]], found.null)
    if found.name == "DURATION":
        return one + bytes(4)
    return one * (2 if found.kind == "twin" else 1)


def zero_ended(text: str) -> bytes:
    """Give text with its end."""
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


def _pack(found: Type, value: Any, scale: int) -> bytes:
    if found.kind == "decimal":
        return _pack_decimal(found, value, scale)
    if found.kind == "reversed":
        return _pack_reversed(found, value)
    if found.kind == "twin":
        return _pack_twin(found, value)
    number = moments.to_number(found, value) if found.name in moments.NAMES else value
    number = found.null if is_nan(number) else number
    try:
        return struct.pack(CODES[found.dtype.str[1:]], number)
    except (struct.error, OverflowError) as error:
        raise FormatError(f"{found.name} cannot hold {value}: it is out of range") from error


def _pack_twin(found: Type, value: Any) -> bytes:
    try:
        if isinstance(value, complex):
            twin = struct.pack("<dd", value.real, value.imag)
        elif isinstance(value, scalars.Point):
            twin = struct.pack("<dd", value.x, value.y)
        else:
            twin = struct.pack("<ii", value.count, scalars.UNITS.index(value.unit))
    except (struct.error, OverflowError, TypeError) as error:
        raise FormatError(f"{found.name} cannot hold {value}: it is out of range") from error
    halves = struct.unpack("<dd" if found.dtype.kind == "f" else "<ii", twin)
    if any(map(is_nan, halves)):
        return null_item(found)
    if halves[0] == found.null or (found.dtype.kind == "f" and halves[1] == found.null):
        raise FormatError(f"{found.name} cannot hold {value}: DolphinDB takes it for null")
    return twin


def _pack_reversed(found: Type, value: Any) -> bytes:
    number = value.int if isinstance(value, UUID) else int(value)
    if getattr(value, "scope_id", None):
        raise FormatError("DolphinDB's addresses have no zone; send the address as text")
    if getattr(value, "version", None) == 6 and found.name == "IPADDR" and number < 2**32:
        raise FormatError(f"DolphinDB takes the IPv6 address {value} for an IPv4 one")
    try:
        return number.to_bytes(16, "little")
    except OverflowError as error:
        raise FormatError(f"{found.name} holds 128 bits without a sign, not {number}") from error


def _pack_decimal(found: Type, value: Decimal, scale: int) -> bytes:
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise FormatError(f"DolphinDB's decimals cannot hold {value}; send a null instead")
    number = int("".join(map(str, digits)))
    # A far exponent would make a number of so many digits before it is refused.
    if number and not 0 <= exponent + scale <= found.digits:
        raise FormatError(f"{found.name} with scale {scale} cannot hold {value}")
    number *= 10 ** max(exponent + scale, 0)
    if number >= 10**found.digits:
        raise FormatError(f"{found.name} holds {found.digits} digits; {value} has more")
    data: bytes = (-number if sign else number).to_bytes(width(found), "little", signed=True)
    return data


def checked_scale(found: Type, scale: int) -> int:
    """Refuse a scale that the type does not have."""
    if not 0 <= scale <= found.digits:
        raise FormatError(f"{found.name} has a scale from 0 to {found.digits}, not {scale}")
    return scale


def is_nan(value: Any) -> bool:
    """Say whether a number is none."""
    return isinstance(value, float) and math.isnan(value)
