"""Avro's primitive types, read: from the bytes and a place to the value and the next place."""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct, error
from typing import Any

from penstock.errors import FormatError
from penstock.formats.avro.primitives import INT_RANGE, LONG_RANGE

Reader = Callable[[bytes, int], tuple[Any, int]]


def read_long(data: bytes, at: int) -> tuple[int, int]:
    """Read a whole number of 64 bits.

    >>> read_long(bytes([0x80, 0x01]), 0)
    (64, 2)
    """
    try:
        byte = data[at]
        at += 1
        number = byte & 0x7F
        shift = 7
        while byte > 0x7F:
            byte = data[at]
            at += 1
            number |= (byte & 0x7F) << shift
            shift += 7
            if shift > 70:
                raise FormatError("a number of more than ten bytes")
    except IndexError:
        raise FormatError("the bytes end too early") from None
    number = (number >> 1) ^ -(number & 1)
    if not -LONG_RANGE <= number < LONG_RANGE:
        raise FormatError("a number beyond 64 bits")
    return number, at


def _read_int(data: bytes, at: int) -> tuple[int, int]:
    number, at = read_long(data, at)
    if not -INT_RANGE <= number < INT_RANGE:
        raise FormatError(f"{number} is beyond the 32 bits of an int")
    return number, at


def _read_bytes(data: bytes, at: int) -> tuple[bytes, int]:
    length, at = read_long(data, at)
    end = at + length
    if length < 0 or end > len(data):
        raise FormatError(f"a length of {length} bytes where {len(data) - at} are left")
    return data[at:end], end


def read_string(data: bytes, at: int) -> tuple[str, int]:
    """Read a text."""
    raw, at = _read_bytes(data, at)
    return raw.decode(), at


def _read_boolean(data: bytes, at: int) -> tuple[bool, int]:
    if data[at : at + 1] not in {b"\0", b"\1"}:
        raise FormatError("neither true nor false")
    return data[at] == 1, at + 1


def _reals(code: str) -> Reader:
    unpack, size = Struct(code).unpack_from, Struct(code).size

    def read(data: bytes, at: int) -> tuple[float, int]:
        try:
            return unpack(data, at)[0], at + size
        except error:
            raise FormatError("the bytes end too early") from None

    return read


def skip_size(count: int, data: bytes, at: int) -> tuple[int, int]:
    """Give the number of items in a block; a negative one says that the block's size in bytes follows."""
    if count > 0:
        return count, at
    _, at = read_long(data, at)
    return -count, at


READERS: dict[str, Reader] = {
    "null": lambda _data, at: (None, at),
    "boolean": _read_boolean,
    "int": _read_int,
    "long": read_long,
    "float": _reals("<f"),
    "double": _reals("<d"),
    "bytes": _read_bytes,
    "string": read_string,
}
