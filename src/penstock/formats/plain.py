"""PLAIN: text and bytes go as they are."""

from __future__ import annotations

from typing import Any

from penstock.errors import FormatError
from penstock.formats.values import kind


class Plain:
    """Text as UTF-8, bytes untouched; anything else is an error.

    Reading gives text where the bytes are UTF-8, and the bytes themselves where they are not. Where the
    type must not depend on the content, read with the format `string` or `bytes`.

    >>> Plain().encode("é"), Plain().decode(b"abc"), Plain().decode(bytes([255]))
    (b'\\xc3\\xa9', 'abc', b'\\xff')
    """

    name = "plain"

    def encode(self, value: Any, topic: str = "") -> bytes:  # noqa: ARG002
        """Give the bytes of text or bytes."""
        if isinstance(value, str):
            return utf8(value)
        if isinstance(value, bytes | bytearray | memoryview):
            return bytes(value)
        raise FormatError(
            f"plain sends text and bytes as they are, and cannot send {kind(value)}; "
            "choose another format, e.g. json"
        )

    def decode(self, data: bytes, topic: str = "") -> str | bytes:  # noqa: ARG002
        """Give text where the bytes are UTF-8, otherwise the bytes."""
        try:
            return data.decode()
        except UnicodeDecodeError:
            return data


def utf8(text: str) -> bytes:
    """Encode text; half of a surrogate pair has no bytes."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise FormatError(
            f"the text has no UTF-8 form: a lone surrogate at character {error.start}"
        ) from error
