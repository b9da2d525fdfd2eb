"""Passing messages to librdkafka: back-pressure, callbacks, and failures that no one overlooks."""

from __future__ import annotations

from operator import length_hint
from time import monotonic
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message
from confluent_kafka import Producer as Client
from msgspec import defstruct

from penstock.config import ConnectionLike
from penstock.errors import (
    ConfigError,
    FencedError,
    FormatError,
    PenstockError,
    QueueFullError,
    TerminalError,
    TransientError,
)
from penstock.kafka.handle import Closed, Handle, OnError
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
from penstock.kafka.producing.receipt import OnDelivery, Receipt, ReportedReceipt
from penstock.kafka.producing.table_producing import Batch
from penstock.kafka.pump import Pump

# What is raised names the first failure; more are kept for those who look, but not without end.
_KEPT = 100
# Callbacks are served this often while records keep coming: polling after each one costs speed, and
# so does looking at the clock, which is done after every sixteenth.
_SERVE_EVERY = 0.005
SERVE_AFTER = 0b1111
RARE = (BufferError, KafkaException, TypeError, ValueError, OverflowError)
"""What librdkafka raises when it did not take a message."""


class Failures:
    """What was not delivered: `count` of all, `errors` of those that are not reported yet."""

    def __init__(self, handle: Handle) -> None:
        self.count = 0
        self.errors: list[PenstockError] = []
        self._unreported = 0
        self._handle = handle

    def keep(self, error: KafkaError, message: Message) -> PenstockError:
        """Keep a failure for the next `raise_unreported`."""
        problem = self.note(error, message)
        self._unreported += 1
        if len(self.errors) < _KEPT:
            self.errors.append(problem)
        return problem

    def note(self, error: KafkaError, message: Message) -> PenstockError:
        """Count a failure that is reported in another way."""
        self.count += 1
        return self._handle.translate(error, f"writing to topic {message.topic()!r}")

    def reported(self, error: PenstockError) -> None:
        """Drop an error that a waiter was given."""
        if any(error is each for each in self.errors):
            self.errors = [each for each in self.errors if each is not error]
            self._unreported -= 1

    def forget(self) -> None:
        """Drop what is not reported yet."""
        self.errors, self._unreported = [], 0

    def raise_unreported(self) -> None:
        """Raise once for all failures since the last time, with their number and the first reason."""
        if not self.errors:
            return
        first, count = self.errors[0], self._unreported
        self.forget()
        kinds = (TransientError, FencedError, TerminalError)
        kind = next((each for each in kinds if isinstance(first, each)), TerminalError)
        raise kind(f"{count} records were not delivered; the first: {first}") from first


class Sender:
    """One producer of librdkafka, the records that wait in it, and what became of the others."""

    def __init__(
        self,
        producer: object,
        connection: ConnectionLike,
        queue_timeout: float,
        on_error: OnError | None,
        settings: dict[str, Any],
    ) -> None:
        # Records on their way keep the sender, and with it the producer, until they are delivered.
        self._producer = producer
        self.queue_timeout = queue_timeout
        self.handle = Handle(connection, "producer", on_error=on_error, **settings)
        with self.handle.translated("making a producer"):
            self.client: Any = Client(self.handle.settings())
        self.produce: Any = self.client.produce
        self.callbacks = self.handle.callbacks
        self.failures = Failures(self.handle)
        self.pump = Pump(self)
        self.accepted = 0
        self._serve_at = 0.0
        mine = {"_sender": self, "_waiters": {}}
        self.receipt: Any = defstruct("Receipt", [], bases=(Receipt,), namespace=mine, gc=False)
        self._reported: Any = defstruct(
            "Receipt", [], bases=(ReportedReceipt,), namespace=mine, gc=False
        )

    def __len__(self) -> int:
        """Return how many records are not yet delivered."""
        return len(self.client)

    @property
    def delivered(self) -> int:
        """Return how many records the brokers have acknowledged."""
        return self.accepted - self.failures.count - len(self.client)

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
        """Pass one message whose key and value are bytes or text already."""
        receipt: Receipt
        if on_delivery is None:
            receipt = self.receipt()
        elif callable(on_delivery):
            receipt = self._reported(on_delivery=on_delivery)
        else:
            raise ConfigError(f"on_delivery {on_delivery!r} is not allowed; allowed: a function")
        message: tuple[Any, ...] = (
            topic_of(topic),
            value if type(value) in TAKEN else bytes_of(value),
            key if type(key) in TAKEN else key_of(key),
            partition_of(partition),
            receipt,
        )
        if headers is not None or timestamp is not None:
            message += (None, moment_of(timestamp), headers_of(headers))
        self._enqueue(message)
        self.accepted += 1
        self.serve()
        return receipt

    def send_rows(self, topic: str, batch: Batch) -> int:
        """Pass many messages, whose failures `flush` raises."""
        produce, noted, left = self.produce, self._noted, iter(batch)
        topic_of(topic)
        try:
            for value, key, partition, moment in left:
                message = (topic, value, key, partition, noted, None, moment)
                try:
                    produce(*message)
                except RARE:
                    self._enqueue(message)
        except BaseException:
            self.accepted += len(batch) - length_hint(left) - 1
            raise
        self.accepted += len(batch)
        self.serve_now()
        return len(batch)

    def serve(self) -> None:
        """Serve the callbacks that wait, unless that was done a moment ago."""
        if monotonic() > self._serve_at:
            self.serve_now()

    def serve_now(self, timeout: float = 0.0) -> int:
        """Serve the callbacks that wait; keep what one of them raises for `poll` and `flush`."""
        with self.handle.translated("writing records"):
            served: int = self.client.poll(timeout)
        self._serve_at = monotonic() + _SERVE_EVERY
        return served

    def drain(self, seconds: float) -> int:
        """Wait until every record is delivered or the time is up; return how many are left."""
        with self.handle.translated("writing records"):
            left: int = self.client.flush(seconds)
        return left

    def raise_left(self, left: int, waited: float) -> None:
        """Raise for what is not delivered after a wait, and for what failed or was raised meanwhile."""
        self.failures.raise_unreported()
        self.callbacks.raise_kept()
        if left:
            self.handle.raise_refusal(f"delivering {left} records")
            raise TransientError(
                f"{left} records did not reach {self.handle.brokers} within {waited:g} s; "
                "they are still queued: flush again, or check the broker"
            )

    @property
    def is_closed(self) -> bool:
        """Return whether the connections are closed."""
        return isinstance(self.client, Closed)

    def close(self) -> None:
        """Take no more records; close the connections where all of them are delivered."""
        closed = Closed("producer")
        self.produce = closed.refuse
        if not len(self.client):
            self.client.close()
            self.client = closed

    def queue_full(self, waited: float) -> QueueFullError:
        """Return the error for a queue that stayed full."""
        return QueueFullError(
            f"the local queue is full and {self.handle.brokers} took no record "
            f"for {waited:g} s; check the broker, or raise queue.buffering.max.messages"
        )

    def _enqueue(self, message: tuple[Any, ...]) -> None:
        try:
            self.produce(*message)
        except BufferError:
            self._wait_for_room(message)
        except KafkaException as problem:
            raise self._not_taken(problem, message[0]) from problem
        except UnicodeEncodeError as problem:
            raise FormatError(f"key or value has no UTF-8 form: {problem.reason}") from problem

    def _not_taken(self, problem: KafkaException, topic: str) -> PenstockError:
        error, doing = problem.args[0], f"writing to topic {topic!r}"
        if error.code() == KafkaError._STATE and self.handle.get("transactional.id"):
            doing = f"{doing}, outside of a transaction (begin one: with producer.transaction())"
        return self.handle.translate(error, doing)

    def _wait_for_room(self, message: tuple[Any, ...]) -> None:
        deadline = monotonic() + self.queue_timeout
        while True:
            if monotonic() >= deadline:
                raise self.queue_full(self.queue_timeout) from None
            self.serve_now(0.05)
            try:
                self.produce(*message)
                return
            except BufferError:
                continue
            except KafkaException as problem:
                raise self._not_taken(problem, message[0]) from problem

    def _noted(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.failures.keep(error, message)
