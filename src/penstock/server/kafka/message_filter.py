"""Which messages of a topic are wanted: by key, value, header and time."""

from __future__ import annotations

import json
from dataclasses import dataclass

from penstock.errors import ConfigError
from penstock.imports.http.json_text import Pointer
from penstock.record import Record
from penstock.server.kafka.message_values import ShownValue, ValueReader


@dataclass(frozen=True)
class MessageFilter:
    """Conditions, all of which must hold; those that are not given hold for all messages.

    `equals` is the JSON of what the pointer must lead to, or a text. `headers` are names, or names with a
    value as in `trace=42`. Times are milliseconds since 1970: `since` is included, `before` is not.
    """

    key: str | None = None
    value: str | None = None
    pointer: Pointer | None = None
    equals: str | None = None
    headers: tuple[str, ...] = ()
    since: int | None = None
    before: int | None = None

    def wants(self, record: Record, values: ValueReader, keys: ValueReader) -> bool:
        """Return whether a message is wanted; what is cheap is asked first."""
        return (
            self._in_time(record)
            and all(_has_header(record, wanted) for wanted in self.headers)
            and (self.key is None or _is_key(record, keys, self.key))
            and (self.value is None or self._contains(record, values))
            and (self.pointer is None or self._points(record, values))
        )

    def _in_time(self, record: Record) -> bool:
        at = record.timestamp
        if self.since is None and self.before is None:
            return True
        if at is None:
            return False
        return (self.since is None or at >= self.since) and (
            self.before is None or at < self.before
        )

    def _contains(self, record: Record, values: ValueReader) -> bool:
        wanted, data = str(self.value), record.value
        if data is None:
            return False
        return wanted.encode() in data or wanted in values.read(data, record.topic).text

    def _points(self, record: Record, values: ValueReader) -> bool:
        shown = values.read(record.value, record.topic)
        if not shown.is_json or self.pointer is None:
            return False
        try:
            part = self.pointer.find(shown.text.strip().encode())
        except (ValueError, RecursionError):
            return False
        return part is not None and (self.equals is None or _is_same(part, self.equals))


def pointer_of(text: str | None, equals: str | None) -> Pointer | None:
    """Return the pointer of a filter; refuse a wrong one, and a value without one."""
    if text is None:
        if equals is not None:
            raise ConfigError(
                "'equals' needs 'pointer': the JSON pointer to what it is compared with"
            )
        return None
    try:
        return Pointer.read(text)
    except ValueError as error:
        raise ConfigError(str(error)) from None


def _is_key(record: Record, keys: ValueReader, wanted: str) -> bool:
    if record.key is None:
        return False
    return record.key == wanted.encode() or _plain(keys.read(record.key, record.topic)) == wanted


def _plain(shown: ShownValue) -> str:
    """Return the text of a key: that of a JSON string is the string."""
    if not shown.is_json:
        return shown.text
    try:
        value = json.loads(shown.text)
    except (ValueError, RecursionError):  # a number of thousands of digits, a thousand brackets
        return shown.text
    return value if isinstance(value, str) else shown.text


def _has_header(record: Record, wanted: str) -> bool:
    name, equals, value = wanted.partition("=")
    return any(
        each == name and (not equals or (data is not None and data == value.encode()))
        for each, data in record.headers
    )


def _is_same(part: bytes, wanted: str) -> bool:
    """Compare values of JSON as values: 1.0 is 1, and blanks do not count.

    >>> _is_same(b'1.50', "1.5"), _is_same(b'"EUR"', "EUR"), _is_same(b'{"a": 1}', '{"a":1}')
    (True, True, True)
    """
    try:
        actual = json.loads(part)
    except (ValueError, RecursionError):
        return False
    if actual == wanted:
        return True
    try:
        expected = json.loads(wanted)
    except (ValueError, RecursionError):
        return False
    if type(actual) is type(expected):
        return bool(actual == expected)
    return _are_numbers(actual, expected)


def _are_numbers(actual: object, expected: object) -> bool:
    numbers = all(
        isinstance(each, int | float) and not isinstance(each, bool) for each in (actual, expected)
    )
    return numbers and actual == expected
