"""Writing records: a full queue slows the caller down, and no failed delivery goes unseen."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any

from confluent_kafka import KafkaError
from confluent_kafka import Producer as Client

from penstock.config import Connection
from penstock.errors import PenstockError, RecordError, TerminalError, TransientError
from penstock.kafka.errors import translate
from penstock.kafka.handle import Handle

HeadersLike = Mapping[str, bytes | str | None] | Iterable[tuple[str, bytes | str | None]]

_KEPT_FAILURES = 100
_LAST_CHANCE = 5.0


class Producer:
    """Write records to topics.

    `produce` returns at once; while the local queue is full it waits, at most `queue_timeout`
    seconds. `flush` waits for the deliveries and raises when any of them failed.

    Examples
    --------
    ::

        with Producer(connection) as producer:
            producer.produce("trades", key=b"A", value=b'{"price": 1}')
    """

    def __init__(
        self, connection: Connection, *, queue_timeout: float = 30.0, **overrides: Any
    ) -> None:
        self.queue_timeout = queue_timeout
        self.delivered = 0
        self.failed = 0
        self.failures: list[PenstockError] = []
        self._handle = Handle(connection, "producer", **overrides)
        self._client: Any = Client(self._handle.settings())

    def __enter__(self) -> Producer:
        return self

    def __exit__(self, exc_type: object, *_exc: object) -> None:
        if exc_type is None:
            self.close()
        else:
            # What was handed over is still delivered, but must not hide the error on its way up.
            self._client.flush(_LAST_CHANCE)

    def __len__(self) -> int:
        """How many records are not yet delivered."""
        return len(self._client)

    def produce(
        self,
        topic: str,
        key: bytes | str | None = None,
        value: bytes | str | None = None,
        *,
        partition: int | None = None,
        headers: HeadersLike | None = None,
        timestamp: int | None = None,
    ) -> None:
        """Hand one record over. The same key always goes to the same partition.

        A timestamp is in milliseconds since 1970, and at least 1: librdkafka takes 0 for "now".
        """
        record: dict[str, Any] = {"key": key, "value": value, "on_delivery": self._on_delivery}
        if partition is not None:
            record["partition"] = partition
        if timestamp is not None:
            record["timestamp"] = _checked(timestamp)
        if headers is not None:
            record["headers"] = list(headers.items() if isinstance(headers, Mapping) else headers)
        self._enqueue(topic, record)
        self._client.poll(0)

    def flush(self, timeout: float | None = None) -> None:
        """Wait until everything is delivered; raise when something was not."""
        left = self._client.flush(-1 if timeout is None else timeout)
        self.raise_failures()
        if left:
            raise TransientError(
                f"{left} records did not reach {self._handle.brokers} within {timeout:g} s; "
                "they are still queued: flush again, or check the broker"
            )

    def close(self) -> None:
        """Deliver what waits. The producer can be used no more."""
        self.flush()

    def raise_failures(self) -> None:
        """Raise when any delivery failed so far, with the number and the first reason."""
        if not self.failed:
            return
        first = self.failures[0]
        message = f"{self.failed} records were not delivered; the first: {first}"
        kind = TransientError if isinstance(first, TransientError) else TerminalError
        raise kind(message) from first

    def _enqueue(self, topic: str, record: dict[str, Any]) -> None:
        deadline = time.monotonic() + self.queue_timeout
        while True:
            try:
                self._client.produce(topic, **record)
                return
            except BufferError:
                if time.monotonic() > deadline:
                    raise self._full() from None
                self._client.poll(0.1)

    def _full(self) -> TransientError:
        return TransientError(
            f"the local queue is full ({len(self)} records) and {self._handle.brokers} took none "
            f"for {self.queue_timeout:g} s; check the broker, or raise queue.buffering.max.messages"
        )

    def _on_delivery(self, error: KafkaError | None, message: Any) -> None:
        if error is None:
            self.delivered += 1
            return
        self.failed += 1
        if len(self.failures) < _KEPT_FAILURES:
            doing = f"writing to topic {message.topic()!r}"
            self.failures.append(translate(error, doing, self._handle.brokers, self._handle.seen))


def _checked(timestamp: int) -> int:
    if timestamp < 1:
        raise RecordError(
            f"timestamp {timestamp} cannot be written: give milliseconds since 1970, at least 1"
        )
    return timestamp
