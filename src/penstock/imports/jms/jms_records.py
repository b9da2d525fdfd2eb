"""Messages as records: the value by the kind of the message, JMS headers and properties as headers."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from penstock.imports.jms.amqp_message import AmqpMessage, read_message
from penstock.pipeline.importing import BadRecord, Portion, Position

# What the annotation x-opt-jms-msg-type says.
_KINDS = {0: "message", 1: "object", 2: "map", 3: "bytes", 4: "stream", 5: "text"}
_KIND, _SERIALIZED = "x-opt-jms-msg-type", "application/x-java-serialized-object"
_HEADERS = pa.list_(pa.struct({"key": pa.string(), "value": pa.binary()}))
_NAMED = {
    "message_id": "jms.message_id", "correlation_id": "jms.correlation_id", "subject": "jms.type",
    "reply_to": "jms.reply_to", "absolute_expiry_time": "jms.expiration", "group_id": "jms.group_id",
    "group_sequence": "jms.group_sequence", "content_type": "jms.content_type",
    "user_id": "jms.user_id",
}  # fmt: skip
Header = dict[str, Any]


class Record(NamedTuple):
    """What becomes of one message."""

    value: bytes | None
    key: bytes | None
    headers: list[Header]
    timestamp: int | None


class Records:
    """Makes records of the messages of one destination."""

    def __init__(self, destination: str, key: str, *, with_headers: bool = True) -> None:
        self._destination = destination
        self._key = _key_reader(key)
        self._with_headers = with_headers

    def record(self, data: bytes, now: int) -> Record:
        """Return the record of a message; ValueError where it cannot be one."""
        message = read_message(data)
        kind = kind_of(message)
        value = value_of(message, kind)
        headers = self._headers(message, kind) if self._with_headers else []
        return Record(value, self._key(message), headers, _timestamp(message, now))

    def portion(
        self, messages: Sequence[bytes], bad: Sequence[BadRecord], now: int, position: Position
    ) -> Portion:
        """Return the records of messages; those that cannot be records are dead letters."""
        records, refused = [], [*bad]
        for data in messages:
            try:
                records.append(self.record(data, now))
            except ValueError as error:
                refused.append(BadRecord(data, str(error), type(error).__name__))
        columns: dict[str, pa.Array] = {
            "value": pa.array([each.value for each in records], pa.binary()),
            "key": pa.array([each.key for each in records], pa.binary()),
            "timestamp": pa.array([each.timestamp for each in records], pa.int64()),
        }
        if self._with_headers:
            columns["headers"] = pa.array([each.headers for each in records], _HEADERS)
        return Portion(pa.record_batch(columns), position, tuple(refused))

    def _headers(self, message: AmqpMessage, kind: str) -> list[Header]:
        given = message.properties
        named = {name: given[field] for field, name in _NAMED.items() if field in given}
        named["jms.destination"] = given.get("to", self._destination)
        named["jms.kind"] = kind
        named["jms.priority"] = message.priority
        named["jms.redelivered"] = message.delivery_count > 0
        # A property cannot pretend to be a header of JMS.
        every = {_header_name(name): value for name, value in message.application.items()} | named
        return [{"key": name, "value": plain(value)} for name, value in every.items()]


def _header_name(name: Any) -> str:
    """Return the name of a property for a header; librdkafka would cut it at a zero.

    >>> _header_name("jms.kind\\0")
    'jms.kind\\\\x00'
    """
    return str(name).replace("\0", "\\x00")


def kind_of(message: AmqpMessage) -> str:
    """Return the kind of a JMS message; for senders that are not JMS, by its body."""
    noted = message.annotations.get(_KIND)
    if isinstance(noted, int) and noted in _KINDS:
        return _KINDS[noted]
    if message.properties.get("content_type") == _SERIALIZED:
        return "object"
    if message.body is None:
        return "message"
    if isinstance(message.body, bytes):
        return "bytes"
    if isinstance(message.body, dict):
        return "map"
    return "stream" if isinstance(message.body, list) else "text"


def value_of(message: AmqpMessage, kind: str) -> bytes | None:
    """Return the value of the record: bytes as they are, text as UTF-8, maps and streams as JSON.

    >>> value_of(AmqpMessage(body={"n": 1, "raw": b"\\x00"}), "map")
    b'{"n":1,"raw":"AA=="}'
    """
    if kind == "object":
        raise ValueError(
            "an object message: it holds a Java object, which is never deserialized; let the sender send "
            "text, bytes or a map"
        )
    body = message.body
    if body is None:
        return None
    if isinstance(body, bytes):
        return body
    if isinstance(body, str):
        return body.encode()
    return json.dumps(_json(body), separators=(",", ":"), ensure_ascii=False).encode()


def plain(value: Any) -> bytes | None:
    """Return a property as the value of a header.

    >>> plain("a"), plain(5), plain(True), plain(0.5), plain(b"raw"), plain(None)
    (b'a', b'5', b'true', b'0.5', b'raw', None)
    """
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    shaped = _json(value)
    if isinstance(shaped, str):
        return shaped.encode()
    return json.dumps(shaped, separators=(",", ":"), ensure_ascii=False).encode()


def _json(value: Any) -> Any:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else f"{'-' if value < 0 else ''}Infinity"
    if isinstance(value, dict):
        return {_name(key): _json(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_json(each) for each in value]
    return value


def _name(key: Any) -> str:
    return key if isinstance(key, str) else str(_json(key))


def _key_reader(key: str) -> Callable[[AmqpMessage], bytes | None]:
    if key == "none":
        return lambda _message: None
    if key.startswith("property:"):
        name = key.removeprefix("property:")
        return lambda message: plain(message.application.get(name))
    return lambda message: plain(message.properties.get(key))


def _timestamp(message: AmqpMessage, now: int) -> int | None:
    """Return when it was sent; a clock ahead of ours counts as now, which brokers would refuse."""
    sent = message.properties.get("creation_time")
    if not isinstance(sent, int) or sent <= 0:
        return None
    return min(sent, now)
