"""Existing topics and partitions with their offsets, and helpful errors for missing ones."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import partial
from typing import Any

from confluent_kafka import KafkaError
from confluent_kafka import TopicCollection as Names

from penstock.errors import ConfigError, PenstockError
from penstock.kafka.admin.admin_calls import AdminCalls
from penstock.kafka.admin.admin_model import TopicInfo
from penstock.kafka.handle import Partition
from penstock.kafka.kafka_errors import code_of, topic_missing
from penstock.kafka.offsets import EARLIEST, LATEST
from penstock.retry import retry

# How the names of Kafka's own topics begin.
_INTERNAL = "__"
# There is no such partition, or it was not there when its leader was last asked for.
_MISSING = {
    KafkaError._UNKNOWN_TOPIC,
    KafkaError._UNKNOWN_PARTITION,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
}


def list_topics(ask: AdminCalls) -> list[TopicInfo]:
    """Return every topic by name."""
    return [
        TopicInfo(
            name,
            len(topic.partitions),
            max((len(p.replicas) for p in topic.partitions.values()), default=0),
            name.startswith(_INTERNAL),
        )
        for name, topic in sorted(ask.metadata("listing the topics").topics.items())
    ]


def partitions_of(ask: AdminCalls, topics: Iterable[str] | re.Pattern[str]) -> list[Partition]:
    """Return every partition of the given topics, or of the topics that match a pattern as a whole."""
    if isinstance(topics, re.Pattern):
        # All from one answer of the cluster: a topic may go away meanwhile.
        return sorted(
            (name, partition)
            for name, topic in ask.metadata("listing the topics").topics.items()
            if not name.startswith(_INTERNAL) and topics.fullmatch(name)
            for partition in topic.partitions
        )
    names = list(dict.fromkeys([topics] if isinstance(topics, str) else topics))
    descriptions = look_up(ask, names)
    return sorted((name, p.id) for name in names for p in descriptions[name].partitions)


def topic_ids(ask: AdminCalls, names: Iterable[str]) -> dict[str, str]:
    """Return the id that Kafka gave each topic when it was created; a missing one is left out."""
    wanted = list(dict.fromkeys(names))
    if not wanted:
        return {}
    descriptions = _described(ask, "looking up topics", wanted)
    return {name: str(topic.topic_id) for name, topic in descriptions.items()}


def existing(ask: AdminCalls, partitions: Iterable[Partition]) -> list[Partition]:
    """Return those of the partitions that the cluster has."""
    topics = ask.metadata("looking up partitions").topics
    return [(t, p) for t, p in partitions if t in topics and p in topics[t].partitions]


def look_up(ask: AdminCalls, names: list[str]) -> dict[str, Any]:
    """Return what the cluster says about each topic; a missing one is an error with the nearest names."""
    if not names:
        return {}
    descriptions = _described(ask, f"looking up topic {', '.join(names)}", names)
    for name in names:
        if name not in descriptions:
            raise topic_missing(name, [t.name for t in list_topics(ask) if not t.internal])
    return descriptions


def _described(ask: AdminCalls, doing: str, names: list[str]) -> dict[str, Any]:
    missing = KafkaError.UNKNOWN_TOPIC_OR_PART
    return ask.each(doing, ask.client.describe_topics, Names(names), quiet=missing)


def require(ask: AdminCalls, partitions: Iterable[Partition]) -> None:
    """Raise when one of the partitions is not there."""
    wanted = list(partitions)
    descriptions = look_up(ask, list(dict.fromkeys(topic for topic, _ in wanted)))
    for topic, partition in wanted:
        last = len(descriptions[topic].partitions) - 1
        if not 0 <= partition <= last:
            raise ConfigError(f"topic {topic!r} has no partition {partition}; it has 0 to {last}")


def require_leaders(ask: AdminCalls, partitions: Iterable[Partition]) -> None:
    """Wait until the partitions have leaders, which the client then knows; raise where one is missing."""
    wanted = list(partitions)
    require(ask, wanted)
    for topic in {topic for topic, _ in wanted}:
        ask.until(f"topic {topic!r} has leaders", partial(has_leaders, ask, topic))


def topics_now(ask: AdminCalls, name: str) -> Any:
    """Return every topic by name, as a broker knows them at this moment."""
    return ask.metadata(f"looking for topic {name!r}").topics


def has_leaders(ask: AdminCalls, name: str, at_least: int = 0) -> bool:
    """Return whether a topic exists with that many partitions, and each of them has a leader."""
    topic = topics_now(ask, name).get(name)
    if topic is None or len(topic.partitions) < at_least:
        return False
    return all(partition.leader >= 0 for partition in topic.partitions.values())


class Watermarks:
    """The offsets of partitions, from their leaders."""

    def __init__(self, ask: AdminCalls) -> None:
        self._ask = ask

    def earliest(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """Return the first offset that each partition still has."""
        return self._offsets(partitions, EARLIEST)

    def latest(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """Return the offset that each partition's next record will get."""
        return self._offsets(partitions, LATEST)

    def offsets_at(
        self, timestamp_ms: int, partitions: Iterable[Partition]
    ) -> dict[Partition, int]:
        """Return the first offset at or after a time; the end if no record is that recent."""
        offsets = self._offsets(partitions, max(0, timestamp_ms))
        young = [partition for partition, offset in offsets.items() if offset < 0]
        return {**offsets, **self.latest(young)}

    def _offsets(self, partitions: Iterable[Partition], moment: int) -> dict[Partition, int]:
        asked = list(dict.fromkeys(partitions))
        if not asked:
            return {}

        def again(error: Exception) -> float | None:
            if not isinstance(error, PenstockError) or code_of(error) not in _MISSING:
                return None
            require_leaders(self._ask, asked)
            self._ask.offsets.look_anew()
            return 0.0

        ask = partial(self._ask.offsets.at, moment, asked)
        return retry(ask, again, within=self._ask.timeout)
