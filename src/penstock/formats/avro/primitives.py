"""Avro's primitive types, written: only a value that the type can hold exactly is taken."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from operator import index
from struct import Struct
from typing import Any

from penstock.errors import FormatError

Writer = Callable[[Any, bytearray], None]
INT_RANGE, LONG_RANGE = 1 << 31, 1 << 63


def no(value: Any, kind: str) -> FormatError:
    """Say that a value is not what the schema wants."""
    return FormatError(f"{value!r:.80} ({type(value).__name__}) is no {kind}")


def _write_null(value: Any, _out: bytearray) -> None:
    if value is not None:
        raise no(value, "null")


def _write_boolean(value: Any, out: bytearray) -> None:
    if not isinstance(value, bool):
        raise no(value, "boolean")
    out.append(value)


def _integers(kind: str, limit: int) -> Writer:
    def write(value: Any, out: bytearray) -> None:
        if type(value) is not int:
            value = _index(value, kind)
        if not -limit <= value < limit:
            raise no(value, kind)
        number = (value << 1) ^ (value >> 63)
        while number > 0x7F:
            out.append(number & 0x7F | 0x80)
            number >>= 7
        out.append(number)

    return write


def _index(value: Any, kind: str) -> int:
    try:
        if not isinstance(value, bool):
            return index(value)
    except TypeError:
        pass
    raise no(value, kind)


def _reals(kind: str, code: str) -> Writer:
    form = Struct(code)
    pack = form.pack

    def write(value: Any, out: bytearray) -> None:
        try:
            data = pack(value if type(value) is float else _float(value, kind))
        except OverflowError:
            raise no(value, kind) from None
        # A fraction is always near what was given; a whole number must be what was given.
        if isinstance(value, int) and form.unpack(data)[0] != value:
            raise no(value, kind)
        out += data

    return write


def _float(value: Any, kind: str) -> float:
    if isinstance(value, Real) and not isinstance(value, bool):
        return float(value)
    raise no(value, kind)


write_long = _integers("long", LONG_RANGE)


def number_bytes(number: int) -> bytes:
    """Give the bytes of a count or a place."""
    out = bytearray()
    write_long(number, out)
    return bytes(out)


def _write_bytes(value: Any, out: bytearray) -> None:
    if not isinstance(value, bytes | bytearray | memoryview):
        raise no(value, "bytes")
    data = bytes(value)
    write_long(len(data), out)
    out += data


def write_string(value: Any, out: bytearray) -> None:
    """Write a text: its length in bytes, and its UTF-8."""
    if not isinstance(value, str):
        raise no(value, "string")
    data = value.encode()
    write_long(len(data), out)
    out += data


PRIMITIVES: dict[str, Writer] = {
    "null": _write_null,
    "boolean": _write_boolean,
    "int": _integers("int", INT_RANGE),
    "long": write_long,
    "float": _reals("float", "<f"),
    "double": _reals("double", "<d"),
    "bytes": _write_bytes,
    "string": write_string,
}
