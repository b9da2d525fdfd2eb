"""The log that a pipeline reads, as the engine sees it: partitions, their offsets, the group's offsets.

It is the only interface between the engine and Kafka; tests replace it with a log in memory.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from re import Pattern
from typing import TYPE_CHECKING, NamedTuple

from typing_extensions import Self

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

Partition = tuple[str, int]
Offsets = dict[Partition, int]


class Span(NamedTuple):
    """The records of one partition from `start` up to, not including, `end`."""

    topic: str
    partition: int
    start: int
    end: int


def spans_in(ranges: Mapping[Partition, tuple[int, int]]) -> list[Span]:
    """Return the ranges that have records, in the order of the partitions.

    >>> spans_in({("t", 1): (5, 8), ("t", 0): (3, 3)})
    [Span(topic='t', partition=1, start=5, end=8)]
    """
    spans = (Span(*partition, *ends) for partition, ends in sorted(ranges.items()))
    return [span for span in spans if span.end > span.start]


def partition_names(partitions: Iterable[Partition]) -> str:
    """Return partitions as one text for messages.

    >>> partition_names([("trades", 0), ("trades", 1)])
    'trades-0, trades-1'
    """
    return ", ".join(f"{topic}-{partition}" for topic, partition in partitions)


class CommittedOffset(NamedTuple):
    """What a group committed for a partition: the next offset, and the text that was stored with it."""

    offset: int
    metadata: str


class SourceLog(ABC):
    """A log of topics with partitions, read by one group. Partitions that do not exist are left out."""

    group: str

    @abstractmethod
    def partitions(self, topics: list[str] | Pattern[str]) -> list[Partition]:
        """Return the partitions of these topics, or of all whose names match.

        Raises
        ------
        ConfigError
            When a topic of a list does not exist.
        """

    @abstractmethod
    def topic_ids(self, topics: Iterable[str]) -> dict[str, str]:
        """Return the id of each topic that exists: one that is recreated has another."""

    @abstractmethod
    def oldest(self, partitions: Iterable[Partition]) -> Offsets:
        """Return the offset of the first record that is stored, for each partition."""

    @abstractmethod
    def latest(self, partitions: Iterable[Partition]) -> Offsets:
        """Return the offset of the next record to come, for each partition."""

    @abstractmethod
    def offsets_at(self, timestamp: int, partitions: Iterable[Partition]) -> Offsets:
        """Return the offset of the first record at or after a time in milliseconds since 1970."""

    @abstractmethod
    def committed(self, partitions: Iterable[Partition]) -> dict[Partition, CommittedOffset]:
        """Return what the group has committed, for the partitions for which it has."""

    @abstractmethod
    def commit(self, offsets: Mapping[Partition, int], metadata: str) -> None:
        """Commit offsets for the group, each with this text.

        Raises
        ------
        GroupInUseError
            When consumers are members of the group; it names them.
        """

    @abstractmethod
    def skipped(self, query: StreamingQuery) -> int:
        """Return how many offsets the batch that Spark runs had to skip, because they were removed."""

    @abstractmethod
    def close(self) -> None:
        """Close the connections."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
