"""Where a pipeline goes on: in its newest epoch, or in a new one and at which offsets.

Three witnesses are compared, without I/O. The *checkpoint* is exact, and is gone with its folder. The
*group's offsets* can be moved by people; what the pipeline itself commits carries a stamp, so that it is
not taken for a person's wish. The *sink's last write* outlives the folder and shows that another process
took over.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from penstock.engine.checkpoint import Epoch, Planned
from penstock.pipeline import (
    CLAIMED,
    Delivery,
    LastWrite,
    Mark,
    Offsets,
    Partition,
    Pipeline,
    Ranges,
    renumbered,
)
from penstock.pipeline.batch import AnyNumbered


class Stamp(NamedTuple):
    """Who committed an offset: the epoch and its batch; CLAIMED for the start of the epoch.

    >>> Stamp.read(Stamp(17, 3).text)
    Stamp(epoch=17, batch=3)
    >>> Stamp.read("by hand") is None
    True
    """

    epoch: int
    batch: int

    @property
    def text(self) -> str:
        """Return the metadata of a commit."""
        return f"penstock {self.epoch} {self.batch}"

    @classmethod
    def read(cls, metadata: str) -> Stamp | None:
        """Return the stamp in the metadata of a commit; None if it is not from a pipeline."""
        match = re.fullmatch(r"penstock (\d{1,18}) (-?\d{1,18})", metadata)
        return cls(int(match[1]), int(match[2])) if match else None


STARTS_OVER = "penstock reset"
"""The metadata of a commit that stands for no offset: its partition begins as the source says.

Where a group has no offset, it may have expired. This one was taken away.
"""


class Committed(NamedTuple):
    """A committed offset; one without a stamp is not from the pipeline.

    >>> Committed.read(42, "penstock reset")
    Committed(offset=42, stamp=None, starts_over=True)
    """

    offset: int
    stamp: Stamp | None = None
    starts_over: bool = False

    @classmethod
    def read(cls, offset: int, metadata: str) -> Committed:
        """Return what an offset means, by the text that was committed with it."""
        return cls(offset, Stamp.read(metadata), metadata == STARTS_OVER)


class ResumePoint:
    """Where the newest epoch of the checkpoint is, in the topics that are still the ones it read."""

    def __init__(
        self, partitions: list[Partition], topics: Mapping[str, str], epoch: Epoch | None
    ) -> None:
        self.partitions = partitions
        self.number = epoch.number if epoch else -1
        self._topics = topics
        self._epoch = epoch
        self._noted = epoch.topics() if epoch else {}
        self._newest = epoch.last() if epoch else None
        self._read = {topic for topic, _ in self._newest.end} if self._newest else set()

    def renumbered(self, write: LastWrite) -> LastWrite:
        """Return a write with the current number of the epoch, if it was of this epoch."""
        marks = {place: self._current(mark) for place, mark in write.marks.items()}
        return replace(write, mark=self._current(write.mark), marks=marks)

    def renumbered_commit(self, commit: Committed) -> Committed:
        """Return a commit with the current number of the epoch, if it was of this epoch.

        A batch is committed before it is done: a commit of an earlier number and an earlier batch came
        late, from a process that was taken over from. It keeps its number, and does not count.
        """
        if commit.stamp is None or commit.stamp.batch < self.done_batch():
            return commit
        return commit._replace(stamp=self._current(commit.stamp))

    def _current(self, mark: AnyNumbered) -> AnyNumbered:
        return renumbered(mark, self.number, self._epoch.earlier if self._epoch else ())

    def of_now(self, offsets: Mapping[Partition, int]) -> Offsets:
        """Return the offsets that mean something: not those of a topic that was recreated since."""
        return {p: offset for p, offset in offsets.items() if self.is_the_same(p[0])}

    def last(self) -> Planned | None:
        """Return the newest batch, as far as its topics exist."""
        return replace(self._newest, end=self.of_now(self._newest.end)) if self._newest else None

    def done_batch(self) -> int:
        """Return the number of the newest batch that is done, CLAIMED where none is."""
        last = self.last()
        return CLAIMED if last is None else last.id - (not last.done)

    def before(self) -> Offsets:
        """Return where the newest batch begins."""
        if not (self._epoch and self._newest):
            return {}
        return self.of_now(self._epoch.begin_of(self._newest.id))

    def recreated(self) -> list[Partition]:
        """Return the partitions of topics that are not the ones that the newest batch read."""
        return [p for p in self.partitions if self.has_read(p[0]) and not self.is_the_same(p[0])]

    def has_read(self, topic: str) -> bool:
        """Return whether the newest batch has read a topic of this name."""
        return topic in self._read

    def start(self) -> Offsets:
        """Return where the epoch started."""
        return self.of_now(self._epoch.start()) if self._epoch else {}

    def next(self, delivery: Delivery) -> Offsets:
        """Return what is to be read next by the checkpoint alone.

        A batch under way is run again, but not with at-most-once: it may have been written.
        """
        last = self.last()
        if last is None:
            return self.start()
        return last.end if last.done or delivery is Delivery.AT_MOST_ONCE else self.before()

    def is_the_same(self, topic: str) -> bool:
        """Return whether a topic is the one that the epoch knows, or is new to it."""
        now = self._topics.get(topic)
        return now is not None and self._noted.get(topic, now) == now

    def was_recreated_since(self, known: Mapping[str, str], topic: str) -> bool:
        """Return whether a topic's id differs from its known one."""
        return topic in known and known[topic] != self._topics.get(topic)


@dataclass(frozen=True)
class Witnesses:
    """What checkpoint, group and sink say about where a pipeline was."""

    point: ResumePoint
    committed: Mapping[Partition, Committed] = field(default_factory=dict)
    written: LastWrite | None = None
    delivery: Delivery = Delivery.AT_LEAST_ONCE
    # In real-time mode the group follows what is done, and may not have got there.
    follows: bool = False

    @classmethod
    def of(
        cls,
        point: ResumePoint,
        committed: Mapping[Partition, Committed],
        written: LastWrite | None,
        pipeline: Pipeline,
    ) -> Witnesses:
        """Return what they say, with every earlier number of the epoch replaced by its current one."""
        return cls(
            point,
            {place: point.renumbered_commit(each) for place, each in committed.items()},
            written and point.renumbered(written),
            pipeline.delivery,
            pipeline.in_real_time,
        )

    @property
    def newest_epoch(self) -> int:
        """Return the greatest epoch that any of them knows; -1 if none knows any."""
        written = self.written.mark.epoch if self.written else -1
        stamps = (each.stamp.epoch for each in self.committed.values() if each.stamp)
        return max(self.point.number, written, *stamps, -1)

    @property
    def checkpoint_is_newest(self) -> bool:
        """Return whether no other process, with another checkpoint, ran the pipeline since."""
        return self.point.number >= 0 and self.point.number == self.newest_epoch

    def goes_on(self) -> bool:
        """Return whether the newest epoch continues: the group is where this pipeline left it.

        A batch that is done has committed its end. One that was under way has committed nothing yet or,
        if it was killed at the very end, its end. Offsets that expired say nothing, nor do those that a
        process of an earlier epoch committed late: the checkpoint holds.
        """
        last = self.point.last()
        if last is None or not self.checkpoint_is_newest or self.starting_over():
            return False
        committed = self.current()
        at_end = _is_at(committed, last.end)
        if last.done and (at_end or not self.follows):
            return at_end
        before = self.point.before()
        if self.delivery is Delivery.AT_MOST_ONCE and before != last.end:
            return all(committed.get(p) == before.get(p, 0) for p in _moved(before, last.end))
        if not all(committed.get(p, end) in (end, before.get(p, 0)) for p, end in last.end.items()):
            return False
        # A batch commits all its partitions at once: some of them moved by hand is a person's wish.
        by_hand = [p for p in _moved(before, last.end) if self._is_by_hand(p)]
        return len({committed[p] == last.end[p] for p in by_hand}) < 2

    def goes_on_here(self) -> bool:
        """Return whether the newest epoch continues, in topics that are still those that it read.

        A batch that was under way is finished first.
        """
        last = self.point.last()
        is_done = last is not None and last.done
        return self.goes_on() and not (is_done and self.point.recreated())

    def _is_by_hand(self, place: Partition) -> bool:
        group = self.committed.get(place)
        return group is not None and group.stamp is None

    def current(self) -> Offsets:
        """Return the committed offsets that count in addition to the checkpoint."""
        return {
            p: each.offset
            for p, each in self.committed.items()
            if each.stamp is None or each.stamp.epoch >= self.point.number
        }

    def starting_over(self) -> list[Partition]:
        """Return the partitions whose offsets a person took away."""
        return [place for place, each in self.committed.items() if each.starts_over]

    def starts(self) -> Offsets:
        """Return where a new epoch begins, for the partitions of which anything is known."""
        starts = {p: self._start_of(p) for p in self.point.partitions}
        return {p: offset for p, offset in starts.items() if offset is not None}

    def _start_of(self, place: Partition) -> int | None:
        if self.point.has_read(place[0]) and not self.point.is_the_same(place[0]):
            return None  # recreated: it is read from its beginning
        group = self.committed.get(place)
        if group and group.starts_over:
            return None
        if group and group.stamp is None:
            return group.offset  # a user moved the group: the group wins
        checkpoint: int | None = None
        if self.checkpoint_is_newest:
            checkpoint = self.point.next(self.delivery).get(place)
            if group and group.stamp and group.stamp.epoch < self.point.number:
                group = None  # an old process committed late
        known, epoch = checkpoint, self.point.number
        if group and group.stamp:
            known, epoch = group.offset, group.stamp.epoch
        end = self.written_end(place)
        if self.written is None or end is None:
            return known
        return end if known is None else _later(epoch, known, self.written.mark_of(place), end)

    def written_end(self, place: Partition) -> int | None:
        """Return up to which offset the sink has a partition, None where it does not say."""
        if self.written is None or place not in self.written.ranges:
            return None
        if self.point.was_recreated_since(self.written.topics, place[0]):
            return None
        return self.written.ranges[place][1]

    def half_written(self) -> list[Partition]:
        """Return the partitions of a batch that was written in parts and may not be complete.

        Only the checkpoint has the plan of the parts. Partitions that a user moved do not count.
        """
        if self.written is None or not self.written.mark.part or self.written.mark.batch == CLAIMED:
            return []
        last = self.point.last()
        epoch, batch, _ = self.written.mark
        if last and self.point.number == epoch and last.done and last.id >= batch:
            return []
        places = self.written.ranges.keys() | self.committed.keys()
        return [p for p in sorted(places) if not _covers(self.committed.get(p), epoch, batch)]

    def unfinished(self, start: Offsets) -> Ranges:
        """Return what the sink has of a batch that was never committed, and that is not read again.

        Its rows are safe. Its bad records may not be among the dead letters yet.
        """
        ranges: Ranges = {}
        for place, begin in self._uncommitted().items():
            end = self.written_end(place)
            if end is not None and begin < end == start.get(place):
                ranges[place] = begin, end
        return ranges

    def _uncommitted(self) -> Offsets:
        if self.written is None:
            return {}
        own = self.point.next(self.delivery) if self.checkpoint_is_newest else {}
        begins = {place: begin for place, (begin, _) in self.written.ranges.items()}
        group = {
            p: each.offset for p, each in self.committed.items() if not self._is_stale(p, each)
        }
        return begins | own | group

    def _is_stale(self, place: Partition, group: Committed) -> bool:
        """Return whether a process of an earlier epoch committed this after a later one's last write."""
        if self.written is None or place not in self.written.ranges or group.stamp is None:
            return False
        return group.stamp.epoch < self.written.mark_of(place).epoch


def next_epoch(now: float, known: Iterable[int]) -> int:
    """Return the number of a new epoch: the second of now, and greater than all that are known.

    >>> next_epoch(1000.5, [17, -1]), next_epoch(1000.5, [2000])
    (1000, 2001)
    """
    return max(int(now), max(known, default=-1) + 1)


def epochs_of(token: int) -> range:
    """Return the numbers of the epochs that a process may begin under a lease with this token.

    They are greater than all numbers of smaller tokens, and than all numbers that clocks gave.

    >>> epochs_of(7)[0] < epochs_of(7)[-1] < epochs_of(8)[0], 2**33 < epochs_of(1_800_000_000)[0]
    (True, True)
    """
    return range(token << 20, (token + 1) << 20)


def _later(epoch: int, known: int, mark: Mark, end: int) -> int:
    """Return which of two offsets counts: the one known of this epoch, or the end of the last write.

    The start of an epoch is chosen with the last write in view, and may be before it.

    >>> [_later(7, 3, mark, 9) for mark in (Mark(6, 0, 0), Mark(7, 0, 0), Mark(8, 0, 0))]
    [3, 9, 9]
    """
    if mark.batch == CLAIMED:  # an earlier release did not keep the mark of the write
        return max(known, end) if mark.epoch > epoch else known
    if mark.epoch == epoch:
        return max(known, end)
    return end if mark.epoch > epoch else known


def _is_at(committed: Mapping[Partition, int], end: Offsets) -> bool:
    return all(committed.get(partition, offset) == offset for partition, offset in end.items())


def _moved(before: Offsets, end: Offsets) -> list[Partition]:
    """Return the partitions of which a batch has records."""
    return [p for p, offset in end.items() if offset != before.get(p, 0)]


def _covers(group: Committed | None, epoch: int, batch: int) -> bool:
    """Return whether a commit shows that a batch is complete, or that a user moved the group."""
    if group is None:
        return False
    return group.stamp is None or group.stamp >= (epoch, batch)
