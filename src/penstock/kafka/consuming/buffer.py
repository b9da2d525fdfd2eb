"""Records that a consumer took from librdkafka and did not deliver yet: never lost, and never committed.

A poll may end half way (a wakeup, an error, a partition that goes to another member) with part of its
batch in hand, and the asyncio consumer reads ahead. For librdkafka those records are done with.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition

from penstock.kafka.consuming.consumer_client import ConsumerClient
from penstock.kafka.handle import Partition
from penstock.kafka.partitions import offsets_of

if TYPE_CHECKING:
    from penstock.kafka.consuming.queues import Router


class Buffer:
    """Messages that wait to be delivered, oldest first, and the offsets up to which others were.

    `ended` are the partitions whose end librdkafka reached; `router` fills the queues once a caller asked
    for them: messages wait there too.
    """

    def __init__(self, client: ConsumerClient) -> None:
        self.messages: list[Message] = []
        self.ended: set[Partition] = set()
        self.router: Router | None = None
        self._client = client
        self._delivered: dict[Partition, int] = {}

    def deliver(self, max_records: int) -> list[Message]:
        """Return the oldest messages: from now on they are the caller's."""
        messages = self.messages
        if len(messages) <= max_records:
            self.messages = []
        else:
            self.messages = messages[max_records:]
            messages = messages[:max_records]
        self.note_delivered(messages)
        return messages

    def note_delivered(self, messages: Iterable[Message]) -> None:
        """Remember the offset after each of these, for the next commit."""
        if self._client.tracks_delivery:
            for message in messages:
                self._delivered[partition_of(message)] = int(message.offset() or 0) + 1

    def store_delivered(self) -> None:
        """Store the offsets of delivered records in librdkafka, but for partitions that went away."""
        if not self._delivered:
            return
        delivered, self._delivered = self._delivered, {}
        self._client.bounded.require_free("storing offsets")
        try:
            self._client.raw.store_offsets(offsets=offsets_of(delivered))
        except KafkaException as problem:
            if problem.args[0].code() != KafkaError._STATE:
                raise self._client.handle.translate(problem.args[0], "storing offsets") from problem

    def starts(self) -> dict[Partition, int]:
        """Return the first offset that was taken and not delivered, for each partition that has one."""
        queued = {} if self.router is None else self.router.starts()
        # What was taken out of a queue is older than what still waits in it.
        taken = {partition_of(each): int(each.offset() or 0) for each in reversed(self.messages)}
        return queued | taken

    def drop(self, partitions: Iterable[Partition]) -> None:
        """Forget partitions: another member reads them now, or this one reads them again."""
        gone = set(partitions)
        self.ended -= gone
        # In place: a poll that is under way looks at this very list.
        self.messages[:] = [each for each in self.messages if partition_of(each) not in gone]
        if self.router is not None:
            self.router.drop(gone)

    def clear(self) -> None:
        """Forget all partitions."""
        self.drop(self.ended | set(self.starts()))

    def put_back(self, places: Iterable[TopicPartition]) -> None:
        """Make librdkafka read again what waits here of these partitions."""
        starts = self.starts()
        waiting = {(place.topic, place.partition) for place in places} & set(starts)
        for where in waiting:
            self._client.raw.seek(TopicPartition(*where, starts[where]))
        self.drop(waiting)

    def rebalanced(self, change: str, places: list[TopicPartition]) -> None:
        """Take note of partitions that were assigned, revoked or lost."""
        named = {(place.topic, place.partition) for place in places}
        if change == "Assigned":
            self.ended -= named
        else:
            self.drop(named)
        if self.router is not None:
            self.router.rebalanced(change, places)


def partition_of(message: Message) -> Partition:
    """Return the partition of a message."""
    return str(message.topic()), int(message.partition() or 0)
