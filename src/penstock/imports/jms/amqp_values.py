"""The values of AMQP 1.0, from bytes to Python.

proton's own decoder of messages takes malformed bytes for an empty message, and of several data sections
only the first: both would lose what was sent.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any
from uuid import UUID

# Values inside each other; more would be an attack.
_DEEPEST = 32
Read = Callable[[bytes, int, int], tuple[Any, int]]
"""Reads a value of one type: from bytes, a position and a depth; returns the position after it, too."""


class AmqpError(ValueError):
    """Bytes that are not a message of AMQP 1.0."""


def read_value(data: bytes, at: int, depth: int = 0) -> tuple[Any, int]:
    """Return the value at a position, and the position after it.

    >>> read_value(bytes([0xA1, 2]) + b"ok", 0)
    ('ok', 4)
    """
    if depth > _DEEPEST:
        raise AmqpError(f"values are nested more than {_DEEPEST} deep")
    try:
        return _READ[data[at]](data, at + 1, depth)
    except (IndexError, struct.error):
        raise AmqpError(f"the message ends in the middle of a value, at byte {at}") from None
    except KeyError:
        raise AmqpError(f"there is no type {data[at]:#04x} of values, at byte {at}") from None


def _constant(value: Any) -> Read:
    return lambda _data, at, _depth: (value, at)


def _fixed(form: str, convert: Callable[[Any], Any] | None = None) -> Read:
    one = struct.Struct(">" + form)
    size, unpack = one.size, one.unpack_from

    def read(data: bytes, at: int, _depth: int) -> tuple[Any, int]:
        (value,) = unpack(data, at)
        return (convert(value) if convert else value), at + size

    return read


def _variable(form: str, convert: Callable[[bytes], Any]) -> Read:
    length = struct.Struct(">" + form)

    def read(data: bytes, at: int, _depth: int) -> tuple[Any, int]:
        begin = at + length.size
        end = begin + length.unpack_from(data, at)[0]
        if end > len(data):
            raise IndexError
        return convert(data[begin:end]), end

    return read


def _text(given: bytes) -> str:
    try:
        return given.decode()
    except UnicodeDecodeError as error:
        raise AmqpError(f"a text is not UTF-8: {error}") from None


def _bounds(data: bytes, at: int, form: str) -> tuple[int, int, int]:
    """Return the number of values, where they begin, and where they end."""
    size, count = struct.unpack_from(">" + form * 2, data, at)
    width = struct.calcsize(form)
    end = at + width + size
    if end > len(data) or count > size:
        raise IndexError
    return count, at + 2 * width, end


def _require_within(at: int, end: int) -> None:
    """Raise where a value goes beyond what it is part of: its bytes would be read many times."""
    if at > end:
        raise AmqpError(f"a value goes beyond the end of its list, map or array, at byte {end}")


def _list(form: str) -> Read:
    def read(data: bytes, at: int, depth: int) -> tuple[Any, int]:
        count, at, end = _bounds(data, at, form)
        values = []
        for _ in range(count):
            value, at = read_value(data, at, depth + 1)
            _require_within(at, end)
            values.append(value)
        return values, end

    return read


def _map(form: str) -> Read:
    whole = _list(form)

    def read(data: bytes, at: int, depth: int) -> tuple[Any, int]:
        flat, end = whole(data, at, depth)
        if len(flat) % 2:
            raise AmqpError(f"a map has a key without a value, at byte {at}")
        if any(isinstance(key, (list, dict)) for key in flat[::2]):
            raise AmqpError(f"a map has a key that is a list or a map, at byte {at}")
        found = dict(zip(flat[::2], flat[1::2], strict=True))
        if 2 * len(found) < len(flat):
            raise AmqpError(f"a map has a key twice, at byte {at}")
        return found, end

    return read


def _array(form: str) -> Read:
    def read(data: bytes, at: int, depth: int) -> tuple[Any, int]:
        count, at, end = _bounds(data, at, form)
        code = data[at]
        at += 1
        if code == 0:
            _, at = read_value(data, at, depth + 1)
            code = data[at]
            at += 1
        values = []
        for _ in range(count):
            value, at = _READ[code](data, at, depth + 1)
            _require_within(at, end)
            values.append(value)
        return values, end

    return read


def _described(data: bytes, at: int, depth: int) -> tuple[Any, int]:
    _, at = read_value(data, at, depth + 1)
    return read_value(data, at, depth + 1)


def _shortest(single: float) -> float:
    """Return the double with the fewest digits that is the same single-precision number."""
    for digits in range(6, 10):
        short = float(f"{single:.{digits}g}")
        if struct.pack(">f", short) == struct.pack(">f", single):
            return short
    return single


_READ: dict[int, Read] = {
    0x00: _described,
    0x40: _constant(None),
    0x41: _constant(True),
    0x42: _constant(False),
    0x43: _constant(0),
    0x44: _constant(0),
    0x45: lambda _data, at, _depth: ([], at),
    0x50: _fixed("B"),
    0x51: _fixed("b"),
    0x52: _fixed("B"),
    0x53: _fixed("B"),
    0x54: _fixed("b"),
    0x55: _fixed("b"),
    0x56: _fixed("B", bool),
    0x60: _fixed("H"),
    0x61: _fixed("h"),
    0x70: _fixed("I"),
    0x71: _fixed("i"),
    0x72: _fixed("f", _shortest),
    0x73: _fixed("4s", lambda raw: raw.decode("utf-32-be")),
    0x80: _fixed("Q"),
    0x81: _fixed("q"),
    0x82: _fixed("d"),
    0x83: _fixed("q"),
    0x98: _fixed("16s", lambda raw: str(UUID(bytes=raw))),
    0xA0: _variable("B", bytes),
    0xA1: _variable("B", _text),
    0xA3: _variable("B", _text),
    0xB0: _variable("I", bytes),
    0xB1: _variable("I", _text),
    0xB3: _variable("I", _text),
    0xC0: _list("B"),
    0xC1: _map("B"),
    0xD0: _list("I"),
    0xD1: _map("I"),
    0xE0: _array("B"),
    0xF0: _array("I"),
}
