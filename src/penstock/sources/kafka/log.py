"""Kafka as the engine reads it: partitions and their offsets, and the offsets of one group."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from functools import cached_property
from re import Pattern
from typing import TYPE_CHECKING, Any

from penstock.config import Connection
from penstock.errors import ConfigError, GroupInUseError
from penstock.kafka import Admin, GroupOffsets
from penstock.pipeline import Offsets, Partition
from penstock.pipeline.source_log import CommittedOffset, SourceLog

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

# Spark's name for the number of offsets that a task had to skip because Kafka had removed them.
_SKIPPED = "offsetOutOfRange"


class KafkaLog(SourceLog):
    """The topics of a cluster, and one group of it.

    Examples
    --------
    ::

        with KafkaLog(connection, "trades-to-table") as log:
            log.commit(log.latest(log.partitions(["trades"])), "")
    """

    def __init__(self, connection: Connection, group: str, timeout: float = 10.0) -> None:
        self.group = group
        self._connection = connection
        self._timeout = timeout
        self._closing = ExitStack()

    @cached_property
    def _admin(self) -> Admin:
        return self._closing.enter_context(Admin(self._connection, timeout=self._timeout))

    @cached_property
    def _offsets(self) -> GroupOffsets:
        return self._closing.enter_context(GroupOffsets(self._connection, self.group))

    def partitions(self, topics: list[str] | Pattern[str]) -> list[Partition]:
        """Return the partitions of these topics, or of all whose names match."""
        return self._admin.partitions(topics)

    def topic_ids(self, topics: Iterable[str]) -> dict[str, str]:
        """Return the id of each topic that exists."""
        return self._admin.topic_ids(topics)

    def oldest(self, partitions: Iterable[Partition]) -> Offsets:
        """Return the offset of the first record that is stored, for each partition."""
        return self._of_existing(self._admin.earliest, partitions)

    def latest(self, partitions: Iterable[Partition]) -> Offsets:
        """Return the offset of the next record to come, for each partition."""
        return self._of_existing(self._admin.latest, partitions)

    def _of_existing(
        self, ask: Callable[[list[Partition]], Offsets], partitions: Iterable[Partition]
    ) -> Offsets:
        asked = list(partitions)
        try:
            return ask(asked)
        except ConfigError:
            return ask(self._admin.existing(asked))

    def offsets_at(self, timestamp: int, partitions: Iterable[Partition]) -> Offsets:
        """Return the offset of the first record at or after a time."""
        return self._admin.offsets_at(timestamp, partitions)

    def committed(self, partitions: Iterable[Partition]) -> dict[Partition, CommittedOffset]:
        """Return what the group has committed."""
        committed = self._offsets.committed_with_metadata(partitions)
        return {place: CommittedOffset(*each) for place, each in committed.items()}

    def commit(self, offsets: Mapping[Partition, int], metadata: str) -> None:
        """Commit offsets for the group; a topic that is gone has no offset to commit."""
        try:
            self._offsets.commit(offsets, metadata)
        except GroupInUseError as error:
            raise self._in_use() from error
        except ConfigError:
            there = set(self._admin.existing(offsets))
            if there == offsets.keys():
                raise
            left = {place: offset for place, offset in offsets.items() if place in there}
            self._offsets.commit(left, metadata)

    def skipped(self, query: StreamingQuery) -> int:
        """Return how many offsets the tasks of the batch that Spark runs skipped, by their own count.

        Only they know it: what they had fetched ahead is read, though Kafka has it no more.
        """
        running: Any = query._jsq.streamingQuery()
        leaves = running.lastExecution().executedPlan().collectLeaves()
        metrics = [leaves.apply(index).metrics() for index in range(leaves.size())]
        return sum(int(m.apply(_SKIPPED).value()) for m in metrics if m.contains(_SKIPPED))

    def close(self) -> None:
        """Close the connections."""
        self._closing.close()

    def _in_use(self) -> GroupInUseError:
        members = self._admin.describe_group(self.group).members
        named = ", ".join(f"{each.client_id} ({each.host}, {each.id})" for each in members[:3])
        return GroupInUseError(
            f"group {self.group!r} has {len(members)} consumers of its own, {named or 'just leaving'}: "
            "nothing is written, because it could not be committed; end them, or give the pipeline "
            "another 'group'"
        )
