"""Detection of the format by the first bytes."""

from __future__ import annotations

from typing import Any

from penstock.errors import FormatError
from penstock.formats import find_format

ARROW_START = b"\xff\xff\xff\xff"
"""How every Arrow stream starts. No type of DolphinDB has the code 255."""


class Auto:
    """For reading only: JSON if the bytes start with `{` or `[`, otherwise Arrow or DolphinDB's.

    An empty value is None. JSON after white space, and text that is not JSON, are errors.

    >>> Auto().decode(b"[1]"), Auto().decode(b"")
    ([1], None)
    """

    name = "auto"

    def encode(self, value: Any, topic: str = "") -> bytes:  # noqa: ARG002
        """Refuse to encode: writing needs a format."""
        raise FormatError("the format 'auto' is for reading; name the format to write, e.g. json")

    def decode(self, data: bytes, topic: str = "") -> Any:
        """Return the value of bytes in one of the detectable formats."""
        if not data:
            return None
        if data[:1] in (b"{", b"["):
            detected = find_format("json")
        else:
            detected = find_format("arrow" if data[:4] == ARROW_START else "dolphindb")
        try:
            return detected.decode(data, topic)
        except FormatError as error:
            raise FormatError(
                f"read as {detected.name}, because of its first bytes: {error}; "
                "name the format if it is known, e.g. string for text"
            ) from error
