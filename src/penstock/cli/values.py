"""`--format`: text that becomes a value of a format, and a value that becomes text."""

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
from penstock.formats.values import Shape, shape


def _floating(text: bytes) -> float:
    value = float(text)
    if math.isinf(value) and b"inf" not in text.lower():
        raise ValueError("beyond what a double holds")
    return value


# Those of which the text is not JSON, with what to write for them.
_TEXTS: dict[str, tuple[Callable[[bytes], Any], str]] = {
    "plain": (bytes, "text"),
    "bytes": (bytes, "text"),
    "string": (find_format("string").decode, "text"),
    "short": (int, "a whole number, for example 42"),
    "integer": (int, "a whole number, for example 42"),
    "long": (int, "a whole number, for example 42"),
    "float": (_floating, "a number, for example 1.5"),
    "double": (_floating, "a number, for example 1.5"),
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

    Kafka's primitives and plain text are written as they are; everything else is JSON.

    >>> long = ValueFormat(find_format("long"))
    >>> long.of_text(b"258"), long.text(bytes([0, 0, 0, 0, 0, 0, 1, 2]))
    (b'\\x00\\x00\\x00\\x00\\x00\\x00\\x01\\x02', b'258')
    """

    format: Format

    @property
    def name(self) -> str:
        """The format's name."""
        return self.format.name

    def of_text(self, text: bytes) -> bytes | None:
        """Give the bytes of the value that a text means; `null` in JSON is Kafka's null."""
        if self.name not in _TEXTS:
            return self._encode(find_format("json").decode(text))
        read, wanted = _TEXTS[self.name]
        try:
            value = read(text)
        except (ValueError, FormatError) as error:
            raise FormatError(f"the text is no {self.name}; write {wanted}") from error
        return self._encode(value)

    def of_value(self, value: Any) -> bytes | None:
        """Give the bytes of a value that stood in a JSON document; there a UUID is a text."""
        if isinstance(value, str) and self.name in _TEXTS:
            return self.of_text(value.encode())
        return self._encode(value)

    def text(self, data: bytes | None) -> bytes:
        """Give the value that some bytes hold, as text; what does not decode is a `FormatError`."""
        if self.name not in _TEXTS:
            return self.json(data)
        value = b"" if data is None else self.format.decode(data)
        return value if isinstance(value, bytes) else str(value).encode()

    def json(self, data: bytes | None) -> bytes:
        """Give the value that some bytes hold, as JSON."""
        return b"null" if data is None else json_text(self.format.decode(data))

    def _encode(self, value: Any) -> bytes | None:
        return None if value is None else self.format.encode(value)


def format_to_read(name: str) -> ValueFormat:
    """The format that `consume --format` names.

    >>> format_to_read("LONG").name
    'long'
    """
    if name.lower() in _OUTPUTS:
        raise ConfigError(
            f"--format {name} is no format of values; --output {name.lower()} prints records so"
        )
    return _find(name, "Consumer", FORMATS)


def format_to_write(name: str) -> ValueFormat:
    """The format that `produce --format` names.

    >>> format_to_write("json").of_text(b"[1, 2]")
    b'[1,2]'
    """
    writable = [each for each in FORMATS if each != "auto"]
    if name.lower() == "auto":
        raise ConfigError(f"--format auto is for reading; allowed: {', '.join(writable)}")
    return _find(name, "Producer", writable)


def json_text(value: Any) -> bytes:
    """Give JSON for any value that a format can read, also where JSON itself has no form for it.

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
            f"--format {name} needs a schema registry, which the command line cannot ask; in Python: "
            f"{client}(connection, format={_WITH_REGISTRY[name.lower()]}(registry, ...)). "
            f"Allowed here: {', '.join(allowed)}"
        )
    if name.lower() not in allowed:
        raise ConfigError(f"--format {name} is unknown; {nearest(name, allowed)}")
    return ValueFormat(find_format(name))


def _simple(value: Any) -> Any:
    """A value in the terms of Python's json: bytes as text or base64, other strangers as text."""
    if isinstance(value, Mapping):
        return {str(_simple(key)): _simple(each) for key, each in value.items()}
    if isinstance(value, list | tuple | Set):
        return [_simple(each) for each in value]
    for spread in ("to_pydict", "to_pylist", "to_numpy", "tolist"):
        if hasattr(value, spread):
            return _simple(getattr(value, spread)())
    return _simple_scalar(value)


def _simple_scalar(value: Any) -> Any:
    if isinstance(value, bytes):
        return text_or_base64(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None if math.isnan(value) else str(value)
    return value if value is None or isinstance(value, bool | int | str) else str(value)
