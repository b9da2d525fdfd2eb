"""Handing messages to librdkafka: back-pressure, callbacks, and failures that nobody overlooks."""

from __future__ import annotations

from operator import length_hint
from time import monotonic
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message
from confluent_kafka import Producer as Client
from msgspec import defstruct

from penstock.config import ConnectionLike
from penstock.errors import ConfigError, FormatError, PenstockError, QueueFullError, TransientError
from penstock.kafka.closed import Closed
from penstock.kafka.handle import Handle, OnError
from penstock.kafka.producing.arguments import (
    TAKEN,
    HeadersLike,
    bytes_of,
    headers_of,
    key_of,
    moment_of,
    partition_of,
    topic_of,
)
from penstock.kafka.producing.failures import Failures
from penstock.kafka.producing.receipt import OnDelivery, Receipt, ReportedReceipt
from penstock.kafka.producing.tables import Batch
from penstock.kafka.pump import Pump

Rest = tuple["HeadersLike | None", Any, "OnDelivery | None"]

# Callbacks are served this often while records keep coming: polling after each one costs speed, and
# so does looking at the clock, which is done after every sixteenth.
_SERVE_EVERY = 0.005
SERVE_AFTER = 0b1111
RARE = (BufferError, KafkaException, TypeError, ValueError, OverflowError)
"""What librdkafka raises when it did not take a message."""


class Sending:
    """The base of a producer: one librdkafka client, what waits in it, and what became of it."""

    def __init__(
        self,
        connection: ConnectionLike,
        *,
        queue_timeout: float = 30.0,
        on_error: OnError | None = None,
        **overrides: Any,
    ) -> None:
        self.queue_timeout = queue_timeout
        self._handle = Handle(connection, "producer", on_error=on_error, **overrides)
        self.connection = self._handle.connection
        with self._handle.translated("making a producer"):
            self._client: Any = Client(self._handle.settings())
        self._produce: Any = self._client.produce
        self.callbacks = self._handle.callbacks
        self.failures = Failures(self._handle)
        self.pump = Pump(self)
        self._accepted = 0
        self._serve_at = 0.0
        mine = {"_producer": self, "_waiters": {}}
        self._receipt: Any = defstruct("Receipt", [], bases=(Receipt,), namespace=mine, gc=False)
        self._reported: Any = defstruct(
            "Receipt", [], bases=(ReportedReceipt,), namespace=mine, gc=False
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
        timestamp: Any = None,
        on_delivery: OnDelivery | None = None,
    ) -> Receipt:
        """Hand over one message whose key and value are bytes or text already."""
        receipt = self._receipt_for(on_delivery)
        message: tuple[Any, ...] = (
            topic_of(topic),
            value if type(value) in TAKEN else bytes_of(value),
            key if type(key) in TAKEN else key_of(key),
            partition_of(partition),
            receipt,
        )
        if headers is not None or timestamp is not None:
            message += (None, moment_of(timestamp), headers_of(headers))
        self._hand_over(message)
        self._accepted += 1
        self.serve()
        return receipt

    def _receipt_for(self, on_delivery: OnDelivery | None) -> Receipt:
        if on_delivery is None:
            plain: Receipt = self._receipt()
            return plain
        if not callable(on_delivery):
            raise ConfigError(f"on_delivery {on_delivery!r} is not allowed; allowed: a function")
        reported: Receipt = self._reported(on_delivery=on_delivery)
        return reported

    def send_rows(self, topic: str, batch: Batch) -> int:
        """Hand over many messages, whose failures are told by `flush`."""
        produce, noted, left = self._produce, self._noted, iter(batch)
        topic_of(topic)
        try:
            for value, key, partition, moment in left:
                message = (topic, value, key, partition, noted, None, moment)
                try:
                    produce(*message)
                except RARE:
                    self._hand_over(message)
        except BaseException:
            self._accepted += len(batch) - length_hint(left) - 1
            raise
        self._accepted += len(batch)
        self.serve_now()
        return len(batch)

    def serve(self) -> None:
        """Serve the callbacks that wait, where that was not done a moment ago."""
        if monotonic() > self._serve_at:
            self.serve_now()

    def serve_now(self, timeout: float = 0.0) -> int:
        """Serve the callbacks that wait; what one of them raises is kept for `poll` and `flush`."""
        with self._handle.translated("writing records"):
            served: int = self._client.poll(timeout)
        self._serve_at = monotonic() + _SERVE_EVERY
        return served

    def poll(self, timeout: float = 0.0) -> int:
        """Serve the callbacks that wait; `produce` and `flush` do it by themselves."""
        served = self.serve_now(timeout)
        self.callbacks.raise_kept()
        return served

    def flush(self, timeout: float | None = None) -> None:
        """Wait until everything is delivered; raise when something was not."""
        seconds = -1 if timeout is None else timeout
        self.raise_left(self.emptied(seconds), seconds)

    def emptied(self, seconds: float) -> int:
        """Wait until nothing waits or the time is up; how many are left."""
        with self._handle.translated("writing records"):
            left: int = self._client.flush(seconds)
        return left

    def raise_left(self, left: int, waited: float) -> None:
        """Raise for what is not delivered after a wait, and for what failed or was raised meanwhile."""
        self.raise_failures()
        self.callbacks.raise_kept()
        if left:
            self._handle.raise_refusal(f"delivering {left} records")
            raise TransientError(
                f"{left} records did not reach {self._handle.brokers} within {waited:g} s; "
                "they are still queued: flush again, or check the broker"
            )

    def close(self) -> None:
        """Deliver what waits. The producer can be used no more."""
        if isinstance(self._client, Closed):
            return
        try:
            self.flush()
        finally:
            self.end()

    def end(self) -> None:
        """Take no more records; let go of the connections where all of them are delivered."""
        closed = Closed("producer")
        self._produce = closed.refuse
        if not len(self._client):
            self._client.close()
            self._client = closed

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
            f"the local queue is full and {self._handle.brokers} took no record "
            f"for {waited:g} s; check the broker, or raise queue.buffering.max.messages"
        )

    def _hand_over(self, message: tuple[Any, ...]) -> None:
        try:
            self._produce(*message)
        except BufferError:
            self._wait_for_room(message)
        except KafkaException as problem:
            raise self._not_taken(problem, message[0]) from problem
        except UnicodeEncodeError as problem:
            raise FormatError(f"key or value has no UTF-8 form: {problem.reason}") from problem

    def _not_taken(self, problem: KafkaException, topic: str) -> PenstockError:
        error, doing = problem.args[0], f"writing to topic {topic!r}"
        if error.code() == KafkaError._STATE and self._handle.get("transactional.id"):
            doing = f"{doing}, outside of a transaction (begin one: with producer.transaction())"
        return self.failures.translated(error, doing)

    def _wait_for_room(self, message: tuple[Any, ...]) -> None:
        deadline = monotonic() + self.queue_timeout
        while True:
            if monotonic() >= deadline:
                raise self.queue_full(self.queue_timeout) from None
            self.serve_now(0.05)
            try:
                self._produce(*message)
                return
            except BufferError:
                continue
            except KafkaException as problem:
                raise self._not_taken(problem, message[0]) from problem

    def _noted(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.failures.keep(error, message)
