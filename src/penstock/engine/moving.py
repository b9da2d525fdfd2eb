"""Topics come and go while a pipeline reads them: what of a batch is still there, and what is lost."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from penstock.config.logs import event_logger
from penstock.engine.checkpoint import Epoch
from penstock.engine.counting import Query
from penstock.engine.losses import Loss, at_most, below, passed_over, refusal_of
from penstock.engine.present import commit, oldest
from penstock.errors import TransientError
from penstock.kafka import Admin, GroupOffsets
from penstock.pipeline import Batch, Offsets, Partition, Pipeline
from penstock.sources.kafka import KafkaSource

log = event_logger(__name__)


class MovedError(TransientError):
    """Topics were deleted or made again under the pipeline: the next attempt reads what is there."""


Ranges = dict[Partition, tuple[int, int]]


@dataclass(frozen=True)
class Taken:
    """What a batch takes of the partitions that are still there, and what it cannot take."""

    ranges: Ranges
    lost: list[Loss]
    # Whether Spark planned to read something of a topic that is gone, or is another one by now.
    differs: bool = False


class Moving:
    """Follows the topics of one epoch. Each has an id, so that one that was made again is known."""

    def __init__(
        self,
        pipeline: Pipeline,
        sources: Sequence[KafkaSource],
        epoch: Epoch,
        admin: Admin,
        query: Query,
        *,
        committed: Offsets,
        seen_ends: Callable[[], Offsets],
    ) -> None:
        self._pipeline = pipeline
        self._may_skip = all(source.on_data_loss == "skip" for source in sources)
        self._epoch = epoch
        self._admin = admin
        self._query = query
        self._committed = committed
        self._seen_ends = seen_ends
        self._ids = epoch.topics()
        self._told: set[str] = set()
        self.made_again: set[str] = set()

    def plan(self, batch: int) -> Taken:
        """Return what is to be read for a batch, or refuse to go on without what is lost."""
        before, after = self._epoch.begin_of(batch), self._epoch.end_of(batch)
        moved = self._moved({topic for topic, _ in before}, {topic for topic, _ in after})
        live = {place: end for place, end in after.items() if place[0] not in moved}
        before |= self._added(batch, [place for place in live if place not in before])
        lost = self._lost_with({p: at for p, at in before.items() if p[0] in moved}, after)
        # A log that was cut short by a change of its leader ends before the place where we stood.
        ranges = {p: (min(before[p], end), end) for p, end in live.items() if p in before}
        differs = any(end > before.get(p, 0) for p, end in after.items() if p not in ranges)
        return Taken(ranges, lost, differs)

    def look(self, position: Offsets) -> list[Loss]:
        """Look at the topics while no batch is under way; return what was lost with them."""
        moved = self._moved({topic for topic, _ in position}, set())
        return self._lost_with({p: at for p, at in position.items() if p[0] in moved}, {})

    def gone(self, topics: Iterable[str]) -> bool:
        """Whether one of these topics is gone, or is another one by now."""
        now = self._admin.topic_ids(topics)
        return any(now.get(topic) != self._ids.get(topic) for topic in topics)

    def after(self, batch: Batch) -> list[Loss]:
        """Return what the batch that was just written lacks, or refuse to go on without it.

        Where a topic was made again while it was read, the batch may have records of both: it is run
        again, without that topic.
        """
        moved = self._moved({topic for topic, _ in batch.ranges}, set())
        if again := sorted(moved & self.made_again):
            raise MovedError(f"topic {again[0]!r} was made again while it was read")
        if not (records := passed_over(self._query())):
            return []
        stood = {place: self._stood(batch, place) for place in batch.ranges}
        missing = below(stood, self._oldest(batch.ranges, moved))
        return self.without(at_most(missing, records))

    def without(self, losses: list[Loss]) -> list[Loss]:
        """Go on without these records, and say so; or refuse."""
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
                stood=loss.stood,
                oldest=loss.oldest,
                records=loss.records,
            )
        return losses

    def commit(self, group: GroupOffsets, end: Offsets) -> None:
        """Commit a batch's end, as far as its topics are there."""
        commit(group, self._admin, end)

    def from_oldest(self, ranges: Ranges) -> tuple[Ranges, list[Loss]]:
        """Return the ranges as they can be read now, and what is no more in them."""
        stood = {place: start for place, (start, _) in ranges.items()}
        first = self._oldest(ranges, set())
        read = {p: (max(start, first[p]), end) for p, (start, end) in ranges.items()}
        return read, below(stood, first)

    def _moved(self, known: set[str], planned: set[str]) -> set[str]:
        """Return the topics that are gone or were made again; take note of those that are new."""
        now = self._admin.topic_ids(known | planned)
        moved = {t for t in known if t not in now or self._ids.get(t, now[t]) != now[t]}
        moved |= planned - now.keys()
        if new := {t: now[t] for t in now.keys() - moved if self._ids.get(t) != now[t]}:
            self._ids |= new
            self._told -= new.keys()
            self._epoch.note_topics(self._ids)
        for topic in sorted(moved - self._told):
            event = "topic_made_again" if topic in now else "topic_gone"
            log.warning(event, pipeline=self._pipeline.name, topic=topic)
        self.made_again |= moved & now.keys()
        return moved

    def _added(self, batch: int, places: list[Partition]) -> Offsets:
        """Partitions that are new in a batch are read from their oldest record, which need not be 0."""
        if not places:
            return {}
        starts = oldest(self._admin, places)
        self._epoch.note_added(batch, starts)
        return starts

    def _lost_with(self, stood: Offsets, planned: Offsets) -> list[Loss]:
        """What had not been read of topics that are gone, as far as anybody had seen it."""
        fresh = {place: at for place, at in stood.items() if place[0] not in self._told}
        if not fresh:
            return []
        self._told |= {topic for topic, _ in fresh}
        seen = self._seen_ends()
        ends = {place: self._end_of(place, planned, seen) for place in fresh}
        return self.without(
            [Loss(p, at, None, ends[p] - at) for p, at in fresh.items() if ends[p] > at]
        )

    def _end_of(self, place: Partition, planned: Offsets, seen: Offsets) -> int:
        """Where a partition ended before it went; what was planned may be of the topic made since."""
        if place[0] in self.made_again and place in seen:
            return seen[place]
        return max(planned.get(place, 0), seen.get(place, 0))

    def _stood(self, batch: Batch, place: Partition) -> int:
        """A batch that is run again may have been committed before: then nothing of it is missing."""
        start, end = batch.ranges[place]
        if not batch.may_repeat:
            return start
        return min(end, max(start, self._committed.get(place, start)))

    def _oldest(self, ranges: Ranges, moved: set[str]) -> Offsets:
        """The oldest record of each partition, at most the range's end: so much is gone with a topic."""
        asked = [place for place in ranges if place[0] not in moved]
        found = oldest(self._admin, asked)
        return {place: min(end, found.get(place, end)) for place, (_, end) in ranges.items()}
