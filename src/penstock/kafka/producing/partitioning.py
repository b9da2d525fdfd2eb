"""Choosing partitions in Python: what librdkafka's binding has no call for."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from penstock.errors import ConfigError
from penstock.kafka.handle import Handle
from penstock.kafka.kafka_errors import topic_missing
from penstock.kafka.producing.arguments import ANY_PARTITION

Partitioner = Callable[[str, "bytes | None", int], int]
"""Choose a partition: topic, key, number of partitions -> 0 up to that number."""

# How long the number of partitions is cached; librdkafka itself asks as often.
_FRESH = 300.0


class Partitions:
    """Lets the user's own function choose partitions; knows how many the topics have."""

    def __init__(self, client: Any, handle: Handle, partitioner: Partitioner | None) -> None:
        self._partitioner = partitioner
        self._client = client
        self._handle = handle
        self._known: dict[str, tuple[int, float]] = {}

    @property
    def is_chosen_here(self) -> bool:
        """Return whether the user gave a partitioner."""
        return self._partitioner is not None

    def count(self, topic: str, timeout: float) -> int:
        """Return how many partitions a topic has, asked of the cluster where that is not known."""
        count, until = self._known.get(topic, (0, 0.0))
        if time.monotonic() > until:
            count = self._ask(topic, timeout)
            self._known[topic] = count, time.monotonic() + _FRESH
        return count

    def choose(self, topic: str, key: Any, given: int, timeout: float) -> int:
        """Return the given partition, or the one that the user's function chooses."""
        if given != ANY_PARTITION or self._partitioner is None:
            return given
        count = self.count(topic, timeout)
        chosen = self._partitioner(topic, key.encode() if isinstance(key, str) else key, count)
        if not isinstance(chosen, int) or not 0 <= chosen < count:
            raise ConfigError(
                f"the partitioner chose {chosen!r} for topic {topic!r}; allowed: 0 .. {count - 1}"
            )
        return chosen

    def _ask(self, topic: str, timeout: float) -> int:
        doing = f"looking up the partitions of topic {topic!r}"
        with self._handle.translated(doing):
            metadata = self._client.list_topics(topic, timeout=timeout).topics[topic]
            if metadata.partitions:
                return len(metadata.partitions)
            # The request creates the topic where the broker creates topics by itself; ask a second time.
            everything = self._client.list_topics(timeout=timeout).topics
        if topic in everything and everything[topic].partitions:
            return len(everything[topic].partitions)
        raise topic_missing(topic, list(everything))
