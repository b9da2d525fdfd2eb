"""JSON as text: the parts of a document as they came, so that no number is rounded on its way.

msgspec splits documents without reading their values. It refuses a whole document for one lone surrogate
(`"\\ud83d"`, half of an emoji), which JSON's grammar allows: those are split by the standard library's
scanner, so that only the element concerned is lost.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import msgspec
from msgspec import DecodeError, Raw

_BLANK = re.compile(r"[ \t\r\n]*")
_TOKEN = re.compile(r"(?:[^~]|~[01])*")
_SURROGATE = re.compile("[\ud800-\udfff]")
_INDEX = re.compile(r"0|[1-9][0-9]*")


@dataclass(frozen=True)
class Pointer:
    """A JSON pointer (RFC 6901).

    >>> Pointer.read("/data/0/a~1b").tokens
    ('data', '0', 'a/b')
    """

    text: str
    tokens: tuple[str, ...]

    @classmethod
    def read(cls, text: str) -> Pointer:
        """Read a pointer, or raise what is wrong with it."""
        if text and not text.startswith("/"):
            raise ValueError(
                f"{text!r} is not a JSON pointer; write '/' before each name, as in '/data/items', or "
                "an empty text for the whole document"
            )
        if not _TOKEN.fullmatch(text):
            raise ValueError(
                f"{text!r} is not a JSON pointer: after '~' only 0 (for '~') and 1 (for '/') are allowed"
            )
        names = text.split("/")[1:]
        return cls(text, tuple(name.replace("~1", "/").replace("~0", "~") for name in names))

    def find(self, document: bytes) -> bytes | None:
        """Return the text of what the pointer leads to; None where it leads to nothing.

        >>> Pointer.read("/a/1").find(b'{"a": [1, 2.50]}')
        b'2.50'
        """
        found: bytes | None = document
        for token in self.tokens:
            found = _member(found, token) if found is not None else None
        return found


def _member(document: bytes, token: str) -> bytes | None:
    if document[:1] == b"{":
        return members(document).get(token)
    if document[:1] != b"[" or not _INDEX.fullmatch(token):
        return None
    items, number = elements(document), int(token)
    return items[number] if number < len(items) else None


def checked(body: bytes) -> bytes:
    """Return a document as UTF-8 without blanks around it; raise ValueError where it is not JSON."""
    body = body.removeprefix(b"\xef\xbb\xbf")
    body.decode("utf-8")  # msgspec copies strings unread
    try:
        return bytes(msgspec.json.decode(body, type=Raw))
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except DecodeError:
        text = body.decode()
        start = _after_blank(text, 0)
        end = _value_end(text, start)
        if _after_blank(text, end) != len(text):
            raise ValueError(f"there is more after the document's end, at {end}") from None
        return text[start:end].encode()


def elements(array: bytes) -> list[bytes]:
    """Return the texts of an array's elements.

    >>> elements(b'[1.0, {"a": 2}]')
    [b'1.0', b'{"a": 2}']
    """
    try:
        return [bytes(item) for item in msgspec.json.decode(array, type=list[Raw])]
    except DecodeError:
        return [value.encode() for _, value in _split(array.decode())]


def members(document: bytes) -> dict[str, bytes]:
    """Return the texts of an object's values, by name."""
    try:
        found = msgspec.json.decode(document, type=dict[str, Raw])
        return {name: bytes(value) for name, value in found.items()}
    except DecodeError:
        return {name: value.encode() for name, value in _split(document.decode())}


def compact(value: bytes) -> bytes:
    """Return a value without blanks between its parts; raise ValueError for what no reader accepts.

    >>> compact(b'{"n": 10000000000000000000000.10}')
    b'{"n":10000000000000000000000.10}'
    """
    try:
        return msgspec.json.format(value, indent=-1)
    except (DecodeError, RecursionError) as error:
        raise ValueError(f"is not JSON that can be read: {error}") from None


@dataclass(frozen=True)
class Scalar:
    """A text or a number of a document, as a position keeps it and a request sends it."""

    text: str
    is_number: bool = False

    @classmethod
    def read(cls, value: bytes | None) -> Scalar | None:
        """Return the scalar that a JSON text is; None for null, an empty text and everything else.

        A text with half of a surrogate pair is none: it has no bytes, and cannot be sent.
        """
        if not value or value[:1] not in b'"-0123456789':
            return None
        if value[:1] != b'"':
            return cls(value.decode(), is_number=True)
        text = json.loads(value)
        is_sendable = text and not _SURROGATE.search(text)
        return cls(text) if is_sendable else None

    @classmethod
    def given(cls, value: str | int | float | Decimal) -> Scalar:
        """Return the scalar for a value of Python."""
        return cls(value) if isinstance(value, str) else cls(str(value), is_number=True)

    def as_json(self) -> Any:
        """Return it for a JSON document, its digits unchanged."""
        return Raw(self.text.encode()) if self.is_number else self.text


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


_SCANNER = json.JSONDecoder(parse_constant=_refuse, parse_int=str, parse_float=str, strict=True)


def _after_blank(text: str, at: int) -> int:
    return _BLANK.match(text, at).end()  # type: ignore[union-attr]


def _value_end(text: str, at: int) -> int:
    try:
        return _SCANNER.raw_decode(text, at)[1]
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _split(text: str) -> Iterator[tuple[str, str]]:
    """Yield the values of an array or object that is known to be one, with their names."""
    is_object, at = text[0] == "{", _after_blank(text, 1)
    while text[at] not in "]}":
        name = ""
        if is_object:
            name, at = _SCANNER.raw_decode(text, at)
            at = _after_blank(text, _after_blank(text, at) + 1)
        end = _value_end(text, at)
        yield name, text[at:end]
        at = _after_blank(text, end)
        if text[at] == ",":
            at = _after_blank(text, at + 1)
