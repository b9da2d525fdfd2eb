"""Reads a queue in a task: takes messages, and acknowledges them when Kafka has them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from penstock.errors import TransientError
from penstock.imports.rabbitmq.deliveries import Deliveries, Delivery
from penstock.imports.rabbitmq.message_records import MessageRecords
from penstock.pipeline.importing import Portion, Position, Reader
from penstock.sinks.rabbitmq.amqp_connection import AmqpConnection

if TYPE_CHECKING:
    from penstock.imports.rabbitmq.rabbitmq_import import RabbitMqImport

_CONSUMER = "penstock"
# How long the first message may take: the driver has seen that there are some. The queue is asked again
# after each second, as another consumer may have taken them.
_FIRST, _ASK = 5, 1.0
# A queue that gives nothing for this long is taken for empty.
_IDLE = 0.05
# How long a transaction waits for more messages where they come slowly.
_LONGEST = 1.0
# What is converted at a time: Kafka gets it while the next messages are on their way.
_MOST, _MOST_BYTES = 5_000, 8 * 2**20


class QueueReader(Reader):
    """A consumer of a queue."""

    def __init__(
        self,
        options: RabbitMqImport,
        queue: str,
        position: Position | None,
        connection: AmqpConnection,
    ) -> None:
        self._connection = connection
        self._queue = queue
        self._prefetch = options.unacknowledged
        self._counts = {name: _count(position, name) for name in ("messages", "rejected")}
        self._deliveries = Deliveries(_CONSUMER.encode(), options.max_bytes)
        self._records = MessageRecords(
            queue,
            options.key,
            options.max_bytes,
            properties=options.properties,
            reject=options.bad == "reject",
        )
        self._rejected: list[int] = []
        # The last message that is to be acknowledged: the server knows no tag that it has settled.
        self._last: int | None = None
        self._is_first = True
        self._cancelled = False

    def begin(self) -> None:
        """Begin to consume."""
        connection = self._connection
        connection.call(connection.channel.basic_qos, prefetch_count=self._prefetch)
        connection.channel.add_on_cancel_callback(self._note_cancelled)
        connection.take_frames(self._deliveries.frame)
        connection.call(
            connection.channel.basic_consume,
            self._queue,
            on_message_callback=_never,
            consumer_tag=_CONSUMER,
        )

    def take(self, most: int) -> Iterator[Portion]:
        """Yield messages, until there are enough, or none has come for a moment."""
        most = min(most, self._prefetch)
        if self._is_first:
            self._await_first()
        until = time.monotonic() + _LONGEST
        taken, more = 0, True
        while more and taken < most and time.monotonic() < until:
            wanted = min(_MOST, most - taken)
            messages = self._receive(wanted, until)
            if not messages:
                break
            more = len(messages) == wanted or self._deliveries.waiting != []
            taken += len(messages)
            yield self._portion(messages)

    def settle(self) -> None:
        """Acknowledge what was taken: all of it, or all but what is rejected."""
        channel = self._connection.channel
        self._connection.check("acknowledging")
        for tag in self._rejected:
            channel.basic_reject(tag, requeue=False)
        if self._last is not None:
            channel.basic_ack(self._last, multiple=True)
        self._rejected, self._last = [], None
        self._connection.wait(lambda: not self._connection.unsent, "acknowledging")

    def _receive(self, most: int, until: float) -> list[Delivery]:
        deliveries = self._deliveries
        quiet = time.monotonic() + _IDLE
        while len(deliveries.waiting) < most and deliveries.size < _MOST_BYTES:
            now, before = time.monotonic(), len(deliveries.waiting)
            if now >= quiet or (now >= until and before):
                break
            self._connection.poll(min(quiet, max(until, now)) - now if before else quiet - now)
            self._check()
            if len(deliveries.waiting) > before:
                quiet = time.monotonic() + _IDLE
        return deliveries.take(most)

    def _portion(self, messages: list[Delivery]) -> Portion:
        done = self._records.convert(messages)
        self._rejected += done.rejected
        rejected = set(done.rejected)
        kept = (each.tag for each in reversed(messages) if each.tag not in rejected)
        self._last = next(kept, self._last)
        self._counts["messages"] += len(messages)
        self._counts["rejected"] += len(done.rejected)
        position = {name: count for name, count in self._counts.items() if count}
        return Portion(done.records, position, tuple(done.bad))

    def _check(self) -> None:
        self._connection.check(f"reading the queue {self._queue!r}")
        if self._cancelled:
            raise TransientError(
                f"RabbitMQ has ended the consumer of the queue {self._queue!r}: was it deleted, or is "
                "its node away?"
            )

    def _await_first(self) -> None:
        """Wait for a message. Raise where there are some and none comes: a loop would hide why."""
        self._is_first = False
        for _ in range(_FIRST):
            until = time.monotonic() + _ASK
            while not self._deliveries.waiting and (left := until - time.monotonic()) > 0:
                self._connection.poll(left)
                self._check()
            if self._deliveries.waiting or not (depth := self._connection.depth(self._queue)):
                return
        raise TransientError(
            f"the queue {self._queue!r} has {depth} messages and delivered none within {_FIRST} s: "
            "another consumer is its single active one (x-single-active-consumer) or has a higher "
            "priority, or it is a stream, which this import does not read",
            retry_after=5.0,
        )

    def _note_cancelled(self, _: object) -> None:
        self._cancelled = True


def _count(position: Position | None, name: str) -> int:
    given = (position or {}).get(name, 0)
    return given if isinstance(given, int) else 0


def _never(*_: object) -> None:
    """Stand for the callback that pika wants; the frames are taken before it would be called."""
