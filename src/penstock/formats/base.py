"""What a format is: values to bytes, bytes to values, and one error for both ways."""

from __future__ import annotations

from typing import Any, Protocol


class Format(Protocol):
    """One way to write values as bytes.

    Both methods raise `FormatError` for what they cannot take; a format that asks a schema registry
    may also raise `TransientError` (it is away) or `ConfigError` (it refuses). A null (None) never
    comes here: Kafka has its own. `topic` serves the formats that keep a schema per topic.
    """

    name: str

    def encode(self, value: Any, topic: str = "") -> bytes:
        """Give the bytes of a value."""
        ...

    def decode(self, data: bytes, topic: str = "") -> Any:
        """Give the value of some bytes: all of them, or an error."""
        ...
