"""Choosing partitions in Python: what librdkafka's binding has no call for."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from penstock.errors import ConfigError
from penstock.kafka.errors import topic_missing
from penstock.kafka.handle import Handle

Partitioner = Callable[[str, "bytes | None", int], int]
"""Chooses a partition: topic, key, number of partitions -> 0 up to that number."""

# How long the number of partitions is believed; librdkafka itself asks as often.
_FRESH = 300.0


class Partitions:
    """The number of partitions of the topics that are written to, asked of the cluster when needed."""

    def __init__(self, client: Any, handle: Handle) -> None:
        self._client = client
        self._handle = handle
        self._known: dict[str, tuple[int, float]] = {}

    def count(self, topic: str, timeout: float) -> int:
        """How many partitions a topic has."""
        count, until = self._known.get(topic, (0, 0.0))
        if time.monotonic() > until:
            count = self._ask(topic, timeout)
            self._known[topic] = count, time.monotonic() + _FRESH
        return count

    def choose(self, chooser: Partitioner, topic: str, key: Any, timeout: float) -> int:
        """Let the user's own function choose, and check what it chose."""
        count = self.count(topic, timeout)
        chosen = chooser(topic, key.encode() if isinstance(key, str) else key, count)
        if not isinstance(chosen, int) or not 0 <= chosen < count:
            raise ConfigError(
                f"the partitioner chose {chosen!r} for topic {topic!r}; allowed: 0 .. {count - 1}"
            )
        return chosen

    def _ask(self, topic: str, timeout: float) -> int:
        doing = f"looking up the partitions of topic {topic!r}"
        with self._handle.translated(doing):
            told = self._client.list_topics(topic, timeout=timeout).topics[topic]
            if told.partitions:
                return len(told.partitions)
            # Asking makes the topic where the broker makes topics by itself; look a second time.
            everything = self._client.list_topics(timeout=timeout).topics
        if topic in everything and everything[topic].partitions:
            return len(everything[topic].partitions)
        raise topic_missing(topic, list(everything))
