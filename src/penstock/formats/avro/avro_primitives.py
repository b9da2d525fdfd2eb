"""Avro's primitive types: only a value that the type can hold exactly is written.

A reader takes the bytes and a place in them, and returns the value and the next place.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from operator import index
from struct import Struct, error
from typing import Any

from penstock.errors import FormatError
from penstock.formats.limits import Budget

Writer = Callable[[Any, bytearray], None]
Reader = Callable[["Body", int], tuple[Any, int]]
_INT_RANGE, _LONG_RANGE = 1 << 31, 1 << 63
# The memory of one item of an array or a map, in addition to what its own reader counts.
_ITEM = 72


def no(value: Any, kind: str) -> FormatError:
    """Return the error for a value that does not fit the schema."""
    return FormatError(f"{value!r:.80} ({type(value).__name__}) is not a valid {kind}")


def _write_null(value: Any, _out: bytearray) -> None:
    if value is not None:
        raise no(value, "null")


def _write_boolean(value: Any, out: bytearray) -> None:
    if not isinstance(value, bool):
        raise no(value, "boolean")
    out.append(value)


def _integer_writer(kind: str, limit: int) -> Writer:
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


def _real_writer(kind: str, code: str) -> Writer:
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


write_long = _integer_writer("long", _LONG_RANGE)


def number_bytes(number: int) -> bytes:
    """Return the bytes of a count or a place."""
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


WRITERS: dict[str, Writer] = {
    "null": _write_null,
    "boolean": _write_boolean,
    "int": _integer_writer("int", _INT_RANGE),
    "long": write_long,
    "float": _real_writer("float", "<f"),
    "double": _real_writer("double", "<d"),
    "bytes": _write_bytes,
    "string": write_string,
}


class Body(bytes):
    """The bytes of one value, and what is left of the memory that it may take."""

    budget: Budget

    @classmethod
    def of(cls, data: bytes) -> Body:
        """Return bytes to read one value from."""
        made = cls(data)
        made.budget = Budget("an Avro value")
        return made


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
    if not -_LONG_RANGE <= number < _LONG_RANGE:
        raise FormatError("a number beyond 64 bits")
    return number, at


def _read_int(data: bytes, at: int) -> tuple[int, int]:
    number, at = read_long(data, at)
    if not -_INT_RANGE <= number < _INT_RANGE:
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


def _real_reader(code: str) -> Reader:
    unpack, size = Struct(code).unpack_from, Struct(code).size

    def read(data: bytes, at: int) -> tuple[float, int]:
        try:
            return unpack(data, at)[0], at + size
        except error:
            raise FormatError("the bytes end too early") from None

    return read


def start_block(count: int, data: Body, at: int) -> tuple[int, int]:
    """Return the number of items in a block; after a negative one the block's size in bytes follows."""
    if count < 0:
        _, at = read_long(data, at)
    # An item takes a byte at least.
    data.budget.spend(_ITEM * min(abs(count), len(data) - at))
    return abs(count), at


READERS: dict[str, Reader] = {
    "null": lambda _data, at: (None, at),
    "boolean": _read_boolean,
    "int": _read_int,
    "long": read_long,
    "float": _real_reader("<f"),
    "double": _real_reader("<d"),
    "bytes": _read_bytes,
    "string": read_string,
}
