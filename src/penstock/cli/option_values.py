"""`--format`: conversion between text and the values of a format."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from penstock.errors import ConfigError, FormatError, nearest
from penstock.formats import FORMATS, Format, find_format
from penstock.formats.json_text import json_text


def _floating(text: bytes) -> float:
    value = float(text)
    if math.isinf(value) and b"inf" not in text.lower():
        raise ValueError("out of range for a double")
    return value


# Formats whose text is not JSON, with an example of their text.
_TEXTS: dict[str, tuple[Callable[[bytes], Any], str]] = {
    **dict.fromkeys(("plain", "bytes"), (bytes, "text")),
    "string": (find_format("string").decode, "text"),
    **dict.fromkeys(("short", "integer", "long"), (int, "a whole number, for example 42")),
    **dict.fromkeys(("float", "double"), (_floating, "a number, for example 1.5")),
    "uuid": (
        lambda text: UUID(text.decode()),
        "a UUID, for example 123e4567-e89b-12d3-a456-426614174000",
    ),
}
_WITH_REGISTRY = {"avro": "Avro", "protobuf": "Protobuf", "json_schema": "JsonSchema"}
_OUTPUTS = ("text", "hex", "raw")


@dataclass(frozen=True)
class ValueFormat:
    """A format, between bytes in Kafka and text on the command line.

    Kafka's primitives and plain text are written literally; everything else is JSON.

    >>> long = ValueFormat(find_format("long"))
    >>> long.of_text(b"258"), long.text(bytes([0, 0, 0, 0, 0, 0, 1, 2]))
    (b'\\x00\\x00\\x00\\x00\\x00\\x00\\x01\\x02', b'258')
    """

    format: Format

    @property
    def name(self) -> str:
        """Return the format's name."""
        return self.format.name

    def of_text(self, text: bytes) -> bytes | None:
        """Return the bytes of the value in a text; `null` in JSON is Kafka's null."""
        if self.name not in _TEXTS:
            return self._encode(find_format("json").decode(text))
        read, wanted = _TEXTS[self.name]
        try:
            value = read(text)
        except (ValueError, FormatError) as error:
            raise FormatError(f"the text is not a valid {self.name}; write {wanted}") from error
        return self._encode(value)

    def of_value(self, value: Any) -> bytes | None:
        """Return the bytes of a value of a JSON document, where a UUID is a string."""
        if isinstance(value, str) and self.name in _TEXTS:
            return self.of_text(value.encode())
        return self._encode(value)

    def text(self, data: bytes | None) -> bytes:
        """Return the value of some bytes as text; raise `FormatError` if they do not decode."""
        if self.name not in _TEXTS:
            return self.json(data)
        value = b"" if data is None else self.format.decode(data)
        return value if isinstance(value, bytes) else str(value).encode()

    def json(self, data: bytes | None) -> bytes:
        """Return the value of some bytes as JSON."""
        return b"null" if data is None else json_text(self.format.decode(data))

    def _encode(self, value: Any) -> bytes | None:
        return None if value is None else self.format.encode(value)


def format_to_read(name: str) -> ValueFormat:
    """Return the format that `consume --format` names."""
    if name.lower() in _OUTPUTS:
        raise ConfigError(
            f"--format {name} is not a format of values; for records use --output {name.lower()}"
        )
    return _find(name, "Consumer", FORMATS)


def format_to_write(name: str) -> ValueFormat:
    """Return the format that `produce --format` names."""
    writable = [each for each in FORMATS if each != "auto"]
    if name.lower() == "auto":
        raise ConfigError(f"--format auto is for reading; allowed: {', '.join(writable)}")
    return _find(name, "Producer", writable)


def _find(name: str, client: str, allowed: Any) -> ValueFormat:
    if name.lower() in _WITH_REGISTRY:
        raise ConfigError(
            f"--format {name} needs a schema registry, which the command line lacks; in Python: "
            f"{client}(connection, format={_WITH_REGISTRY[name.lower()]}(registry, ...)). "
            f"Allowed here: {', '.join(allowed)}"
        )
    if name.lower() not in allowed:
        raise ConfigError(f"--format {name} is unknown; {nearest(name, allowed)}")
    return ValueFormat(find_format(name))
