"""Topics come and go while a pipeline reads them: what of a batch is still there, and what is lost."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from penstock.config.logs import event_logger
from penstock.engine.checkpoint import Epoch
from penstock.engine.resumption import Stamp
from penstock.errors import DataLossError, TransientError
from penstock.pipeline import Batch, Offsets, Partition, Pipeline, Ranges, Source
from penstock.pipeline.java_errors import Cause, causes_of
from penstock.pipeline.source_log import SourceLog

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

log = event_logger(__name__)

# What Spark's connector throws when topics or partitions come or go while it plans.
_MOVED = "org.apache.kafka.common.errors.UnknownTopicOrPartitionException"
_MOVED_CONDITIONS = {
    "MISMATCHED_TOPIC_PARTITIONS_BETWEEN_END_OFFSET_AND_PREFETCHED",
    "END_OFFSET_HAS_GREATER_OFFSET_FOR_TOPIC_PARTITION_THAN_PREFETCHED",
    "LOST_TOPIC_PARTITIONS_IN_END_OFFSET_WITH_TRIGGER_AVAILABLENOW",
    "END_OFFSET_HAS_GREATER_OFFSET_FOR_TOPIC_PARTITION_THAN_LATEST_WITH_TRIGGER_AVAILABLENOW",
    "KAFKA_START_OFFSET_DOES_NOT_MATCH_ASSIGNED",
}
# An assertion: it has no condition, and its text is Spark's alone.
_NOT_ALL = "assertion failed: If startingOffsets contains specific offsets, you must specify all"


class MovedError(TransientError):
    """Topics were deleted or recreated under the pipeline: the next attempt reads the current ones."""


class Loss(NamedTuple):
    """What one partition lost. `oldest` is None if the topic was deleted."""

    partition: Partition
    position: int
    oldest: int | None
    records: int

    def __str__(self) -> str:
        """Return a sentence.

        >>> print(Loss(("t", 0), 3, 8, 5))
        t-0: the pipeline was at offset 3 and the oldest record is 8: 5 records were removed before \
they were read
        >>> print(Loss(("t", 0), 3, None, 1))
        t-0: the pipeline was at offset 3 when the topic was deleted: 1 record was removed before it \
was read
        """
        now = "when the topic was deleted" if self.oldest is None else self._oldest()
        were = (
            "record was removed before it was"
            if self.records == 1
            else "records were removed before they were"
        )
        return (
            f"{self.partition[0]}-{self.partition[1]}: the pipeline was at offset {self.position} {now}: "
            f"{self.records} {were} read"
        )

    def _oldest(self) -> str:
        return f"and the oldest record is {self.oldest}"


def below(position: Offsets, oldest: Mapping[Partition, int]) -> list[Loss]:
    """Return what a reader at these offsets has lost.

    >>> [loss.records for loss in below({("t", 0): 3, ("t", 1): 4}, {("t", 0): 8, ("t", 1): 4})]
    [5]
    """
    return [
        Loss(partition, at, oldest[partition], oldest[partition] - at)
        for partition, at in position.items()
        if partition in oldest and at < oldest[partition]
    ]


def at_most(losses: Iterable[Loss], records: int) -> list[Loss]:
    """Return the losses, reduced to a total number of records.

    >>> first, second = Loss(("t", 0), 0, 5, 5), Loss(("t", 1), 0, 5, 5)
    >>> [loss.records for loss in at_most([first, second], 7)]
    [5, 2]
    """
    kept = []
    for loss in losses:
        if part := min(loss.records, records):
            kept.append(loss._replace(records=part))
            records -= part
    return kept


def total(losses: Iterable[Loss]) -> int:
    """Return how many records were lost."""
    return sum(loss.records for loss in losses)


def summary(losses: list[Loss]) -> str:
    """Describe the greatest loss, and the total of the others.

    >>> summary([Loss(("t", 0), 0, 1, 1), Loss(("t", 1), 0, 5, 5)]).partition("; ")[2]
    '1 more in 1 other partition'
    """
    greatest, *others = sorted(losses, key=lambda loss: -loss.records)
    if not others:
        return str(greatest)
    plural = "s" if len(others) > 1 else ""
    return f"{greatest}; {total(others)} more in {len(others)} other partition{plural}"


def counted(losses: list[Loss]) -> tuple[int, str | None]:
    """Return how many records were lost, and a summary; None if none were."""
    return total(losses), summary(losses) if losses else None


def refusal_of(losses: list[Loss], group: str) -> DataLossError:
    """Return the error of a pipeline that may not continue without them."""
    return DataLossError(
        f"{summary(losses)}; to continue without them give the source 'on_data_loss: skip', or reset the "
        f"group's offsets to earliest: penstock groups reset {group} --to earliest"
    )


@dataclass(frozen=True)
class BatchRanges:
    """The ranges of a batch in existing partitions, and the records that were lost."""

    ranges: Ranges
    lost: list[Loss]
    # Whether Spark planned to read something of a topic that is gone, or is another one by now.
    differs: bool = False


class TopicWatcher:
    """Follows the topics of one epoch. Each has an id, so that one that was recreated is known."""

    def __init__(
        self,
        pipeline: Pipeline,
        sources: Sequence[Source],
        epoch: Epoch,
        source_log: SourceLog,
        query: Callable[[], StreamingQuery],
        *,
        committed: Offsets,
        seen_ends: Callable[[], Offsets],
    ) -> None:
        self._pipeline = pipeline
        self._may_skip = all(source.may_skip for source in sources)
        self._epoch = epoch
        self._log = source_log
        self._query = query
        self._committed = committed
        self._seen_ends = seen_ends
        self._ids = epoch.topics()
        self._reported: set[str] = set()
        self.recreated: set[str] = set()

    @property
    def topics(self) -> dict[str, str]:
        """Return the ids of the topics that the epoch reads."""
        return self._ids

    def plan(self, batch: int) -> BatchRanges:
        """Return the ranges to read for a batch; raise if records were lost that may not be skipped."""
        before, after = self._epoch.begin_of(batch), self._epoch.end_of(batch)
        moved = self._moved({topic for topic, _ in before}, {topic for topic, _ in after})
        live = {place: end for place, end in after.items() if place[0] not in moved}
        before |= self._added(batch, [place for place in live if place not in before])
        lost = self._lost_with({p: at for p, at in before.items() if p[0] in moved}, after)
        # A log that was truncated by a change of its leader ends before our position.
        ranges = {p: (min(before[p], end), end) for p, end in live.items() if p in before}
        differs = any(end > before.get(p, 0) for p, end in after.items() if p not in ranges)
        return BatchRanges(ranges, lost, differs)

    def check(self, position: Offsets) -> list[Loss]:
        """Check the topics while no batch is under way; return what was lost with them."""
        moved = self._moved({topic for topic, _ in position}, set())
        return self._lost_with({p: at for p, at in position.items() if p[0] in moved}, {})

    def gone(self, topics: Iterable[str]) -> bool:
        """Return whether one of these topics was deleted or recreated."""
        now = self._log.topic_ids(topics)
        return any(now.get(topic) != self._ids.get(topic) for topic in topics)

    def after(self, batch: Batch) -> list[Loss]:
        """Return what the batch that was just written lacks; raise if that may not be skipped.

        If a topic was recreated while it was read, the batch may have records of both: it is run
        again, without that topic.
        """
        moved = self._moved({topic for topic, _ in batch.ranges}, set())
        if again := sorted(moved & self.recreated):
            raise MovedError(f"topic {again[0]!r} was recreated while it was read")
        if not (records := self._log.skipped(self._query())):
            return []
        position = {place: self._position(batch, place) for place in batch.ranges}
        missing = below(position, self._oldest(batch.ranges, moved))
        return self.without(at_most(missing, records))

    def without(self, losses: list[Loss]) -> list[Loss]:
        """Log these losses and return them; raise if they may not be skipped."""
        if not losses:
            return []
        if not self._may_skip:
            raise refusal_of(losses, self._pipeline.group_id)
        for loss in losses:
            log.warning(
                "records_lost",
                pipeline=self._pipeline.name,
                topic=loss.partition[0],
                partition=loss.partition[1],
                position=loss.position,
                oldest=loss.oldest,
                records=loss.records,
            )
        return losses

    def commit(self, end: Offsets, batch: int) -> None:
        """Commit a batch's end for the topics that exist."""
        self._log.commit(end, Stamp(self._epoch.number, batch).text)

    def from_oldest(self, ranges: Ranges) -> tuple[Ranges, list[Loss]]:
        """Return the ranges that can be read now, and the losses in them."""
        position = {place: start for place, (start, _) in ranges.items()}
        first = self._oldest(ranges, set())
        read = {p: (max(start, first[p]), end) for p, (start, end) in ranges.items()}
        return read, below(position, first)

    def _moved(self, known: set[str], planned: set[str]) -> set[str]:
        """Return the topics that were deleted or recreated; store the ids of new ones."""
        now = self._log.topic_ids(known | planned)
        moved = {t for t in known if t not in now or self._ids.get(t, now[t]) != now[t]}
        moved |= planned - now.keys()
        if new := {t: now[t] for t in now.keys() - moved if self._ids.get(t) != now[t]}:
            self._ids |= new
            self._reported -= new.keys()
            self._epoch.note_topics(self._ids)
        for topic in sorted(moved - self._reported):
            event = "topic_recreated" if topic in now else "topic_gone"
            log.warning(event, pipeline=self._pipeline.name, topic=topic)
        self.recreated |= moved & now.keys()
        return moved

    def _added(self, batch: int, places: list[Partition]) -> Offsets:
        """Return the starts of a batch's new partitions: their oldest offsets, which need not be 0."""
        if not places:
            return {}
        starts = self._log.oldest(places)
        self._epoch.note_added(batch, starts)
        return starts

    def _lost_with(self, position: Offsets, planned: Offsets) -> list[Loss]:
        """Return the unread records of deleted topics, up to their last known ends."""
        fresh = {place: at for place, at in position.items() if place[0] not in self._reported}
        if not fresh:
            return []
        self._reported |= {topic for topic, _ in fresh}
        seen = self._seen_ends()
        ends = {place: self._end_of(place, planned, seen) for place in fresh}
        return self.without(
            [Loss(p, at, None, ends[p] - at) for p, at in fresh.items() if ends[p] > at]
        )

    def _end_of(self, place: Partition, planned: Offsets, seen: Offsets) -> int:
        """Return a deleted partition's last known end; a planned one may be of the recreated topic."""
        if place[0] in self.recreated and place in seen:
            return seen[place]
        return max(planned.get(place, 0), seen.get(place, 0))

    def _position(self, batch: Batch, place: Partition) -> int:
        """Return the batch's start, or the committed offset if it was committed in an earlier run."""
        start, end = batch.ranges[place]
        if not batch.may_repeat:
            return start
        return min(end, max(start, self._committed.get(place, start)))

    def _oldest(self, ranges: Ranges, moved: set[str]) -> Offsets:
        """Return the oldest offset of each partition, at most the range's end."""
        asked = [place for place in ranges if place[0] not in moved]
        oldest = self._log.oldest(asked)
        return {place: min(end, oldest.get(place, end)) for place, (_, end) in ranges.items()}


def topics_moved(error: Exception | None) -> bool:
    """Return whether topics or partitions were created or deleted while Spark planned or read."""
    return any(map(_is_move, causes_of(error)))


def _is_move(cause: Cause) -> bool:
    asserted = cause.is_a("java.lang.AssertionError") and cause.message.startswith(_NOT_ALL)
    return cause.is_a(_MOVED) or cause.condition in _MOVED_CONDITIONS or asserted
