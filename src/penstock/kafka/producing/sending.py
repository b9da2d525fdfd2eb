"""Handing messages to librdkafka: back-pressure, callbacks, and failures that nobody overlooks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from time import monotonic
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message
from confluent_kafka import Producer as Client
from msgspec import defstruct

from penstock.config import Connection
from penstock.errors import FormatError, PenstockError, QueueFullError, RecordError, TransientError
from penstock.kafka.handle import Handle, OnError
from penstock.kafka.producing.delivery import Delivery, OnDelivery, ReportedDelivery
from penstock.kafka.producing.failures import Failures
from penstock.kafka.producing.tables import Batch
from penstock.kafka.pump import Pump

HeadersLike = Mapping[str, bytes | str | None] | Iterable[tuple[str, bytes | str | None]]
Rest = tuple["HeadersLike | None", "int | None", "OnDelivery | None"]

# Callbacks are served this often while records keep coming: polling after each one costs speed, and
# so does looking at the clock, which is done after every sixteenth.
_SERVE_EVERY = 0.005
SERVE_AFTER = 0b1111
RARE = (BufferError, KafkaException, TypeError)
"""What librdkafka raises when it did not take a message."""
ANY_PARTITION = -1


class Sending:
    """The base of a producer: one librdkafka client, what waits in it, and what became of it."""

    def __init__(
        self,
        connection: Connection,
        *,
        queue_timeout: float = 30.0,
        on_error: OnError | None = None,
        **overrides: Any,
    ) -> None:
        self.connection = connection
        self.queue_timeout = queue_timeout
        self._handle = Handle(connection, "producer", on_error=on_error, **overrides)
        with self._handle.translated("making a producer"):
            self._client: Any = Client(self._handle.settings())
        self._produce = self._client.produce
        self.failures = Failures(self._handle)
        self.pump = Pump(self)
        self._accepted = 0
        self._serve_at = 0.0
        mine = {"_producer": self, "_waiters": {}}
        self._delivery: Any = defstruct("Delivery", [], bases=(Delivery,), namespace=mine, gc=False)
        self._reported: Any = defstruct(
            "Delivery", [], bases=(ReportedDelivery,), namespace=mine, gc=False
        )

    def __len__(self) -> int:
        """How many records are not yet delivered."""
        return len(self._client)

    @property
    def delivered(self) -> int:
        """How many records the brokers have taken."""
        return self._accepted - self.failed - len(self._client)

    def send(  # noqa: PLR0917 - called for each record, and a call by position is the fastest
        self,
        topic: str,
        key: Any,
        value: Any,
        partition: int | None = None,
        headers: HeadersLike | None = None,
        timestamp: int | None = None,
        on_delivery: OnDelivery | None = None,
    ) -> Delivery:
        """Hand over one message whose key and value are bytes or text already."""
        delivery: Delivery = (
            self._delivery() if on_delivery is None else self._reported(on_delivery=on_delivery)
        )
        if type(key) is int:
            key = str(key)
        place = ANY_PARTITION if partition is None else partition
        message: tuple[Any, ...] = (topic, value, key, place, delivery)
        if headers is not None or timestamp is not None:
            message += (None, _checked(timestamp), _as_list(headers))
        try:
            self._client.produce(*message)
        except BufferError:
            self._wait_for_room(message)
        except (KafkaException, TypeError) as problem:
            raise self._not_taken(problem, topic, key, value) from problem
        self._accepted += 1
        self.serve()
        return delivery

    def send_rows(self, topic: str, batch: Batch) -> int:
        """Hand over many messages, whose failures are told by `flush`."""
        produce, noted = self._client.produce, self._noted
        for value, key, partition, moment in batch:
            message = (topic, value, key, partition, noted, None, moment)
            try:
                produce(*message)
            except BufferError:
                self._wait_for_room(message)
            except (KafkaException, TypeError) as problem:
                raise self._not_taken(problem, topic, key, value) from problem
        self._accepted += len(batch)
        self.poll()
        return len(batch)

    def serve(self) -> None:
        """Serve the callbacks that wait, where that was not done a moment ago."""
        if monotonic() > self._serve_at:
            self.poll()

    def poll(self, timeout: float = 0.0) -> int:
        """Serve the callbacks that wait; `produce` and `flush` do it by themselves."""
        with self._handle.translated("writing records"):
            served: int = self._client.poll(timeout)
        self._serve_at = monotonic() + _SERVE_EVERY
        return served

    def flush(self, timeout: float | None = None) -> None:
        """Wait until everything is delivered; raise when something was not."""
        with self._handle.translated("writing records"):
            left = self._client.flush(-1 if timeout is None else timeout)
        self.raise_failures()
        if left:
            self._handle.raise_refusal(f"delivering {left} records")
            raise TransientError(
                f"{left} records did not reach {self._handle.brokers} within {timeout:g} s; "
                "they are still queued: flush again, or check the broker"
            )

    def close(self) -> None:
        """Deliver what waits. The producer can be used no more."""
        self.flush()

    @property
    def failed(self) -> int:
        """How many deliveries failed."""
        return self.failures.count

    def raise_failures(self) -> None:
        """Raise when a delivery failed of which nobody was told, with the number and the first reason."""
        self.failures.raise_untold()

    def queue_full(self, waited: float) -> QueueFullError:
        """The error for a queue that stayed full."""
        return QueueFullError(
            f"the local queue is full ({len(self)} records) and {self._handle.brokers} took none "
            f"for {waited:g} s; check the broker, or raise queue.buffering.max.messages"
        )

    def _not_taken(
        self, problem: KafkaException | TypeError, topic: str, key: Any, value: Any
    ) -> PenstockError:
        if isinstance(problem, KafkaException):
            doing = f"writing to topic {topic!r}"
            return self.failures.translated(problem.args[0], doing)
        kinds = f"key {type(key).__name__}, value {type(value).__name__}"
        return FormatError(
            f"{kinds}: without a format both are bytes or text; give format='json' (or another)"
        )

    def _wait_for_room(self, message: tuple[Any, ...]) -> None:
        deadline = monotonic() + self.queue_timeout
        while True:
            if monotonic() >= deadline:
                raise self.queue_full(self.queue_timeout) from None
            self.poll(0.05)
            try:
                self._client.produce(*message)
                return
            except BufferError:
                continue

    def _noted(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.failures.keep(error, message)


def _as_list(headers: HeadersLike | None) -> list[tuple[str, bytes | str | None]] | None:
    return list(headers.items() if isinstance(headers, Mapping) else headers) if headers else None


def _checked(timestamp: int | None) -> int:
    if timestamp is None:
        return 0
    if timestamp < 1:
        raise RecordError(
            f"timestamp {timestamp} cannot be written: give milliseconds since 1970, at least 1"
        )
    return timestamp
