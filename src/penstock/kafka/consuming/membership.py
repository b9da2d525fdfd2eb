"""A consumer's place among others: what it reads, and how it learns of changes."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from confluent_kafka import Consumer as Client
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from penstock.config import Connection
from penstock.errors import ConfigError, PenstockError
from penstock.kafka.closed import Closed
from penstock.kafka.consuming.ahead import Ahead, Handed
from penstock.kafka.consuming.queues import Queues
from penstock.kafka.consuming.rebalance import OnAssigned, OnRevoked, Rebalance
from penstock.kafka.errors import translate
from penstock.kafka.handle import Handle, OnError, Partition, checked
from penstock.kafka.places import aligned, offsets_of, places_of

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
_ALWAYS = {"enable.partition.eof": True}
_COOPERATIVE = "cooperative-sticky"


class Membership:
    """The base of a consumer: the client, what it subscribed to, and what it was given."""

    reads_ahead = False
    """Whether records are taken from librdkafka long before somebody asks for them."""

    def __init__(
        self,
        connection: Connection,
        group: str | None = None,
        *,
        on_error: OnError | None = None,
        on_commit: OnCommit | None = None,
        **overrides: Any,
    ) -> None:
        self.connection = checked(connection)
        self.group: str | None = group or connection.group_id
        self._ended: set[Partition] = set()
        self._on_error = on_error
        self._on_commit = on_commit
        self._subscription: list[str] = []
        self.ahead = Ahead()
        self.handed = Handed()
        self._queues: Queues | None = None
        self._woken = threading.Event()
        self._handle = Handle(
            connection,
            "consumer",
            _DEFAULTS,
            self._heard_error,
            on_commit=self._committed,
            **overrides | self._named(),
        )
        self.callbacks = self._handle.callbacks
        self.stores = bool(self._handle.get("enable.auto.offset.store", True))
        self.keeps_place = self.stores and (self.reads_ahead or self._commits_itself)
        if self.keeps_place:
            # librdkafka would store what it gave to us; what counts is what we gave to the caller.
            self._handle.put("enable.auto.offset.store", False)
        with self._handle.translated("making a consumer"):
            self._client: Any = Client(self._handle.settings())

    def close(self) -> None:
        """Leave the group at once and let go of the connections."""
        try:
            self.store_handed_out()
        finally:
            # The callbacks of a revocation may still use the client.
            client: Any = self._client
            client.close()
            self._client = Closed("consumer")
        self.callbacks.raise_kept()

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
        self.require_group("subscriptions")
        names = _topic_names(topics)
        told = Rebalance(self, on_assigned, on_revoked, on_lost)  # type: ignore[arg-type]
        run = self.callbacks.run
        with self._handle.translated(f"subscribing to {', '.join(names)}"):
            self._client.subscribe(
                names,
                on_assign=partial(run, told.assigned),
                on_revoke=partial(run, told.revoked),
                on_lost=partial(run, told.lost),
            )
        self._subscription = names

    def unsubscribe(self) -> None:
        """Read nothing more: ends a subscription, and an assignment by hand too."""
        self.store_handed_out()
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
        places = offsets_of(wanted)
        self.store_handed_out()
        self._start_over()
        with self._handle.translated("assigning partitions"):
            self._client.assign(places)

    def unassign(self) -> None:
        """Give the partitions back, whether they came by `assign` or by `subscribe`."""
        self.store_handed_out()
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
        places = places_of(partitions)
        with self._handle.translated("pausing partitions"):
            self._put_back(places)
            self._client.pause(places)

    def hold(self, partitions: Iterable[Partition]) -> None:
        """Fetch no more from these partitions, and keep what waits here of them."""
        with self._handle.translated("pausing partitions"):
            self._client.pause(places_of(partitions))

    def resume(self, partitions: Iterable[Partition]) -> None:
        """Fetch from these partitions again."""
        with self._handle.translated("resuming partitions"):
            self._client.resume(places_of(partitions))

    # -- who this is

    @property
    def member_id(self) -> str | None:
        """This member's name in the group; None until the group has taken it in."""
        found: str | None = self._client.memberid()
        return found or None

    def group_metadata(self) -> Any:
        """What a transaction needs to commit this consumer's offsets."""
        self.require_group("a transaction's offsets")
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

    @property
    def at_end(self) -> set[Partition]:
        """The partitions in which every record so far has been handed out."""
        return self._ended - set(self.waiting()) if self._ended else set()

    # -- what librdkafka tells

    def heard_of(self, change: str, partitions: list[TopicPartition]) -> None:
        """Take note of partitions that came or went."""
        named = {(place.topic, place.partition) for place in partitions}
        self._ended -= named
        if change != "Assigned":
            self.ahead.drop(named)
        if self._queues is not None:
            self._queues.rebalanced(change, partitions)

    @property
    def _commits_itself(self) -> bool:
        return bool(self._handle.get("enable.auto.commit"))

    def _named(self) -> dict[str, Any]:
        if self.group is None:
            return {**_ALWAYS, "group.id": _NO_GROUP, "enable.auto.commit": False}
        return {**_ALWAYS, "group.id": self.group}

    def require_group(self, what: str) -> None:
        """Raise where this consumer has no group under which something could be kept."""
        if self.group is None:
            raise ConfigError(f"{what} need a consumer group: give Consumer(..., group=NAME)")

    def store_handed_out(self) -> None:
        """Let librdkafka know what was handed out, but for partitions that went away meanwhile."""
        if not self.keeps_place or not (handed := self.handed.take()):
            return
        try:
            self._client.store_offsets(offsets=offsets_of(handed))
        except KafkaException as problem:
            if problem.args[0].code() != KafkaError._STATE:
                raise self._handle.translate(problem.args[0], "storing offsets") from problem

    def forget_waiting(self, partitions: Iterable[Partition]) -> None:
        """Drop what was taken of these partitions and not handed out."""
        gone = set(partitions)
        self._ended -= gone
        self.ahead.drop(gone)
        if self._queues is not None:
            self._queues.forget(gone)

    def _start_over(self) -> None:
        self.forget_waiting(self._ended | set(self.waiting()))

    def _put_back(self, places: Iterable[TopicPartition]) -> None:
        """Have librdkafka read once more what waits here."""
        starts = self.waiting()
        waiting = {(place.topic, place.partition) for place in places} & set(starts)
        for where in waiting:
            self._client.seek(TopicPartition(*where, starts[where]))
        self.forget_waiting(waiting)

    def _committed(self, error: KafkaError | None, partitions: list[TopicPartition]) -> None:
        doing = f"committing for group {self.group!r}"
        problem = None
        if error is not None:
            problem = translate(error, doing, self._handle.brokers, self._handle.seen)
        if self._on_commit is not None:
            offsets = {(place.topic, place.partition): place.offset for place in partitions}
            self.callbacks.run(self._on_commit, problem, offsets)
        if self._queues is not None:
            self._queues.committed(problem, partitions)

    def _heard_error(self, level: str, name: str, message: str) -> None:
        if self._on_error is not None:
            self.callbacks.run(self._on_error, level, name, message)
        if self._queues is not None:
            self._queues.failed(name, message)


def _topic_names(topics: str | re.Pattern[str] | Iterable[str]) -> list[str]:
    if isinstance(topics, re.Pattern):
        if topics.flags & ~re.UNICODE:
            raise ConfigError(
                f"the flags of {topics!r} are not allowed: librdkafka reads the pattern, without them"
            )
        return [f"^({topics.pattern.removeprefix('^').removesuffix('$')})$"]
    names = (
        [topics] if isinstance(topics, str) or not isinstance(topics, Iterable) else list(topics)
    )
    if not names or not all(isinstance(name, str) and name for name in names):
        raise ConfigError(
            f"topics {topics!r} are not allowed; allowed: a name, a list of names, or a pattern"
        )
    return names
