"""Reading records: by group (subscribe) or by hand (assign), one or many at a time."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any

from confluent_kafka import Consumer as Client
from confluent_kafka import KafkaError, TopicPartition

from penstock.config import Connection
from penstock.errors import ConfigError
from penstock.kafka.errors import translate
from penstock.kafka.handle import Handle, Partition
from penstock.record import Record

# librdkafka wants a group even from a consumer that only assigns; nothing is committed under it.
_NO_GROUP = "penstock-without-group"
_DEFAULTS = {
    "enable.auto.commit": False,
    # A loop over batches starves on librdkafka's own figures: 195 000 records/s against 1.1 million.
    "fetch.queue.backoff.ms": 5,
    "queued.min.messages": 1_000_000,
}


class Consumer:
    """Read records from topics.

    The group is the one given, or the connection's; without one the consumer can only `assign`.
    Nothing is committed by itself unless `enable.auto.commit` says so. `at_end` has the partitions
    in which every record so far has been handed out.

    Examples
    --------
    ::

        with Consumer(connection) as consumer:
            consumer.assign({("trades", 0): 0})
            for record in consumer.poll_batch(100):
                print(record.offset, record.value)
    """

    def __init__(self, connection: Connection, group: str | None = None, **overrides: Any) -> None:
        self.group: str | None = group or connection.librdkafka().get("group.id")
        overrides |= {"group.id": self.group or _NO_GROUP, "enable.partition.eof": True}
        self._handle = Handle(connection, "consumer", _DEFAULTS, **overrides)
        self.at_end: set[Partition] = set()
        self._heard = time.monotonic()
        self._client: Any = Client(self._handle.settings())

    def __enter__(self) -> Consumer:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def subscribe(self, topics: str | Iterable[str]) -> None:
        """Share the topics with the other members of the group; a pattern starts with '^'."""
        if self.group is None:
            raise ConfigError("subscribe needs a consumer group: give Consumer(..., group=NAME)")
        names = [topics] if isinstance(topics, str) else list(topics)
        with self._handle.translated(f"subscribing to {', '.join(names)}"):
            self._client.subscribe(names)

    def assign(self, offsets: Mapping[Partition, int]) -> None:
        """Read exactly these partitions, each from the given offset."""
        self.at_end.clear()
        with self._handle.translated("assigning partitions"):
            self._client.assign([TopicPartition(*where, at) for where, at in offsets.items()])

    def pause(self, partitions: Iterable[Partition]) -> None:
        """Fetch no more from these partitions."""
        with self._handle.translated("pausing partitions"):
            self._client.pause([TopicPartition(*where) for where in partitions])

    @property
    def assignment(self) -> set[Partition]:
        """The partitions that this consumer reads now."""
        return {(tp.topic, tp.partition) for tp in self._client.assignment()}

    def poll(self, timeout_ms: int = 1000) -> Record | None:
        """The next record, or None when none came in time."""
        deadline = time.monotonic() + timeout_ms / 1000
        while True:
            left = max(0.0, deadline - time.monotonic())
            if records := self.poll_batch(1, int(left * 1000)):
                return records[0]
            if left == 0:
                return None

    def poll_batch(self, most: int = 1000, timeout_ms: int = 1000) -> list[Record]:
        """Up to `most` records; fewer when the time is up, or when a partition's end was reached."""
        with self._handle.translated("reading records"):
            messages = self._client.consume(most, timeout_ms / 1000)
        if messages:
            self._heard = time.monotonic()
        taken = (self._taken(message) for message in messages)
        return [record for record in taken if record is not None]

    def raise_if_away(self, patience: float = 10.0) -> None:
        """Raise when the brokers have been unreachable, and silent for `patience` seconds."""
        if not self._handle.seen or time.monotonic() - self._heard < patience:
            return
        error = self._handle.seen[-1]
        raise translate(error, "reading records", self._handle.brokers, self._handle.seen)

    def commit(self, offsets: Mapping[Partition, int] | None = None) -> None:
        """Commit the given offsets, or the place behind everything that was handed out."""
        what: dict[str, Any] = {"asynchronous": False}
        if offsets is not None:
            what["offsets"] = [TopicPartition(*where, at) for where, at in offsets.items()]
        with self._handle.translated(f"committing for group {self.group!r}"):
            self._client.commit(**what)

    def close(self) -> None:
        """Leave the group at once and let go of the connections."""
        self._client.close()

    def _taken(self, message: Any) -> Record | None:
        error = message.error()
        if error is not None:
            self._not_a_record(error, message)
            return None
        where = (message.topic(), message.partition())
        if self.at_end:
            self.at_end.discard(where)
        kind, timestamp = message.timestamp()
        return Record(
            *where,
            offset=message.offset(),
            key=message.key(),
            value=message.value(),
            timestamp=timestamp if kind else None,
            headers=tuple(message.headers() or ()),
        )

    def _not_a_record(self, error: KafkaError, message: Any) -> None:
        if error.code() == KafkaError._PARTITION_EOF:
            self.at_end.add((message.topic(), message.partition()))
            return
        if error.retriable() or error.code() in _PASSING:
            return
        raise translate(error, "reading records", self._handle.brokers, self._handle.seen)


# librdkafka heals these by itself; the records come when the broker is back.
_PASSING = frozenset({KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._TIMED_OUT})
