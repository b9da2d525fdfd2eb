"""Reading forward through the bytes of one message, never past their end."""

from __future__ import annotations

import struct
from typing import Any

import pyarrow as pa

from penstock.errors import FormatError
from penstock.formats.limits import Budget

_INT32 = struct.Struct("<i")
DEEPEST = 64


class Cursor:
    """A position in the bytes; every count is compared with the remaining bytes before it is used.

    >>> Cursor(b"ab\\0c").text(), Cursor(b"abc").take(2)
    ('ab', b'ab')
    """

    def __init__(self, data: bytes, depth: int = 0, budget: Budget | None = None) -> None:
        if depth > DEEPEST:
            raise FormatError(f"objects are nested more than {DEEPEST} deep")
        self.data = data
        self.place = 0
        self.depth = depth
        self.budget = budget or Budget("a DolphinDB value")
        # The symbol bases that were defined so far: a later column may use one again.
        self.bases: dict[int, pa.Array] = {}

    @property
    def left(self) -> int:
        """Return the number of remaining bytes."""
        return len(self.data) - self.place

    def need(self, count: int, size: int, what: str) -> None:
        """Refuse a count that does not fit into the remaining bytes."""
        if count < 0:
            raise FormatError(f"{what}: a count of {count} at byte {self.place}")
        if count * size > self.left:
            raise FormatError(
                f"{what} needs {count * size} bytes at byte {self.place}, {self.left} are left"
            )

    def take(self, size: int, what: str = "a value") -> bytes:
        """Return the next bytes."""
        self.need(size, 1, what)
        self.place += size
        return self.data[self.place - size : self.place]

    def int32(self, what: str = "a number") -> int:
        """Return a signed number of 32 bits."""
        value: int = _INT32.unpack(self.take(4, what))[0]
        return value

    def count(self, what: str) -> int:
        """Return a number that counts something."""
        number = self.int32(what)
        if number < 0:
            raise FormatError(f"{what}: a count of {number} at byte {self.place - 4}")
        return number

    def flag(self) -> tuple[int, int]:
        """Return type and form."""
        flag_bytes = self.take(2, "a type and a form")
        return flag_bytes[0], flag_bytes[1]

    def text(self) -> str:
        """Return text that ends with a zero byte."""
        end = self.data.find(b"\0", self.place)
        if end < 0:
            raise FormatError(f"the text at byte {self.place} has no end")
        raw = self.data[self.place : end]
        self.place = end + 1
        try:
            return raw.decode()
        except UnicodeDecodeError as error:
            raise FormatError(f"the text before byte {end} is not UTF-8: {error.reason}") from error

    def within(self) -> Cursor:
        """Return a cursor for an object inside this one, from the same place."""
        inner = Cursor(self.data, self.depth + 1, self.budget)
        inner.place = self.place
        return inner

    def end(self) -> None:
        """Refuse remaining bytes."""
        if self.left:
            raise FormatError(f"{self.left} bytes are left over after the value")


def int32(number: int, what: Any = "a count") -> bytes:
    """Write a number of 32 bits."""
    try:
        return _INT32.pack(number)
    except struct.error as error:
        raise FormatError(f"{what} of {number} does not fit into DolphinDB's 32 bits") from error
