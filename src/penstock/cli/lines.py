"""Lines of text, plain or JSON, as drafts of records; and records as lines."""

from __future__ import annotations

from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from penstock.errors import ConfigError, RecordError, nearest
from penstock.formats.json_text import text_or_base64
from penstock.record import Headers, Record

if TYPE_CHECKING:
    from penstock.cli.option_values import ValueFormat

# Fields that `consume --json` prints and a new record ignores.
_ORIGIN = ("topic", "partition", "offset", "error")
_FIELDS = ("key", "value", "headers", "timestamp", "key_base64", "value_base64", *_ORIGIN)


class Draft(NamedTuple):
    """A record that was not produced yet."""

    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    timestamp: int | None = None


@dataclass(frozen=True)
class LineReader:
    """How lines are parsed."""

    as_json: bool = False
    key: str | None = None
    separator: str | None = None
    headers: Headers = ()
    format: ValueFormat | None = None

    def __post_init__(self) -> None:
        if self.separator is not None and (self.as_json or self.key is not None):
            raise ConfigError(
                "--key-separator cannot be combined with --json or --key: each gives the key"
            )
        if self.separator == "":
            raise ConfigError("--key-separator is empty; give the text between key and value")

    def drafts(self, lines: Iterable[bytes]) -> Iterator[Draft]:
        """Yield one draft for each line; the error for a bad line names its number."""
        for number, line in enumerate(lines, start=1):
            try:
                yield self._draft(line)
            except RecordError as error:
                sent = f"the {number - 1} before it were sent"
                before = "nothing was sent" if number == 1 else sent
                raise RecordError(f"line {number}: {error}; {before}") from error

    def _draft(self, line: bytes) -> Draft:
        if self.as_json:
            return self._from_json(line)
        if self.separator is None:
            return Draft(_bytes(self.key), self._value(line), self.headers)
        key, has_separator, value = line.partition(self.separator.encode())
        if not has_separator:
            raise RecordError(f"there is no {self.separator!r} between key and value")
        return Draft(key, self._value(value), self.headers)

    def _value(self, text: bytes) -> bytes | None:
        return text if self.format is None else self.format.of_text(text)

    def _from_json(self, line: bytes) -> Draft:
        fields = _object(line)
        key = _payload(fields, "key", _bytes)
        return Draft(
            key=_bytes(self.key) if key is None else key,
            value=_payload(fields, "value", self.format.of_value if self.format else _bytes),
            headers=(*self.headers, *_headers(fields.get("headers") or {})),
            timestamp=_timestamp(fields.get("timestamp")),
        )


def header(text: str) -> tuple[str, bytes]:
    """Return the header of an option.

    >>> header("trace=a=b")
    ('trace', b'a=b')
    """
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise ConfigError(f"--header {text!r}: write NAME=VALUE, for example trace=42")
    return name, value.encode()


def as_document(record: Record) -> dict[str, Any]:
    """Return a record as JSON; bytes that are not UTF-8 are in base64, under a name that says so."""
    headers: dict[str, Any] = {}
    for name, value in record.headers:
        shown = text_or_base64(value)
        # Kafka allows a name twice; JSON readers do not.
        headers[name] = shown if name not in headers else [*_listed(headers[name]), shown]
    return {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        **_named("key", record.key),
        **_named("value", record.value),
        "headers": headers,
    }


def _object(line: bytes) -> dict[str, Any]:
    try:
        fields = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise RecordError(f"not JSON: {error}") from error
    if not isinstance(fields, dict):
        raise RecordError('not a JSON object; write {"key": .., "value": .., "headers": {..}}')
    for name in fields:
        if name not in _FIELDS:
            raise RecordError(f"unknown field {name!r}; {nearest(name, _FIELDS)}")
    return fields


def _payload(
    fields: dict[str, Any], name: str, encode: Callable[[Any], bytes | None]
) -> bytes | None:
    encoded = fields.get(f"{name}_base64")
    if encoded is None:
        return encode(fields.get(name))
    return _unbase64(encoded, f"{name}_base64")


def _unbase64(text: Any, where: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except (NotBase64, TypeError, ValueError) as error:
        raise RecordError(f"{where} is not base64: {error}") from error


def _bytes(value: Any) -> bytes | None:
    if value is None:
        return None
    return value.encode() if isinstance(value, str) else orjson.dumps(value)


def _headers(given: Any) -> Iterator[tuple[str, bytes | None]]:
    if not isinstance(given, dict):
        raise RecordError('headers are not a JSON object; write {"name": "value"}')
    for name, values in given.items():
        for value in _listed(values):
            if isinstance(value, dict) and "base64" in value:
                yield name, _unbase64(value["base64"], f"header {name}")
            else:
                yield name, _bytes(value)


def _timestamp(value: Any) -> int | None:
    # 0 cannot be written: librdkafka takes it for "now".
    if value is None or (type(value) is int and value > 0):
        return value
    raise RecordError(f"timestamp {value!r} is not a positive number of milliseconds since 1970")


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _named(name: str, value: bytes | None) -> dict[str, str | None]:
    shown = text_or_base64(value)
    return {f"{name}_base64": shown["base64"]} if isinstance(shown, dict) else {name: shown}
