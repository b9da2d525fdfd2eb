"""Records as bytes on stdout: `--output` selects the layout, `--format` decodes values."""

from __future__ import annotations

from base64 import b64encode
from binascii import hexlify
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

import orjson

from penstock.cli.lines import as_document
from penstock.cli.option_values import ValueFormat
from penstock.config.printable import printable, printable_json
from penstock.errors import ConfigError, FormatError
from penstock.record import Record

# The number of bytes shown of a value that does not decode.
_SHOWN = 80


class Output(str, Enum):
    """How a record is printed."""

    text = "text"
    json = "json"
    hex = "hex"
    raw = "raw"


@dataclass
class Printer:
    """Formats records for stdout, and counts those that did not decode."""

    output: Output
    separator: str | None = None
    format: ValueFormat | None = None
    failed: int = 0
    terminal: bool = False
    """Whether a terminal shows it, which text from records must not steer; raw stays raw."""

    def __post_init__(self) -> None:
        if self.format and self.output in (Output.hex, Output.raw):
            raise ConfigError(
                f"--output {self.output.value} shows bytes, and --format {self.format.name} decodes "
                "them: give one; only --output text and json can be combined with a format"
            )

    def __call__(self, record: Record) -> bytes:
        """Return the line, the JSON document or the bytes of a record."""
        if self.output is Output.json:
            document = orjson.dumps(self._document(record), option=orjson.OPT_APPEND_NEWLINE)
            return printable_json(document) if self.terminal else document
        if self.output is Output.raw:
            return record.value or b""
        shown: Callable[[bytes], bytes] = hexlify if self.output is Output.hex else bytes
        key = b"" if not self.separator else shown(record.key or b"") + self.separator.encode()
        line = key + self._value(record, shown)
        return (_escaped(line) if self.terminal else line) + b"\n"

    def _value(self, record: Record, shown: Callable[[bytes], bytes]) -> bytes:
        if self.format is None:
            return shown(record.value or b"")
        try:
            return self.format.text(record.value)
        except FormatError as error:
            self.failed += 1
            where = f"{record.topic}[{record.partition}] offset {record.offset}"
            return f"error: {where}: {error}: {record.value[:_SHOWN]!r}".encode()

    def _document(self, record: Record) -> dict[str, Any]:
        document = as_document(record)
        if self.format is None:
            return document
        document.pop("value_base64", None)
        try:
            return document | {"value": orjson.Fragment(self.format.json(record.value))}
        except FormatError as error:
            self.failed += 1
            document.pop("value", None)
            encoded = b64encode(record.value).decode()
            return document | {"value_base64": encoded, "error": str(error)}


def _escaped(line: bytes) -> bytes:
    r"""Return bytes that are safe for a terminal: invalid UTF-8 and control characters are escaped.

    >>> _escaped(b"a\x1b[31m\nb\xff")
    b'a\\u001b[31m\\nb\\xff'
    """
    return printable(line.decode("utf-8", "backslashreplace")).encode()
