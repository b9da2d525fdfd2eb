"""`--format`: conversion between text and the values of a format."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from penstock.cli.lines import text_or_base64
from penstock.errors import ConfigError, FormatError, nearest
from penstock.formats import FORMATS, Format, find_format
from penstock.formats.format_values import Shape, shape


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


def json_text(value: Any) -> bytes:
    """Return JSON for any value that a format can read, even if JSON has no representation for it.

    >>> json_text(1), json_text({"a": [b"x", float("inf")]})
    (b'1', b'{"a":["x","inf"]}')
    """
    try:
        data = find_format("json").encode(value)
    except FormatError:
        return json.dumps(_simple(value), ensure_ascii=False, separators=(",", ":")).encode()
    # The format writes a scalar as an array of one.
    return data[1:-1] if shape(value) is Shape.SCALAR else data


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


def _simple(value: Any) -> Any:
    """Return a value that Python's json supports: bytes as text or base64, other types as text."""
    if isinstance(value, Mapping):
        return {str(_simple(key)): _simple(each) for key, each in value.items()}
    if isinstance(value, list | tuple | Set):
        return [_simple(each) for each in value]
    for spread in ("to_pydict", "to_pylist", "to_numpy", "tolist"):
        if hasattr(value, spread):
            return _simple(getattr(value, spread)())
    if isinstance(value, bytes):
        return text_or_base64(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None if math.isnan(value) else str(value)
    return value if value is None or isinstance(value, bool | int | str) else str(value)
