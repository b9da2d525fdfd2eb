"""What happens when a group shares its partitions out anew: the user's callbacks, and ours."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from confluent_kafka import TopicPartition

from penstock.kafka.handle import Partition

if TYPE_CHECKING:
    from penstock.kafka.consuming.consumer import Consumer

OnAssigned = Callable[["Consumer", list[Partition]], "Mapping[Partition, int] | None"]
"""Told of partitions that came; may give back the offsets to begin at."""
OnRevoked = Callable[["Consumer", list[Partition]], None]
"""Told of partitions that go: the last chance to commit, or, where they are lost, too late for it."""


class Rebalance:
    """The three callbacks of one subscription, as librdkafka calls them."""

    def __init__(
        self,
        consumer: Consumer,
        on_assigned: OnAssigned | None,
        on_revoked: OnRevoked | None,
        on_lost: OnRevoked | None,
    ) -> None:
        self._consumer = consumer
        self._on_assigned = on_assigned
        self._on_revoked = on_revoked
        # A lost partition is a revoked one for those who do not ask for the difference.
        self._on_lost = on_lost or on_revoked

    def assigned(self, client: Any, partitions: list[TopicPartition]) -> None:
        """Partitions came."""
        self._consumer.heard_of("Assigned", partitions)
        if self._on_assigned is None:
            return
        run = self._consumer.callbacks.run
        starts = run(self._on_assigned, self._consumer, _names(partitions))
        if starts:
            for place in partitions:
                place.offset = starts.get((place.topic, place.partition), place.offset)
            take = client.incremental_assign if self._consumer.cooperative else client.assign
            with self._consumer._handle.translated("beginning at the offsets of on_assigned"):
                take(partitions)

    def revoked(self, _client: Any, partitions: list[TopicPartition]) -> None:
        """Partitions go to another member."""
        if self._on_revoked is not None:
            self._consumer.callbacks.run(self._on_revoked, self._consumer, _names(partitions))
        self._consumer.heard_of("Revoked", partitions)

    def lost(self, _client: Any, partitions: list[TopicPartition]) -> None:
        """Partitions are gone already: this member was away for too long."""
        if self._on_lost is not None:
            self._consumer.callbacks.run(self._on_lost, self._consumer, _names(partitions))
        self._consumer.heard_of("Lost", partitions)


def _names(partitions: list[TopicPartition]) -> list[Partition]:
    return [(place.topic, place.partition) for place in partitions]
