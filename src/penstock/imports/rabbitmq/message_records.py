"""Messages as records: the body is the value; properties and headers are headers."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from penstock.imports.rabbitmq.deliveries import Delivery
from penstock.pipeline.importing import BadRecord
from penstock.sinks.rabbitmq.amqp_values import (
    Layout,
    WrongValueError,
    as_text,
    read_fields,
)

PREFIX = "rabbitmq."
_OCTETS = tuple(str(number).encode() for number in range(256))
_OF_ROUTE = ("exchange", "routing_key", "redelivered", "queue")
_OF_HEADER = "header:"
_TOO_MANY_ROUTES = 10_000
# The names of the properties, and what Kafka adds to each header.
_AROUND = 1_000


@dataclass(frozen=True)
class Route:
    """Where a message was published to; the same for many."""

    values: tuple[bytes, ...]
    exchange: bytes
    key: bytes

    @classmethod
    def read(cls, data: bytes) -> Route:
        """Read the end of the method that delivers.

        >>> Route.read(bytes([1, 2]) + b"ex" + bytes([3]) + b"a.b").values
        (b'ex', b'a.b', b'true')
        """
        middle = 2 + data[1]
        exchange, key = data[2:middle], data[middle + 1 :]
        return cls((exchange, key, b"true" if data[0] & 1 else b"false"), exchange, key)


@dataclass
class Converted:
    """Messages as records, and those that cannot be."""

    records: pa.RecordBatch
    bad: list[BadRecord] = field(default_factory=list)
    rejected: list[int] = field(default_factory=list)


class MessageRecords:
    """Makes records of messages: for the messages of one queue, in one task."""

    def __init__(
        self, queue: str, key: str, max_bytes: int, *, properties: bool, reject: bool
    ) -> None:
        self._queue = queue.encode()
        self._key = key
        self._key_header = key.removeprefix(_OF_HEADER) if key.startswith(_OF_HEADER) else None
        self._max_bytes = max_bytes
        self._with_properties = properties
        self._reject = reject
        self._routes: dict[bytes, Route] = {}
        self._names: dict[tuple[str, ...], tuple[str, ...]] = {}

    def convert(self, messages: Sequence[Delivery]) -> Converted:
        """Return records, in the order of the messages."""
        columns = _Columns()
        done = Converted(pa.record_batch({"value": pa.array([], pa.binary())}))
        for message in messages:
            try:
                self._add(message, columns)
            except WrongValueError as error:
                self._put_aside(message, str(error), done)
        done.records = columns.batch()
        return done

    def _add(self, message: Delivery, columns: _Columns) -> None:
        layout, values, headers = read_fields(message.properties)
        route = self._routes.get(message.route) or self._route(message.route)
        seconds = None
        for at in layout.numbers:
            if layout.names[at] == "timestamp":
                seconds = values[at]
            values[at] = _number(values[at])
        key = self._key_of(layout, values, headers, route)
        names: Sequence[str] = ()
        # After those of the message: where names are the same, most readers take the last one.
        if self._with_properties:
            values += (*route.values, self._queue)
            names = self._names.get(layout.names) or self._prefixed(layout.names)
        else:
            values = []
        if headers:
            names = [*(name for name, _ in headers), *names]
            own = (value if type(value) is bytes else as_text(value) for _, value in headers)
            values = [*own, *values]
        # A table as JSON has at most a few times the bytes that it has in AMQP: most need no count.
        if message.size + 20 * len(message.properties) + _AROUND > self._max_bytes:
            self._require_size(message, key, names, values)
        columns.add(message.body, key, names, values, seconds)

    def _prefixed(self, names: tuple[str, ...]) -> tuple[str, ...]:
        made = tuple(PREFIX + name for name in (*names, *_OF_ROUTE))
        return self._names.setdefault(names, made)

    def _key_of(
        self, layout: Layout, values: list[Any], headers: list[tuple[str, Any]], route: Route
    ) -> bytes | None:
        if self._key in layout.names:
            found: bytes = values[layout.names.index(self._key)]
            return found
        if self._key == "routing_key":
            return route.key
        if self._key_header is not None:
            return next(
                (as_text(value) for name, value in headers if name == self._key_header), None
            )
        return None

    def _require_size(
        self,
        message: Delivery,
        key: bytes | None,
        names: Sequence[str],
        values: Sequence[bytes | None],
    ) -> None:
        texts = sum(map(len, names)) + sum(len(value) for value in values if value)
        size = message.size + len(key or b"") + texts + 10 * len(names)
        if size > self._max_bytes:
            raise WrongValueError(
                f"the message has {size} bytes with its headers, and 'max_bytes' allows {self._max_bytes}"
            )

    def _put_aside(self, message: Delivery, reason: str, done: Converted) -> None:
        if self._reject:
            done.rejected.append(message.tag)
            return
        route = self._route(message.route)
        text = (
            f"{reason} (exchange {route.exchange.decode(errors='replace')!r}, "
            f"routing key {route.key.decode(errors='replace')!r})"
        )
        done.bad.append(BadRecord(message.body, text, "UnsuitableMessageError"))

    def _route(self, data: bytes) -> Route:
        if len(self._routes) >= _TOO_MANY_ROUTES:
            self._routes.clear()
        return self._routes.setdefault(data, Route.read(data))


class _Columns:
    """The columns of records, as they are built."""

    def __init__(self) -> None:
        self._values: list[bytes] = []
        self._keys: list[bytes | None] = []
        self._times: list[int | None] = []
        self._ends = [0]
        self._names: list[str] = []
        self._texts: list[bytes | None] = []
        self._now = int(time.time())

    def add(
        self,
        value: bytes,
        key: bytes | None,
        names: Sequence[str],
        texts: Sequence[bytes | None],
        seconds: int | None,
    ) -> None:
        self._values.append(value)
        self._keys.append(key)
        self._names += names
        self._texts += texts
        self._ends.append(len(self._names))
        # Kafka refuses times in the future: a wrong clock, or milliseconds. A header has it.
        timely = seconds is not None and 0 < seconds <= self._now
        self._times.append(seconds * 1000 if timely and seconds else None)

    def batch(self) -> pa.RecordBatch:
        columns = {
            "value": pa.array(self._values, pa.binary()),
            "key": pa.array(self._keys, pa.binary()),
        }
        if names := self._names:
            if any("\0" in name for name in {*names}):  # where librdkafka would cut them
                names = [name.replace("\0", "\\x00") for name in names]
            pairs = pa.StructArray.from_arrays(
                [pa.array(names, pa.string()), pa.array(self._texts, pa.binary())],
                ["key", "value"],
            )
            columns["headers"] = pa.ListArray.from_arrays(pa.array(self._ends, pa.int32()), pairs)
        if any(self._times):
            columns["timestamp"] = pa.array(self._times, pa.int64())
        return pa.record_batch(columns)


def _number(value: int) -> bytes:
    return _OCTETS[value] if value < 256 else str(value).encode()
