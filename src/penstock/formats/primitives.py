"""Text and bytes as they are, and Kafka's primitive types as its Java serdes write them: big-endian.

`org.apache.kafka.common.serialization` has one class for each: StringSerializer, ShortSerializer, ...
"""

from __future__ import annotations

import operator
import struct
from abc import ABC, abstractmethod
from typing import Any, Generic, TypeVar
from uuid import UUID

from penstock.errors import FormatError
from penstock.formats.format_values import kind, loaded

T = TypeVar("T", int, float)


class Plain:
    """Text as UTF-8, bytes untouched; anything else is an error.

    Reading gives text where the bytes are UTF-8, and the bytes themselves where they are not. Where the
    type must not depend on the content, read with the format `string` or `bytes`.

    >>> Plain().encode("é"), Plain().decode(b"abc"), Plain().decode(bytes([255]))
    (b'\\xc3\\xa9', 'abc', b'\\xff')
    """

    name = "plain"

    def encode(self, value: Any, topic: str = "") -> bytes:  # noqa: ARG002
        """Return the bytes of text or bytes."""
        if isinstance(value, str):
            return utf8(value)
        if isinstance(value, bytes | bytearray | memoryview):
            return bytes(value)
        raise FormatError(
            f"plain sends text and bytes as they are, and cannot send {kind(value)}; "
            "choose another format, e.g. json"
        )

    def decode(self, data: bytes, topic: str = "") -> str | bytes:  # noqa: ARG002
        """Return text where the bytes are UTF-8, otherwise the bytes."""
        try:
            return data.decode()
        except UnicodeDecodeError:
            return data


class String:
    """Text as UTF-8.

    >>> String().encode("é"), String().decode(b"abc")
    (b'\\xc3\\xa9', 'abc')
    """

    name = "string"

    def encode(self, value: Any, topic: str = "") -> bytes:  # noqa: ARG002
        """Return the UTF-8 bytes of text."""
        if not isinstance(value, str):
            raise _wrong(self.name, "text (str)", value)
        return utf8(value)

    def decode(self, data: bytes, topic: str = "") -> str:  # noqa: ARG002
        """Return text; where Java would put a replacement character, this is an error."""
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise FormatError(f"not UTF-8: {error.reason} at byte {error.start}") from error


class Bytes:
    """Bytes as they are."""

    name = "bytes"

    def encode(self, value: Any, topic: str = "") -> bytes:  # noqa: ARG002
        """Return the bytes themselves."""
        if not isinstance(value, bytes | bytearray | memoryview):
            raise _wrong(self.name, "bytes", value)
        return bytes(value)

    def decode(self, data: bytes, topic: str = "") -> bytes:  # noqa: ARG002
        """Return the bytes themselves."""
        return data


class Uuid:
    """A UUID in its text form: 36 characters, lower case when written.

    >>> Uuid().encode(UUID(int=1))
    b'00000000-0000-0000-0000-000000000001'
    """

    name = "uuid"

    def encode(self, value: Any, topic: str = "") -> bytes:  # noqa: ARG002
        """Return the text form of a UUID."""
        if not isinstance(value, UUID):
            raise _wrong(self.name, "a uuid.UUID", value)
        return str(value).encode()

    def decode(self, data: bytes, topic: str = "") -> UUID:  # noqa: ARG002
        """Return the UUID of a text form."""
        try:
            text = data.decode("ascii")
            value = UUID(text)
        except ValueError as error:
            raise FormatError(f"not a UUID in text form: {error}") from error
        # Python also takes braces and other spellings, which Kafka's serde does not write.
        if text.lower() != str(value):
            raise FormatError(
                "not a UUID in the text form of 36 characters that Kafka's serde writes"
            )
        return value


class _Number(ABC, Generic[T]):
    """A number of fixed width, big-endian."""

    name: str
    code: str

    def encode(self, value: Any, topic: str = "") -> bytes:  # noqa: ARG002
        """Return the bytes of a number that fits the width."""
        try:
            return struct.pack(self.code, self._number(value))
        except (struct.error, OverflowError) as error:
            raise FormatError(f"{self.name} cannot hold this number: {error}") from error

    def decode(self, data: bytes, topic: str = "") -> T:  # noqa: ARG002
        """Return the number; any other length than the type's own is an error."""
        width = struct.calcsize(self.code)
        if len(data) != width:
            raise FormatError(f"{self.name} is {width} bytes long, not {len(data)}")
        value: T = struct.unpack(self.code, data)[0]
        return value

    @abstractmethod
    def _number(self, value: Any) -> T:
        """Return the number to write, checked."""


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


def utf8(text: str) -> bytes:
    """Encode text; half of a surrogate pair has no bytes."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise FormatError(
            f"the text has no UTF-8 form: a lone surrogate at character {error.start}"
        ) from error
