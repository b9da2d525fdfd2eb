"""Asks checkpoint, group and sink where a pipeline goes on, and begins an epoch there where it must."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import time as now

from penstock.config.logs import event_logger
from penstock.engine.checkpoint import Checkpoint, Epoch
from penstock.engine.claims import Claims
from penstock.engine.resumption import (
    Committed,
    ResumePoint,
    Stamp,
    Witnesses,
    epochs_of,
    next_epoch,
)
from penstock.engine.topic_watcher import Loss, below, refusal_of
from penstock.errors import FencedError, PipelineFailedError
from penstock.pipeline import (
    CLAIMED,
    Delivery,
    LastWrite,
    Mark,
    Offsets,
    Partition,
    Pipeline,
    Ranges,
    Source,
    is_repetition,
)
from penstock.pipeline.source_log import SourceLog, partition_names

log = event_logger(__name__)


@dataclass(frozen=True)
class Resumption:
    """The epoch to run, what its group has committed, and what was lost since the last run."""

    epoch: Epoch
    committed: Offsets
    lost: list[Loss] = field(default_factory=list)


@dataclass(frozen=True)
class Resuming:
    """What is asked to find the place where a pipeline goes on."""

    checkpoint: Checkpoint
    pipeline: Pipeline
    sources: Sequence[Source]
    log: SourceLog
    # Opens the sinks, for records of these partitions.
    open_claims: Callable[[Sequence[Partition]], Claims]
    # The epoch that this process had before, which it must not take back from another process.
    held: int = -1
    # The token of the lease under which this process runs the pipeline, where it has one.
    token: int | None = None
    # Writes the dead letters of records whose rows the sink has, in this epoch.
    finish: Callable[[int, Ranges], None] = lambda *_: None

    def find(self) -> Resumption:
        """Return the epoch to go on with, or begin a new one and commit its start to the group."""
        epoch = self.checkpoint.newest()
        read = [
            (source, source.partitions(self.log, is_known=epoch is not None))
            for source in self.sources
        ]
        partitions = [place for _, places in read for place in places]
        topics = self.log.topic_ids({topic for topic, _ in partitions})
        claims = self.open_claims(partitions)
        point = ResumePoint(partitions, topics, epoch)
        known = self._witnesses(point, claims.last_write())
        if epoch and known.goes_on_here():
            if not self._is_own(epoch):
                epoch = epoch.continued_as(self._next_number(known, claims))
            if claims.hold(epoch.number, epoch.earlier):
                # An earlier process may have done a batch, or planned one, until the claim.
                point = ResumePoint(partitions, topics, epoch)
                known = self._witnesses(point, claims.last_write())
        if epoch and known.goes_on_here():
            return self._go_on(epoch, known)
        self._refuse_half_written(known)
        number = self._next_number(known, claims)
        known = self._witnesses(point, claims.claim(number))
        return self._begin(number, read, known, topics, claims)

    def _is_own(self, epoch: Epoch) -> bool:
        """Return whether an epoch has a number of this process's lease, or there is no lease."""
        if self.token is None:
            return True
        self._refuse_later(epoch.number)
        return epoch.number in epochs_of(self.token)

    def _next_number(self, known: Witnesses, claims: Claims) -> int:
        newest = max(known.newest_epoch, claims.newest_epoch())
        if self.token is None:
            return next_epoch(now(), [newest])
        self._refuse_later(newest + 1)
        return max(epochs_of(self.token).start, newest + 1)

    def _refuse_later(self, number: int) -> None:
        if self.token is not None and number >= epochs_of(self.token).stop:
            raise FencedError(
                f"another process runs the pipeline {self.pipeline.name!r}: its epoch {number} is later "
                f"than all of the lease with token {self.token}; this process must not write"
            )

    def _witnesses(self, point: ResumePoint, written: LastWrite | None) -> Witnesses:
        if written and self.held >= 0:
            is_repetition(written.mark, Mark(self.held, sys.maxsize, 0), self.pipeline.name)
        ignored = not self.pipeline.commit and (point.number >= 0 or written is not None)
        offsets = {} if ignored else self.log.committed(point.partitions)
        committed = {
            place: Committed.read(each.offset, each.metadata)
            for place, each in offsets.items()
            if point.is_the_same(place[0])
        }
        return Witnesses.of(point, committed, written, self.pipeline)

    def _go_on(self, epoch: Epoch, known: Witnesses) -> Resumption:
        committed = known.current()
        for source in self.sources:
            position = source.own(known.point.next(Delivery.AT_LEAST_ONCE) | committed)
            _refuse_lost(position, self.log, self.pipeline, source)
        if self.pipeline.commit:
            stamp = Stamp(epoch.number, known.point.done_batch())
            take_over_group(self.log, known.committed, stamp)
        return Resumption(epoch, committed)

    def _begin(
        self,
        number: int,
        read: list[tuple[Source, list[Partition]]],
        known: Witnesses,
        topics: Mapping[str, str],
        claims: Claims,
    ) -> Resumption:
        point = known.point
        fixed = known.starts()
        chosen = {*fixed, *known.starting_over()}
        at_oldest = [p for p in point.partitions if point.has_read(p[0]) and p not in chosen]
        fixed |= self.log.oldest(at_oldest)
        start: Offsets = {}
        lost: list[Loss] = []
        for source, places in read:
            begin, gone = starting_offsets(self.pipeline, source, self.log, places, fixed)
            start, lost = start | begin, lost + gone
        if unfinished := claims.without_dead_letters(known.unfinished(start)):
            self.finish(number, unfinished)
        began = self.checkpoint.new(number, start, topics)
        if self.pipeline.commit:
            self.log.commit(start, Stamp(number, CLAIMED).text)
        log.info(
            "epoch_began",
            pipeline=self.pipeline.name,
            epoch=number,
            moved=point.last() is not None,
        )
        return Resumption(began, start, lost)

    def _refuse_half_written(self, known: Witnesses) -> None:
        if not (places := known.half_written()) or known.written is None:
            return
        raise PipelineFailedError(
            f"batch {known.written.mark.batch} of {self.pipeline.name!r} was being written in parts when "
            f"its process ended, and the plan of the parts is not in this state folder: going on would "
            f"write records of {partition_names(places[:3])} twice or not at all; start it with the "
            f"state folder that it had, or choose where to go on by resetting the offsets of group "
            f"{self.pipeline.group_id!r}"
        )


def starting_offsets(
    pipeline: Pipeline,
    source: Source,
    log: SourceLog,
    partitions: list[Partition],
    known: Mapping[Partition, int],
) -> tuple[Offsets, list[Loss]]:
    """Return an offset for every partition, the known one, else the source's first; and what is lost."""
    missing = [partition for partition in partitions if partition not in known]
    first = source.first_offsets(log, missing)
    chosen = {partition: known[partition] for partition in partitions if partition in known}
    lost = _refuse_lost(chosen, log, pipeline, source)
    oldest = {loss.partition: loss.oldest for loss in lost if loss.oldest is not None}
    return chosen | oldest | first, lost


def _refuse_lost(
    position: Offsets, source_log: SourceLog, pipeline: Pipeline, source: Source
) -> list[Loss]:
    """Return what was removed while the pipeline was stopped; raise if it may not be skipped."""
    lost = below(position, source_log.oldest(position))
    if lost and not source.may_skip:
        raise refusal_of(lost, pipeline.group_id)
    return lost


def take_over_group(
    source_log: SourceLog, committed: Mapping[Partition, Committed], stamp: Stamp
) -> None:
    """Put the stamp on offsets that a person committed; refuse to begin while consumers are in the group.

    Without a stamp they would still be taken for a person's wish after the next write. What is written
    could not be committed next to consumers: the group's coordinator says so to whoever commits, so
    where there is nothing to stamp one offset is committed as it is.
    """
    moved = {place: each.offset for place, each in committed.items() if each.stamp is None}
    if moved:
        source_log.commit(moved, stamp.text)
        return
    for place, each in list(committed.items())[:1]:
        if each.stamp is not None:
            source_log.commit({place: each.offset}, each.stamp.text)
