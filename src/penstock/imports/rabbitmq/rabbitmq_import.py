"""The import `rabbitmq`: its options, and which queues have messages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator, Field, field_validator

from penstock.errors import ConfigError, TransientError
from penstock.pipeline.batch import Delivery
from penstock.pipeline.importing import Import, Part, Place, Position, Reader, System
from penstock.sinks.rabbitmq.broker_options import BrokerOptions

if TYPE_CHECKING:
    from penstock.sinks.rabbitmq.amqp_connection import AmqpConnection

_KEYS = "message_id, correlation_id, routing_key, header:NAME, none"
_LARGEST_PREFETCH = 65_535


def _listed(given: Any) -> Any:
    return [given] if isinstance(given, str) else given


class RabbitMqImport(BrokerOptions, Import):
    """Messages of RabbitMQ's queues into topics, acknowledged when Kafka has them.

    At-least-once: no message is lost, whatever is killed when. A crash between Kafka's commit and the
    acknowledgement lets RabbitMQ deliver the last messages again, and they are in the topic twice, the
    second time with the header `rabbitmq.redelivered: true`. Where senders set a `message_id`, it is the
    record's key, and a second pipeline with the step `deduplicate` reads each message once.

    The body is the value, as it is. The headers of the message are headers of the record, nested ones
    (`x-death`) as JSON; its properties are headers that begin with `rabbitmq.`.
    """

    name = "rabbitmq"
    delivers = frozenset({Delivery.AT_LEAST_ONCE})
    why_not = (
        "a crash between Kafka's commit and the acknowledgement makes RabbitMQ deliver messages again; "
        "import them into a topic, and let a second pipeline deduplicate by the message id"
    )
    topic_names = frozenset({"queue"})

    queues: Annotated[list[str], BeforeValidator(_listed)] = Field(
        min_length=1, description="The queues to read; each is read by one task at a time."
    )
    key: str = Field(
        default="message_id",
        description="What is the record's key: `message_id`, `correlation_id`, `routing_key`, "
        "`header:NAME`, or `none`. Messages without it have no key.",
    )
    properties: bool = Field(
        default=True, description="Whether the properties of messages are headers `rabbitmq.*`."
    )
    prefetch: int | None = Field(
        default=None,
        ge=1,
        le=_LARGEST_PREFETCH,
        description="How many messages RabbitMQ may send before one is acknowledged; a transaction has "
        "no more than these. Default: as many as `max_records`.",
    )
    max_bytes: int = Field(
        default=990_000,
        ge=1_000,
        description="The largest message, with its headers, that becomes a record. Raise it together "
        "with `message.max.bytes` of the connection and the topic.",
    )
    bad: Literal["dead_letters", "reject"] = Field(
        default="dead_letters",
        description="What happens to a message that cannot be a record, because it is too large: "
        "`dead_letters` writes its beginning to the topic of the dead letters; `reject` leaves it to "
        "RabbitMQ, whose dead-letter exchange gets it. A queue that has none loses it.",
    )

    @field_validator("queues")
    @classmethod
    def _are_names(cls, queues: list[str]) -> list[str]:
        for queue in queues:
            if not queue or len(queue.encode()) > 255:
                raise ValueError(f"given {queue[:60]!r}; the name of a queue has 1 to 255 bytes")
        if twice := {queue for queue in queues if queues.count(queue) > 1}:
            raise ValueError(f"{sorted(twice)[0]!r} is given twice")
        return queues

    @field_validator("key")
    @classmethod
    def _is_a_property(cls, key: str) -> str:
        known = ("message_id", "correlation_id", "routing_key", "none")
        if key not in known and not (key.startswith("header:") and key != "header:"):
            raise ValueError(f"given {key!r}; allowed: {_KEYS}")
        return key

    @property
    def unacknowledged(self) -> int:
        """Return how many messages may be on their way."""
        return self.prefetch or min(self.max_records, _LARGEST_PREFETCH)

    def system(self) -> System:
        """Return the server as the driver sees it."""
        return RabbitMqSystem(self)


@dataclass(frozen=True)
class QueuePart(Part):
    """One queue."""

    options: RabbitMqImport
    queue: str

    @property
    def place(self) -> Place:
        """Return the queue and its virtual host: the server's address may change."""
        return {"queue": self.queue, "vhost": self.options.vhost or "/"}

    @property
    def names(self) -> Mapping[str, str]:
        """Return the name of the queue."""
        return {"queue": self.queue}

    @contextmanager
    def open(self, position: Position | None) -> Iterator[Reader]:
        """Connect and begin to consume. What was not acknowledged at the end, RabbitMQ delivers again."""
        from penstock.imports.rabbitmq.queue_reader import QueueReader  # noqa: PLC0415 - an extra

        broker = self.options.broker()
        with broker.connection(f"penstock import {self.queue}") as connection:
            reader = QueueReader(self.options, self.queue, position, connection)
            reader.begin()
            yield reader


class RabbitMqSystem(System):
    """Asks how many messages each queue has; one connection, recreated when it was lost."""

    def __init__(self, options: RabbitMqImport) -> None:
        self._options = options
        self._broker = options.broker()
        self._connection: AmqpConnection | None = None
        self._seen: set[str] = set()
        self._broker.connection("penstock import")  # here, and not in a task, pika is missed
        if self._broker.tls:
            self._broker.tls.context()

    def pending(self, _positions: Mapping[str, Position]) -> list[Part]:
        """Return the queues that have messages.

        A queue that was never there is a mistake; one that was deleted is waited for, while the others
        are read.
        """
        found: list[Part] = []
        missing: list[ConfigError] = []
        for queue in self._options.queues:
            try:
                depth = self._depth(queue)
            except ConfigError as error:
                if queue not in self._seen:
                    raise
                missing.append(error)
                continue
            self._seen.add(queue)
            if depth:
                found.append(QueuePart(self._options, queue))
        if missing and not found:
            raise TransientError(f"a queue that was read before is gone: {missing[0]}")
        return found

    def close(self) -> None:
        """Close the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _depth(self, queue: str) -> int:
        connection = self._connection
        if connection is not None:
            # It may have been lost since the last round, by a missed heartbeat: that is no failure.
            connection.poll(0)
            if not connection.is_open:
                self.close()
        if self._connection is None:
            opened = self._broker.connection("penstock import")
            opened.open()
            self._connection = opened  # only now: one that could not be opened is of no use
        try:
            return self._connection.depth(queue)
        except ConfigError:
            self._connection.open_channel()
            raise
        except TransientError:
            self.close()
            raise
