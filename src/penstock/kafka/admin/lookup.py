"""Finding topics and partitions: what is there, and a good answer where something is not."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import partial
from typing import Any

from confluent_kafka import KafkaError
from confluent_kafka import TopicCollection as Names

from penstock.errors import ConfigError
from penstock.kafka.admin import describe
from penstock.kafka.admin.asking import Asker
from penstock.kafka.admin.model import TopicInfo
from penstock.kafka.errors import topic_missing
from penstock.kafka.handle import Partition


def list_topics(ask: Asker) -> list[TopicInfo]:
    """Every topic by name."""
    metadata = ask.metadata("listing the topics")
    found = [describe.topic_line(topic) for topic in metadata.topics.values()]
    return sorted(found, key=lambda topic: topic.name)


def partitions_of(ask: Asker, topics: Iterable[str] | re.Pattern[str]) -> list[Partition]:
    """Every partition of the given topics, or of the topics that match a pattern as a whole."""
    if isinstance(topics, re.Pattern):
        return _matching(ask, topics)
    names = list(dict.fromkeys([topics] if isinstance(topics, str) else topics))
    told = look_up(ask, names)
    return sorted((name, p.id) for name in names for p in told[name].partitions)


def _matching(ask: Asker, pattern: re.Pattern[str]) -> list[Partition]:
    """From one answer of the cluster: a topic that goes away meanwhile is no error."""
    topics = ask.metadata("listing the topics").topics
    internal = {topic.name for topic in map(describe.topic_line, topics.values()) if topic.internal}
    return sorted(
        (name, partition)
        for name, topic in topics.items()
        if name not in internal and pattern.fullmatch(name)
        for partition in topic.partitions
    )


def topic_ids(ask: Asker, names: Iterable[str]) -> dict[str, str]:
    """The id that Kafka gave each topic when it was made; one that is not there is left out."""
    wanted = list(dict.fromkeys(names))
    if not wanted:
        return {}
    missing = KafkaError.UNKNOWN_TOPIC_OR_PART
    told = ask.each("looking up topics", ask.client.describe_topics, Names(wanted), quiet=missing)
    return {name: str(topic.topic_id) for name, topic in told.items()}


def existing(ask: Asker, partitions: Iterable[Partition]) -> list[Partition]:
    """Those of the partitions that the cluster has."""
    topics = ask.metadata("looking up partitions").topics
    return [(t, p) for t, p in partitions if t in topics and p in topics[t].partitions]


def look_up(ask: Asker, names: list[str]) -> dict[str, Any]:
    """What the cluster says about each topic; a missing one is an error with the nearest names."""
    if not names:
        return {}
    doing = f"looking up topic {', '.join(names)}"
    missing = KafkaError.UNKNOWN_TOPIC_OR_PART
    told = ask.each(doing, ask.client.describe_topics, Names(names), quiet=missing)
    for name in names:
        if name not in told:
            raise topic_missing(name, [t.name for t in list_topics(ask) if not t.internal])
    return told


def require(ask: Asker, partitions: Iterable[Partition]) -> None:
    """Raise when one of the partitions is not there."""
    wanted = list(partitions)
    told = look_up(ask, list(dict.fromkeys(topic for topic, _ in wanted)))
    for topic, partition in wanted:
        last = len(told[topic].partitions) - 1
        if not 0 <= partition <= last:
            raise ConfigError(f"topic {topic!r} has no partition {partition}; it has 0 to {last}")


def require_leaders(ask: Asker, partitions: Iterable[Partition]) -> None:
    """Wait until the partitions have leaders, which the client then knows; raise where one is missing."""
    wanted = list(partitions)
    require(ask, wanted)
    for topic in {topic for topic, _ in wanted}:
        ask.until(f"topic {topic!r} has leaders", partial(has_leaders, ask, topic))


def topics_now(ask: Asker, name: str) -> Any:
    """Every topic by name, as a broker knows them at this moment."""
    return ask.metadata(f"looking for topic {name!r}").topics


def has_leaders(ask: Asker, name: str, at_least: int = 0) -> bool:
    """Whether a topic is there with so many partitions, and each of them has a leader."""
    topic = topics_now(ask, name).get(name)
    if topic is None or len(topic.partitions) < at_least:
        return False
    return all(partition.leader >= 0 for partition in topic.partitions.values())
