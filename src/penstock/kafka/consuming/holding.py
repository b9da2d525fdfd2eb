"""What a consumer has in its hands: its client, what it took from it, and how far it handed that out."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any

from confluent_kafka import Consumer as Client
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from penstock.config import ConnectionLike, find_connection
from penstock.errors import PenstockError
from penstock.kafka.closed import Closed
from penstock.kafka.consuming.ahead import Ahead, Handed
from penstock.kafka.consuming.queues import Queues
from penstock.kafka.errors import translate
from penstock.kafka.handle import Handle, OnError, Partition
from penstock.kafka.offsets import NO_GROUP
from penstock.kafka.places import offsets_of

OnCommit = Callable[["PenstockError | None", dict[Partition, int]], None]
"""Told of every commit that was sent without waiting: the error or None, and the offsets."""

_DEFAULTS = {
    "enable.auto.commit": False,
    # A loop over batches starves on librdkafka's own figures: 195 000 records/s against 1.1 million.
    "fetch.queue.backoff.ms": 5,
    "queued.min.messages": 1_000_000,
}
_ALWAYS = {"enable.partition.eof": True}


class Holding:
    """The base of a consumer: the client, what waits here, and who is told of what happens to it."""

    reads_ahead = False
    """Whether records are taken from librdkafka long before somebody asks for them."""

    def __init__(
        self,
        connection: ConnectionLike,
        group: str | None = None,
        *,
        on_error: OnError | None = None,
        on_commit: OnCommit | None = None,
        **overrides: Any,
    ) -> None:
        self.connection = find_connection(connection)
        named = [overrides.pop(name, None) for name in ("group_id", "group.id")]
        self.group: str | None = group or named[0] or named[1] or self.connection.group_id
        self._ended: set[Partition] = set()
        self._on_error = on_error
        self._on_commit = on_commit
        self.ahead = Ahead()
        self.handed = Handed()
        self._queues: Queues | None = None
        self._woken = threading.Event()
        self._handle = Handle(
            self.connection,
            "consumer",
            _DEFAULTS,
            self._heard_error,
            on_commit=self._committed,
            **overrides | self._named(),
        )
        self.callbacks = self._handle.callbacks
        self.stores = bool(self._handle.get("enable.auto.offset.store", True))
        self.keeps_place = self.stores and (self.reads_ahead or self.commits_itself)
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

    # -- what waits here

    @property
    def queues(self) -> Queues:
        """The main queue, the consumer's queue and those of its partitions."""
        if self._queues is None:
            self._queues = Queues(self)  # type: ignore[arg-type]  # every Holding is a Consumer
        return self._queues

    def waiting(self) -> dict[Partition, int]:
        """The first offset that was taken from librdkafka and not handed out, for each such partition."""
        starts = {} if self._queues is None else self._queues.starts()
        # What was taken out of a queue is older than what still waits in it.
        return starts | self.ahead.starts()

    @property
    def at_end(self) -> set[Partition]:
        """The partitions in which every record so far has been handed out."""
        return self._ended - set(self.waiting()) if self._ended else set()

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

    # -- what librdkafka tells

    def heard_of(self, change: str, partitions: list[TopicPartition]) -> None:
        """Take note of partitions that came or went."""
        named = {(place.topic, place.partition) for place in partitions}
        self._ended -= named
        if change != "Assigned":
            self.ahead.drop(named)
        if self._queues is not None:
            self._queues.rebalanced(change, partitions)

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

    # -- how it is made

    def setting(self, key: str, default: Any = None) -> Any:
        """Return one of the settings that the consumer was made with, by librdkafka's name."""
        return self._handle.get(key, default)

    @property
    def commits_itself(self) -> bool:
        """Whether offsets are committed by the clock, without being asked for."""
        return bool(self._handle.get("enable.auto.commit"))

    def _named(self) -> dict[str, Any]:
        if self.group is None:
            return {**_ALWAYS, "group.id": NO_GROUP, "enable.auto.commit": False}
        return {**_ALWAYS, "group.id": self.group}
