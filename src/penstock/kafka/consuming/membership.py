"""A consumer's place among others: what it reads, and how it learns of changes."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from confluent_kafka import Consumer as Client
from confluent_kafka import KafkaError, TopicPartition

from penstock.config import Connection
from penstock.errors import ConfigError, PenstockError
from penstock.kafka.consuming.ahead import Ahead
from penstock.kafka.consuming.queues import Queues
from penstock.kafka.consuming.rebalance import OnAssigned, OnRevoked, Rebalance
from penstock.kafka.errors import translate
from penstock.kafka.handle import Handle, OnError, Partition
from penstock.kafka.places import aligned

OnCommit = Callable[["PenstockError | None", dict[Partition, int]], None]
"""Told of every commit that was sent without waiting: the error or None, and the offsets."""

# librdkafka wants a group even from a consumer that only assigns; nothing is committed under it.
_NO_GROUP = "penstock-without-group"
_DEFAULTS = {
    "enable.auto.commit": False,
    # A loop over batches starves on librdkafka's own figures: 195 000 records/s against 1.1 million.
    "fetch.queue.backoff.ms": 5,
    "queued.min.messages": 1_000_000,
}
_COOPERATIVE = "cooperative-sticky"


class Membership:
    """The base of a consumer: the client, what it subscribed to, and what it was given."""

    def __init__(
        self,
        connection: Connection,
        group: str | None = None,
        *,
        on_error: OnError | None = None,
        on_commit: OnCommit | None = None,
        **overrides: Any,
    ) -> None:
        self.connection = connection
        self.group: str | None = group or connection.group_id
        self.at_end: set[Partition] = set()
        self._on_error = on_error
        self._on_commit = on_commit
        self._subscription: list[str] = []
        self.ahead = Ahead()
        self._queues: Queues | None = None
        self._woken = threading.Event()
        overrides |= {"group.id": self.group or _NO_GROUP, "enable.partition.eof": True}
        self._handle = Handle(
            connection,
            "consumer",
            _DEFAULTS,
            self._heard_error,
            on_commit=self._committed,
            **overrides,
        )
        with self._handle.translated("making a consumer"):
            self._client: Any = Client(self._handle.settings())

    def close(self) -> None:
        """Leave the group at once and let go of the connections."""
        self._client.close()

    def wakeup(self) -> None:
        """End the wait of another thread that polls: there it raises `WakeupError`.

        Where none waits, the next poll ends at once. This is the one method for other threads.
        """
        self._woken.set()

    # -- topics, shared with the group

    def subscribe(
        self,
        topics: str | re.Pattern[str] | Iterable[str],
        on_assigned: OnAssigned | None = None,
        on_revoked: OnRevoked | None = None,
        on_lost: OnRevoked | None = None,
    ) -> None:
        """Share topics with the other members of the group, instead of what was subscribed before.

        A pattern is a compiled one, which must match a name as a whole, or a text that starts with
        '^'. The callbacks get this consumer and the partitions; `on_assigned` may give back offsets to
        begin at; `on_revoked` may commit; `on_lost` is told when that would be too late.
        """
        if self.group is None:
            raise ConfigError("subscribe needs a consumer group: give Consumer(..., group=NAME)")
        names = _topic_names(topics)
        told = Rebalance(self, on_assigned, on_revoked, on_lost)  # type: ignore[arg-type]
        with self._handle.translated(f"subscribing to {', '.join(names)}"):
            self._client.subscribe(
                names, on_assign=told.assigned, on_revoke=told.revoked, on_lost=told.lost
            )
        self._subscription = names

    def unsubscribe(self) -> None:
        """Read nothing more: ends a subscription, and an assignment by hand too."""
        with self._handle.translated("unsubscribing"):
            self._client.unsubscribe()
            self._client.unassign()
        self._subscription = []
        self._start_over()

    @property
    def subscription(self) -> list[str]:
        """What was subscribed to; patterns start with '^'."""
        return list(self._subscription)

    # -- partitions, by hand

    def assign(
        self, topics: Mapping[Partition, int] | Any, partitions: Any = None, offsets: Any = None
    ) -> None:
        """Read exactly these partitions: a mapping to offsets, or three values or lists.

        ::

            consumer.assign({("trades", 0): 3000})
            consumer.assign("trades", 0, 3000)
            consumer.assign(["trades", "trades"], [0, 1], [3000, 0])
        """
        wanted: Mapping[Partition, int] = (
            topics if isinstance(topics, Mapping) else aligned(topics, partitions, offsets)
        )
        self._start_over()
        with self._handle.translated("assigning partitions"):
            self._client.assign([TopicPartition(*where, at) for where, at in wanted.items()])

    def unassign(self) -> None:
        """Give the partitions back, whether they came by `assign` or by `subscribe`."""
        with self._handle.translated("giving partitions back"):
            self._client.unassign()
        self._start_over()

    @property
    def assignment(self) -> set[Partition]:
        """The partitions that this consumer reads now."""
        with self._handle.translated("reading the assignment"):
            return {(place.topic, place.partition) for place in self._client.assignment()}

    def pause(self, partitions: Iterable[Partition]) -> None:
        """Fetch no more from these partitions, and stay in the group."""
        places = [TopicPartition(*where) for where in partitions]
        with self._handle.translated("pausing partitions"):
            self._put_back(places)
            self._client.pause(places)

    def resume(self, partitions: Iterable[Partition]) -> None:
        """Fetch from these partitions again."""
        with self._handle.translated("resuming partitions"):
            self._client.resume([TopicPartition(*where) for where in partitions])

    # -- who this is

    @property
    def member_id(self) -> str | None:
        """This member's name in the group; None until the group has taken it in."""
        found: str | None = self._client.memberid()
        return found or None

    def group_metadata(self) -> Any:
        """What a transaction needs to commit this consumer's offsets."""
        return self._client.consumer_group_metadata()

    @property
    def cooperative(self) -> bool:
        """Whether partitions come and go one by one, and not all at once."""
        strategy = str(self._handle.get("partition.assignment.strategy", ""))
        return _COOPERATIVE in strategy or self._handle.get("group.protocol") == "consumer"

    @property
    def queues(self) -> Queues:
        """The main queue, the consumer's queue and those of its partitions."""
        if self._queues is None:
            self._queues = Queues(self)  # type: ignore[arg-type]  # every Membership is a Consumer
        return self._queues

    def waiting(self) -> dict[Partition, int]:
        """The first offset that was taken from librdkafka and not handed out, for each such partition."""
        return self.ahead.starts() | ({} if self._queues is None else self._queues.starts())

    # -- what librdkafka tells

    def heard_of(self, change: str, partitions: list[TopicPartition]) -> None:
        """Take note of partitions that came or went."""
        named = {(place.topic, place.partition) for place in partitions}
        self.at_end -= named
        if change != "Assigned" and not self._commits_ahead:
            self.ahead.drop(named)
        if self._queues is not None:
            self._queues.rebalanced(change, partitions)

    @property
    def _commits_ahead(self) -> bool:
        # librdkafka then commits at a revocation what it gave to us: nobody else will read it.
        stores = self._handle.get("enable.auto.offset.store", True)
        return bool(stores and self._handle.get("enable.auto.commit"))

    def _start_over(self) -> None:
        self.at_end.clear()
        self.ahead.messages.clear()

    def _put_back(self, places: Iterable[TopicPartition]) -> None:
        """Have librdkafka read once more what waits here."""
        starts = self.ahead.starts()
        waiting = {(place.topic, place.partition) for place in places} & set(starts)
        for where in waiting:
            self._client.seek(TopicPartition(*where, starts[where]))
        self.ahead.drop(waiting)

    def _committed(self, error: KafkaError | None, partitions: list[TopicPartition]) -> None:
        doing = f"committing for group {self.group!r}"
        problem = None
        if error is not None:
            problem = translate(error, doing, self._handle.brokers, self._handle.seen)
        if self._on_commit is not None:
            offsets = {(place.topic, place.partition): place.offset for place in partitions}
            self._on_commit(problem, offsets)
        if self._queues is not None:
            self._queues.committed(problem, partitions)

    def _heard_error(self, level: str, name: str, message: str) -> None:
        if self._on_error is not None:
            self._on_error(level, name, message)
        if self._queues is not None:
            self._queues.failed(name, message)


def _topic_names(topics: str | re.Pattern[str] | Iterable[str]) -> list[str]:
    if isinstance(topics, re.Pattern):
        return [f"^({topics.pattern.removeprefix('^').removesuffix('$')})$"]
    return [topics] if isinstance(topics, str) else list(topics)
