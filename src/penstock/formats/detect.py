"""Reading without being told the format: the first bytes say which one it is."""

from __future__ import annotations

from typing import Any

from penstock.errors import FormatError
from penstock.formats.base import Format

_ARROW = b"\xff\xff\xff\xff"


class Auto:
    """For reading only: JSON where the bytes begin with `{` or `[`, otherwise Arrow or DolphinDB's.

    An empty value is None. JSON after white space, and text that is no JSON, are errors.

    >>> Auto().decode(b"[1]"), Auto().decode(b"")
    ([1], None)
    """

    name = "auto"

    def encode(self, value: Any, topic: str = "") -> bytes:  # noqa: ARG002
        """Refuse: what is written needs a format."""
        raise FormatError("the format 'auto' is for reading; name the format to write, e.g. json")

    def decode(self, data: bytes, topic: str = "") -> Any:
        """Give the value of bytes in one of the formats that can be told apart."""
        if not data:
            return None
        found = detect(data)
        try:
            return found.decode(data, topic)
        except FormatError as error:
            raise FormatError(
                f"read as {found.name}, because of its first bytes: {error}; "
                "name the format where it is known, e.g. string for text"
            ) from error


def detect(data: bytes) -> Format:
    """Say by the first bytes which format to read with.

    >>> detect(b'{"a": 1}').name
    'json'
    """
    from penstock.formats import find_format  # noqa: PLC0415 - this file is one of those it finds

    if data[:1] in (b"{", b"["):
        return find_format("json")
    # No type of DolphinDB has the code 255.
    return find_format("arrow" if data[:4] == _ARROW else "dolphindb")
