"""Records as bytes on stdout: `--output` says how, `--format` what the bytes of a value mean."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

import orjson

from penstock.cli.lines import as_document
from penstock.cli.values import ValueFormat
from penstock.errors import ConfigError, FormatError
from penstock.record import Record

# So much of a value that does not decode is shown: enough to see what it is.
_SHOWN = 80


class Output(str, Enum):
    """How a record is printed."""

    text = "text"
    json = "json"
    hex = "hex"
    raw = "raw"


@dataclass
class Printer:
    """Gives the bytes to print for a record, and counts those that did not decode."""

    output: Output
    separator: str | None = None
    format: ValueFormat | None = None
    failed: int = 0

    def __post_init__(self) -> None:
        if self.format and self.output in (Output.hex, Output.raw):
            raise ConfigError(
                f"--output {self.output.value} shows bytes, and --format {self.format.name} decodes "
                "them: give one; --output text and json go with a format"
            )

    def __call__(self, record: Record) -> bytes:
        """The line, the document or the bytes of a record."""
        if self.output is Output.json:
            return orjson.dumps(self._document(record), option=orjson.OPT_APPEND_NEWLINE)
        if self.output is Output.raw:
            return record.value or b""
        shown: Callable[[bytes], bytes] = _hex if self.output is Output.hex else bytes
        key = b"" if not self.separator else shown(record.key or b"") + self.separator.encode()
        return key + self._value(record, shown) + b"\n"

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


def _hex(data: bytes) -> bytes:
    return data.hex().encode()
