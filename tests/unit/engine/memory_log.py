"""A log in memory: what Kafka is to the engine, in a few lines, for tests that run in milliseconds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from re import Pattern

from penstock.errors import ConfigError, GroupInUseError
from penstock.pipeline import Offsets, Partition, SourceLog
from penstock.pipeline.source_log import CommittedOffset


class MemoryLog(SourceLog):
    """Topics with partitions, of which each has an oldest and a next offset; and one group.

    >>> log = MemoryLog({("t", 0): 5})
    >>> log.commit(log.latest([("t", 0), ("gone", 0)]), "by a test")
    >>> log.committed(log.partitions(["t"]))
    {('t', 0): CommittedOffset(offset=5, metadata='by a test')}
    """

    group = "memory"

    def __init__(self, ends: Mapping[Partition, int]) -> None:
        self.ends: Offsets = dict(ends)
        self.starts: Offsets = dict.fromkeys(ends, 0)
        self.ids = {topic: f"{topic}-1" for topic, _ in ends}
        self.offsets: dict[Partition, CommittedOffset] = {}
        self.members: list[str] = []
        self.skips = 0

    def recreate(self, topic: str, partitions: int) -> None:
        """Delete a topic and create it again, empty; the group's offsets go with it."""
        self.delete(topic)
        self.ids[topic] = f"{topic}-2"
        self.ends |= {(topic, partition): 0 for partition in range(partitions)}
        self.starts |= {(topic, partition): 0 for partition in range(partitions)}

    def delete(self, topic: str) -> None:
        """Delete a topic."""
        self.ids.pop(topic, None)
        for known in (self.ends, self.starts, self.offsets):
            for place in [place for place in known if place[0] == topic]:
                del known[place]

    def partitions(self, topics: list[str] | Pattern[str]) -> list[Partition]:
        if isinstance(topics, Pattern):
            return sorted(place for place in self.ends if topics.fullmatch(place[0]))
        if missing := [topic for topic in topics if topic not in self.ids]:
            raise ConfigError(f"there is no topic {missing[0]!r}")
        return sorted(place for place in self.ends if place[0] in topics)

    def topic_ids(self, topics: Iterable[str]) -> dict[str, str]:
        return {topic: self.ids[topic] for topic in topics if topic in self.ids}

    def oldest(self, partitions: Iterable[Partition]) -> Offsets:
        return {place: self.starts[place] for place in partitions if place in self.starts}

    def latest(self, partitions: Iterable[Partition]) -> Offsets:
        return {place: self.ends[place] for place in partitions if place in self.ends}

    def offsets_at(self, timestamp: int, partitions: Iterable[Partition]) -> Offsets:
        """Here the record at an offset has that time."""
        return {place: min(timestamp, end) for place, end in self.latest(partitions).items()}

    def committed(self, partitions: Iterable[Partition]) -> dict[Partition, CommittedOffset]:
        return {place: self.offsets[place] for place in partitions if place in self.offsets}

    def commit(self, offsets: Mapping[Partition, int], metadata: str) -> None:
        if self.members:
            raise GroupInUseError(f"the group has members: {', '.join(self.members)}")
        self.offsets |= {
            place: CommittedOffset(offset, metadata)
            for place, offset in offsets.items()
            if place in self.ends
        }

    def skipped(self, query: object) -> int:
        """Return what the test says: no Spark reads here."""
        return self.skips

    def close(self) -> None:
        """Nothing is open."""
