"""One scalar, read from its bytes."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any
from uuid import UUID

from penstock.errors import FormatError
from penstock.formats.dolphindb import moments, scalars
from penstock.formats.dolphindb.cursor import Cursor
from penstock.formats.dolphindb.packing import CODES, checked_scale, is_nan
from penstock.formats.dolphindb.types import Type, width

_PYTHON: dict[str, Callable[[Any], Any]] = {
    "CHAR": scalars.Char, "SHORT": scalars.Short, "INT": scalars.Int, "LONG": int,
    "FLOAT": scalars.Float, "DOUBLE": float,
    "UUID": lambda number: UUID(int=number), "IPADDR": scalars.address, "INT128": scalars.Int128,
    "DECIMAL32": scalars.Decimal32, "DECIMAL64": scalars.Decimal64, "DECIMAL128": scalars.Decimal128,
}  # fmt: skip


def read_one(cursor: Cursor, found: Type) -> Any:
    """Give the scalar whose bytes come next; None for a null."""
    if found.kind == "any":
        raise FormatError("DolphinDB has no scalar of ANY")
    if found.kind == "void":
        return _void(cursor.take(1)[0])
    if found.kind in ("text", "symbol"):
        text = cursor.text()
        return scalars.Symbol(text) if found.kind == "symbol" else text
    if found.kind == "blob":
        return cursor.take(cursor.count("a BLOB"), "a BLOB")
    if found.kind == "decimal":
        scale = read_scale(cursor, found)
        return _decimal(found, cursor.take(width(found), found.name), scale)
    return _fixed(found, cursor.take(width(found), found.name))


def read_scale(cursor: Cursor, found: Type) -> int:
    """Give the scale of a decimal type."""
    return checked_scale(found, cursor.int32(f"the scale of {found.name}"))


def _fixed(found: Type, data: bytes) -> Any:
    if found.kind == "reversed":
        number = int.from_bytes(data, "little")
        return _PYTHON[found.name](number) if number else None
    if found.kind == "twin":
        return _twin(found, data)
    (raw,) = struct.unpack(CODES[found.dtype.str[1:]], data)
    if raw == found.null or is_nan(raw):
        return None
    if found.kind == "bool":
        return _bool(raw)
    if found.name in moments.NAMES:
        return moments.to_python(found, raw)
    return _PYTHON[found.name](raw)


def _bool(raw: int) -> bool:
    if raw not in (0, 1):
        raise FormatError(f"BOOL {raw} is neither 0 nor 1")
    return raw == 1


def _twin(found: Type, data: bytes) -> Any:
    first, second = struct.unpack("<dd" if found.dtype.kind == "f" else "<ii", data)
    if first == found.null or is_nan(first) or is_nan(second):
        return None
    if found.dtype.kind == "f" and second == found.null:
        return None
    return scalars.from_storage(found.name, (first, second))


def _decimal(found: Type, data: bytes, scale: int) -> Any:
    number = int.from_bytes(data, "little", signed=True)
    if number == -(2 ** (width(found) * 8 - 1)):
        return None
    if abs(number) >= 10**found.digits:
        raise FormatError(f"{found.name} holds {found.digits} digits, not {number}")
    digits = tuple(map(int, str(abs(number))))
    return _PYTHON[found.name]((int(number < 0), digits, -scale))


def _void(raw: int) -> None:
    if raw not in (0, 1):
        raise FormatError(f"VOID {raw} is neither 0 nor 1")
