"""The import `jms`: its options, and which destinations have messages."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import Field, field_validator, model_validator
from typing_extensions import Self

from penstock.errors import PenstockError
from penstock.pipeline.batch import Delivery
from penstock.pipeline.importing import Import, Part, Place, Position, Reader, System
from penstock.sinks.jms.jms_broker import Broker, BrokerOptions

if TYPE_CHECKING:
    from penstock.sinks.jms.amqp_connection import AmqpConnection

_KEYS = ("message_id", "correlation_id", "group_id", "none")
# A connection that was not used for longer is not used again: the broker may have ended it.
_FRESH = 10.0


class JmsImport(BrokerOptions, Import):
    """Messages of queues and topics of a JMS broker, over AMQP 1.0.

    At-least-once: a message is acknowledged after Kafka has committed its record. After a crash between
    the two, the broker delivers the message again, and its record is in the topic twice: with the same
    key, where `key` is `message_id`, so that the step `deduplicate` makes it one.

    Text becomes UTF-8 bytes, bytes stay as they are, map messages become JSON objects, stream messages
    JSON arrays, messages without a body null. Object messages and malformed ones are dead letters. A
    topic is read through a durable subscription, which exists from the first start on.
    """

    name = "jms"
    delivers = frozenset({Delivery.AT_LEAST_ONCE})
    why_not = (
        "a broker delivers a message again if the process dies between Kafka's commit and the "
        "acknowledgement; with 'key: message_id', the step 'deduplicate' removes the second one"
    )
    topic_names = frozenset({"destination"})

    queues: tuple[str, ...] = Field(default=(), description="The queues to read.")
    topics: dict[str, str] = Field(
        default={},
        description="The topics to read, each with the name of its durable subscription, as in "
        "`{prices: prices-to-kafka}`.",
    )
    client_id: str | None = Field(
        default=None,
        description="The JMS client id to which the subscriptions belong; needed for topics that are not "
        "`shared`.",
    )
    shared: bool = Field(
        default=False,
        description="Whether other programs may share the subscriptions, and each message goes to one of "
        "them.",
    )
    selector: str | None = Field(
        default=None,
        description="JMS selector: only messages whose properties match are read, as in "
        "`region = 'EU' AND amount > 100`.",
    )
    key: str = Field(
        default="message_id",
        description="The record's key: `message_id`, `correlation_id`, `group_id`, `property:NAME` or "
        "`none`.",
    )
    headers: bool = Field(
        default=True,
        description="Whether properties and JMS headers (`jms.message_id` and others) become headers.",
    )
    prefetch: int = Field(
        default=1000,
        ge=1,
        le=100_000,
        description="The most messages that the broker sends ahead (credit).",
    )
    max_bytes: int = Field(
        default=64 * 2**20,
        ge=1,
        description="The largest message, in bytes; a larger one is a dead letter without its body.",
    )

    @field_validator("queues", mode="before")
    @classmethod
    def _one_or_several(cls, given: object) -> object:
        return (given,) if isinstance(given, str) else given

    @field_validator("queues")
    @classmethod
    def _are_names(cls, queues: tuple[str, ...]) -> tuple[str, ...]:
        for queue in queues:
            _require_name("queue", queue)
        if len({*queues}) < len(queues):
            raise ValueError("a queue is named twice")
        return queues

    @field_validator("topics")
    @classmethod
    def _have_subscriptions(cls, topics: dict[str, str]) -> dict[str, str]:
        for topic, subscription in topics.items():
            _require_name("topic", topic)
            _require_name("subscription", subscription)
        if len({*topics.values()}) < len(topics):
            raise ValueError("a name of a subscription is given twice: each topic needs its own")
        return topics

    @field_validator("key")
    @classmethod
    def _is_a_key(cls, key: str) -> str:
        if key in _KEYS or re.fullmatch(r"property:.+", key):
            return key
        raise ValueError(
            f"{key!r} cannot be the key; allowed: {', '.join(_KEYS)}, or property:NAME"
        )

    @model_validator(mode="after")
    def _name_something(self) -> Self:
        if not self.queues and not self.topics:
            raise ValueError("name what to read: 'queues', 'topics' or both")
        if self.topics and not self.shared and not self.client_id:
            raise ValueError(
                "'topics' need 'client_id', to which their durable subscriptions belong, or "
                "'shared: true'"
            )
        if self.selector is not None and not self.selector.strip():
            raise ValueError("'selector' is empty; leave it out to read every message")
        if not self.topics and (self.client_id or self.shared):
            raise ValueError("'client_id' and 'shared' are for 'topics', and there are none")
        return self

    def system(self) -> System:
        """Return the broker as the driver sees it."""
        return JmsSystem(self)

    def parts(self) -> list[JmsPart]:
        """Return all destinations."""
        queues = [JmsPart(self, queue) for queue in self.queues]
        return queues + [JmsPart(self, *each) for each in self.topics.items()]


@dataclass(frozen=True)
class JmsPart(Part):
    """A queue, or a topic with its subscription."""

    options: JmsImport
    destination: str
    subscription: str | None = None

    @property
    def place(self) -> Place:
        """Return the destination; not the broker, which may move."""
        if self.subscription is None:
            return {"queue": self.destination}
        return {"topic": self.destination, "subscription": self.subscription}

    @property
    def names(self) -> Mapping[str, str]:
        """Return the destination's name."""
        return {"destination": self.destination}

    @contextmanager
    def open(self, position: Position | None) -> Iterator[Reader]:
        """Connect, and begin to receive when records are taken."""
        own = self.options.client_id if self.subscription else None
        connection = self.options.broker().connect(own)
        # Imported here: an extra.
        from penstock.imports.jms.jms_reader import JmsReader  # noqa: PLC0415

        try:
            reader = JmsReader(connection, self, position)
            try:
                yield reader
            finally:
                reader.release()
        finally:
            connection.close()


class JmsSystem(System):
    """Which destinations have messages: queues are browsed, subscriptions can only be tried.

    AMQP 1.0 has no request for the depth of a queue. A browser gets a copy of the first message without
    taking it from anyone: one credit, two round trips, and at most one message is sent. A subscription
    cannot be browsed, so its task looks itself, at each `poll`.
    """

    def __init__(self, options: JmsImport) -> None:
        self._options = options
        self._broker: Broker = options.broker()
        self._connection: AmqpConnection | None = None

    def pending(self, _positions: Mapping[str, Position]) -> list[Part]:
        """Return the queues that have a message for this import, and all topics."""
        try:
            return [part for part in self._options.parts() if part.subscription or self._has(part)]
        except PenstockError:
            self.close()
            raise

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _has(self, part: JmsPart) -> bool:
        connection = self._fresh()
        # After the connection, which says what to install where this cannot be imported.
        from penstock.imports.jms.jms_reader import has_message  # noqa: PLC0415

        return has_message(connection, part)

    def _fresh(self) -> AmqpConnection:
        """Return a connection that the broker has not ended for being idle."""
        if self._connection and time.monotonic() - self._connection.used > _FRESH:
            self._connection.drop()
            self._connection = None
        if self._connection is None:
            self._connection = self._broker.connect()
        return self._connection


def _require_name(what: str, name: str) -> None:
    if not name.strip() or name != name.strip() or any(ord(letter) < 32 for letter in name):
        raise ValueError(f"{name!r} cannot be the name of a {what}")
