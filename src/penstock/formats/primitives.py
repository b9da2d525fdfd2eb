"""Kafka's primitive types, byte for byte as its Java serdes write them: big-endian, no header.

`org.apache.kafka.common.serialization` has one class for each: StringSerializer, ShortSerializer, ...
"""

from __future__ import annotations

import operator
import struct
from abc import ABC, abstractmethod
from typing import Any, Generic, TypeVar
from uuid import UUID

from penstock.errors import FormatError
from penstock.formats.plain import utf8
from penstock.formats.values import kind, loaded

T = TypeVar("T", int, float)


class String:
    """Text as UTF-8.

    >>> String().encode("é"), String().decode(b"abc")
    (b'\\xc3\\xa9', 'abc')
    """

    name = "string"

    def encode(self, value: Any, topic: str = "") -> bytes:  # noqa: ARG002
        """Give the UTF-8 bytes of text."""
        if not isinstance(value, str):
            raise _wrong(self.name, "text (str)", value)
        return utf8(value)

    def decode(self, data: bytes, topic: str = "") -> str:  # noqa: ARG002
        """Give text; where Java would put a replacement character, this is an error."""
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise FormatError(f"no UTF-8 text: {error.reason} at byte {error.start}") from error


class Bytes:
    """Bytes as they are."""

    name = "bytes"

    def encode(self, value: Any, topic: str = "") -> bytes:  # noqa: ARG002
        """Give the bytes themselves."""
        if not isinstance(value, bytes | bytearray | memoryview):
            raise _wrong(self.name, "bytes", value)
        return bytes(value)

    def decode(self, data: bytes, topic: str = "") -> bytes:  # noqa: ARG002
        """Give the bytes themselves."""
        return data


class Uuid:
    """A UUID in its text form: 36 characters, lower case when written.

    >>> Uuid().encode(UUID(int=1))
    b'00000000-0000-0000-0000-000000000001'
    """

    name = "uuid"

    def encode(self, value: Any, topic: str = "") -> bytes:  # noqa: ARG002
        """Give the text form of a UUID."""
        if not isinstance(value, UUID):
            raise _wrong(self.name, "a uuid.UUID", value)
        return str(value).encode()

    def decode(self, data: bytes, topic: str = "") -> UUID:  # noqa: ARG002
        """Give the UUID of a text form."""
        try:
            text = data.decode("ascii")
            found = UUID(text)
        except ValueError as error:
            raise FormatError(f"no UUID in text form: {error}") from error
        # Python also takes braces and other spellings, which Kafka's serde does not write.
        if text.lower() != str(found):
            raise FormatError("no UUID in the text form of 36 characters that Kafka's serde writes")
        return found


class _Number(ABC, Generic[T]):
    """A number of fixed width, big-endian."""

    name: str
    code: str

    def encode(self, value: Any, topic: str = "") -> bytes:  # noqa: ARG002
        """Give the bytes of a number that fits the width."""
        try:
            return struct.pack(self.code, self._number(value))
        except (struct.error, OverflowError) as error:
            raise FormatError(f"{self.name} cannot hold this number: {error}") from error

    def decode(self, data: bytes, topic: str = "") -> T:  # noqa: ARG002
        """Give the number; any other length than the type's own is an error."""
        width = struct.calcsize(self.code)
        if len(data) != width:
            raise FormatError(f"{self.name} is {width} bytes long, not {len(data)}")
        found: T = struct.unpack(self.code, data)[0]
        return found

    @abstractmethod
    def _number(self, value: Any) -> T:
        """The number to write, checked."""


class _Whole(_Number[int]):
    def _number(self, value: Any) -> int:
        if isinstance(value, bool) or loaded(value, "numpy", "bool_", "ndarray"):
            raise _wrong(self.name, "a whole number", value)
        try:
            return operator.index(value)
        except TypeError as error:
            raise _wrong(self.name, "a whole number", value) from error


class _Floating(_Number[float]):
    def _number(self, value: Any) -> float:
        if isinstance(value, float) or loaded(value, "numpy", "floating"):
            return float(value)
        if not isinstance(value, int) or isinstance(value, bool):
            raise _wrong(self.name, "a number", value)
        if int(float(value)) != value:
            raise FormatError(f"{self.name} cannot hold this whole number exactly")
        return float(value)


class Short(_Whole):
    """A whole number of 16 bits.

    >>> Short().encode(258), Short().decode(b"\\x01\\x02")
    (b'\\x01\\x02', 258)
    """

    name, code = "short", ">h"


class Integer(_Whole):
    """A whole number of 32 bits."""

    name, code = "integer", ">i"


class Long(_Whole):
    """A whole number of 64 bits."""

    name, code = "long", ">q"


class Float(_Floating):
    """An IEEE 754 number of 32 bits, rounded to them when written."""

    name, code = "float", ">f"


class Double(_Floating):
    """An IEEE 754 number of 64 bits."""

    name, code = "double", ">d"


def _wrong(name: str, wanted: str, value: Any) -> FormatError:
    return FormatError(f"the format {name!r} takes {wanted}, not {kind(value)}")
