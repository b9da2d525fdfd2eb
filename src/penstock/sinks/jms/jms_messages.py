"""Rows as JMS messages, in a task."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pyarrow as pa

from penstock.sinks.jms.amqp_encoding import (
    Envelope,
    Properties,
    application_properties,
    body,
)
from penstock.sinks.messages.outlet import Refusal
from penstock.sinks.messages.record_ids import RecordIds

if TYPE_CHECKING:
    from penstock.sinks.jms.jms_sink import JmsSink

# Artemis drops a message whose value of this property it has seen.
_DUPLICATE = "_AMQ_DUPL_ID"
_TEXTS = ("type", "reply_to", "correlation_id", "group_id")
Message = tuple[str, bytes]
"""The destination and the bytes of a message."""


class Messages:
    """Makes messages of rows, one task long."""

    def __init__(self, sink: JmsSink) -> None:
        self._sink = sink
        ttl = None if sink.ttl is None else int(sink.ttl * 1000)
        self._envelope = Envelope(sink.destination_kind, sink.persistent, sink.priority, ttl)
        self._ids = RecordIds()
        header = self._envelope.header()
        self._begins = {
            kind: header + self._envelope.annotations(kind) for kind in (sink.message, "message")
        }

    def of(self, rows: pa.RecordBatch) -> Iterator[Message | Refusal]:
        """Yield for each row its message, or why there is none."""
        found = self._ids.of(rows)
        ids = found.to_pylist() if found is not None else [None] * rows.num_rows
        names = [name for name in rows.schema.names if not name.startswith("_penstock_")]
        columns = [_python_values(rows.column(name)) for name in names]
        now = int(time.time() * 1000)
        for row, (place, *values) in enumerate(zip(ids, *columns, strict=True)):
            given = dict(zip(names, values, strict=True))
            try:
                yield self._message(given, place, now)
            except RecursionError:
                yield Refusal(
                    row, "ValueError", "the row cannot be a message: it is nested too deeply"
                )
            except (ValueError, TypeError) as error:
                yield Refusal(row, type(error).__name__, f"the row cannot be a message: {error}")

    def _message(self, row: dict[str, Any], place: str | None, now: int) -> Message:
        sink, ttl = self._sink, self._envelope.ttl
        destination = row.get("destination") or sink.destination
        kind = "message" if row["value"] is None else sink.message
        texts = {name: row[name] for name in _TEXTS if row.get(name) is not None}
        properties = Properties(
            message_id=f"ID:{place or uuid4()}",
            to=destination,
            subject=texts.get("type"),
            reply_to=texts.get("reply_to"),
            correlation_id=texts.get("correlation_id"),
            expires=now + ttl if ttl else None,
            created=now,
            group_id=texts.get("group_id"),
        )
        sections = (
            self._begins[kind],
            properties.section(),
            application_properties(self._properties(row.get("properties"), place)),
            body(kind, _content(sink.message, row["value"])),
        )
        return destination, b"".join(sections)

    def _properties(self, given: Any, place: str | None) -> dict[str, Any]:
        properties = plain_properties(given)
        if self._sink.duplicate_detection:
            if place is None:
                raise ValueError("it is not known which record the row was made of")
            properties[_DUPLICATE] = place
        return properties


def plain_properties(given: Any) -> dict[str, Any]:
    """Return properties from a map, a struct or headers, as values that JMS knows.

    >>> plain_properties([("a", 1), ("b", None)]), plain_properties([{"key": "h", "value": b"x"}])
    ({'a': 1, 'b': None}, {'h': 'x'})
    """
    if given is None:
        return {}
    if isinstance(given, dict):
        pairs = list(given.items())
    else:
        pairs = [(e["key"], e["value"]) if isinstance(e, dict) else e for e in given]
    return {str(name): _property(name, value) for name, value in pairs}


def _property(name: str, value: Any) -> Any:
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            raise ValueError(
                f"the property {name!r} has bytes that are not a text, which JMS does not know"
            ) from None
    if isinstance(value, (dict, list)):
        raise TypeError(f"the property {name!r} is nested, which JMS does not know")
    return value


def _content(kind: str, value: bytes | None) -> Any:
    if value is None or kind == "bytes":
        return value
    if kind == "text":
        return value.decode()
    given = json.loads(value)
    if kind == "stream":
        if not isinstance(given, (dict, list)):
            raise ValueError("a stream message is made of a JSON array or object")
        return [_flat(each) for each in (given.values() if isinstance(given, dict) else given)]
    if not isinstance(given, dict):
        raise ValueError("a map message is made of a JSON object")
    return {name: _flat(each) for name, each in given.items()}


def _flat(value: Any) -> Any:
    if isinstance(value, (dict, list)):
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return value


def _python_values(column: pa.Array) -> list[Any]:
    values: list[Any] = column.to_pylist()
    return values
