"""The batch loop: write, dead letters, commit (or commit, write), for each batch that Spark plans."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING

from penstock.config import Connection
from penstock.config.log_fields import log_fields
from penstock.config.logs import event_logger
from penstock.engine.batch_writing import DecodeNote, Writing
from penstock.engine.checkpoint import Epoch
from penstock.engine.claims import Claims
from penstock.engine.loop import Hooks, LaunchedQuery
from penstock.engine.phases import batch_phases, phase
from penstock.engine.progress import Done, Progress
from penstock.engine.stateful.plan import Branch, Plan
from penstock.engine.stateful.stateful_writing import StatefulWriting
from penstock.engine.topic_watcher import BatchRanges, Loss, TopicWatcher, counted
from penstock.pipeline import (
    Batch,
    Delivery,
    Mark,
    Offsets,
    Partition,
    Pipeline,
    Ranges,
    Reading,
)
from penstock.pipeline.derived_names import dead_letters_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

log = event_logger(__name__)


class StopRequestedError(Exception):
    """Ends the loop between two batches: the next one was planned and must not begin."""


class StaleTableError(Exception):
    """Ends the loop between two batches: a table that the stream is joined with is to be read again."""


class BatchLoop:
    """Runs each batch of one epoch, one after the other, and keeps the progress."""

    def __init__(
        self,
        pipeline: Pipeline,
        plan: Plan,
        connection: Connection,
        epoch: Epoch,
        *,
        watcher: TopicWatcher,
        progress: Progress,
        query: LaunchedQuery,
        claims: Claims,
        hooks: Hooks,
    ) -> None:
        self.pipeline = pipeline
        self._plan = plan
        self.progress = replace(progress, position=_position(epoch))
        self.last_id = -1
        self.error: Exception | None = None
        self._connection = connection
        self._epoch = epoch
        self._watcher = watcher
        self._taken: dict[Partition, tuple[int, int]] = {}
        self._seen_busy: dict[Partition, tuple[int, int]] | None = None
        self._claims = claims
        self._hooks = hooks
        self._stopping = False
        self.ended_between = False
        self._busy = Lock()
        self._writing: Writing | StatefulWriting = (
            StatefulWriting(pipeline, plan, epoch, query, records=self._records, claims=claims)
            if plan.stream
            else self._plain_writing(plan.branches[0])
        )

    def _plain_writing(self, only: Branch) -> Writing:
        records, part = partial(self._records, only), partial(self._part, only)
        return Writing(
            self.pipeline,
            self._plan,
            self._claims,
            decode_note=DecodeNote(self._epoch, self.pipeline.decode),
            parts=self._epoch.parts(),
            records=records,
            part=part,
            part_written=self._count_part,
        )

    def _count_part(self) -> None:
        self.progress = replace(self.progress, parts=self.progress.parts + 1)

    def stop(self) -> None:
        """Let the running batch finish and no other begin; return when none runs."""
        self._stopping = True
        with self._busy:
            return

    def join(self) -> None:
        """Return at once: a batch commits before Spark notes it as done."""

    @property
    def recreated(self) -> set[str]:
        """Return the topics that were recreated: they are read from their beginning, in a new epoch."""
        return self._watcher.recreated

    def stop_soon(self) -> None:
        """Let no other batch begin."""
        self._stopping = True

    def check_topics(self) -> bool:
        """Compare the topics with those of the epoch; return whether a new epoch must begin.

        It must, too, where a batch waits for a topic that was deleted: seen twice, it waits.
        """
        if not self._busy.acquire(blocking=False):
            return self._waits_in_vain()
        try:
            self.progress = self.progress.without(self._watcher.check(self.progress.position))
            return bool(self.recreated)
        finally:
            self._busy.release()

    def _waits_in_vain(self) -> bool:
        """Return whether this batch was under way before, and reads from a deleted topic."""
        taken, self._seen_busy = self._seen_busy, self._taken
        return taken is self._taken and self._watcher.gone({topic for topic, _ in self._taken})

    def run(self, records: DataFrame, batch_id: int) -> None:
        """Handle one batch: called by Spark."""
        with self._busy:
            if self._stopping:
                self.ended_between = True
                raise StopRequestedError
            with log_fields(pipeline=self.pipeline.name, batch=batch_id), batch_phases():
                self._run_hooked(records, batch_id)

    def _run_hooked(self, records: DataFrame, batch_id: int) -> None:
        began = time.monotonic()
        try:
            if self._hooks.before_batch:
                self._hooks.before_batch()
            self._run(records, batch_id)
        except Exception as error:
            self.error = error  # through Java it comes back as text only
            if not isinstance(error, StaleTableError):
                log.info("batch_failed", error=type(error).__name__)  # the reason is reported later
                self._hooks.failed(Mark(self._epoch.number, batch_id, 0), began, error)
            raise

    def _run(self, decoded: DataFrame, batch_id: int) -> None:
        if self._plan.is_stale() and self.last_id >= 0:  # what was just read is good for one batch
            raise StaleTableError
        if self.last_id < 0 and not (self.pipeline.commit or self._claims.used):
            self._epoch.outlast_its_second()  # neither the group nor the sink knows its number
        began = time.monotonic()
        with phase("plan"):
            taken = self._watcher.plan(batch_id)
        self._taken = taken.ranges
        batch = self._as_planned(decoded, batch_id, taken)
        without: list[Loss] | None = None
        if taken.differs and not self._plan.stream:  # state continues with what Spark reads
            batch, without = self._without_moved(batch)
        end = {partition: end for partition, (_, end) in batch.ranges.items()}
        with self._committing(end, batch_id):
            written = self._writing.run(batch)
            missing = without if written.lost is None else written.lost
            if missing is None:
                missing = self._watcher.after(batch)
        lost, loss = counted([*taken.lost, *missing])
        done = Done(
            mark=batch.mark,
            records=batch.records,
            rows=written.rows,
            failed=written.failed,
            seconds=time.monotonic() - began,
            position=end,
            error=loss or written.example,
            lost=lost,
            earlier=self._epoch.earlier,
        )
        self._hooks.done(done)
        if self.last_id < 0:
            log.info("first_batch_done", rows=written.rows, seconds=round(done.seconds, 2))
        self.last_id = batch_id
        self.progress = self.progress.after_batch(done)
        log.debug("batch_done", pipeline=self.pipeline.name, batch=batch_id, rows=written.rows)
        writers = self._claims.writers
        writers.rows.maintain(batch)
        if written.failed:
            letters = replace(batch, pipeline=dead_letters_of(batch.pipeline))
            writers.dead_letters.maintain(letters)

    def _without_moved(self, batch: Batch) -> tuple[Batch, list[Loss]]:
        """Read the batch by its offsets: Spark would confuse a recreated topic with the old one."""
        if not batch.records:
            return replace(batch, rows=batch.rows.limit(0)), []
        records, lost = self._part(self._plan.branches[0], batch)
        return replace(batch, rows=self._plan.decoded(records)), lost

    def _as_planned(self, decoded: DataFrame, batch_id: int, taken: BatchRanges) -> Batch:
        return Batch(
            rows=decoded,
            pipeline=self.pipeline.name,
            epoch=self._epoch.number,
            id=batch_id,
            connection=self._connection,
            ranges=taken.ranges,
            may_repeat=self.last_id < 0,
            delivery=self.pipeline.delivery,
            topics=self._watcher.topics,
        )

    @contextmanager
    def _committing(self, end: Offsets, batch_id: int) -> Iterator[None]:
        """Commit the batch's end to the group: after the body, or before it for at-most-once."""
        first = self.pipeline.delivery is Delivery.AT_MOST_ONCE
        if first:
            self._commit(end, batch_id)
        yield
        if not first and self.pipeline.commit:
            self._commit(end, batch_id)

    def _commit(self, end: Offsets, batch_id: int) -> None:
        with phase("commit"):
            self._watcher.commit(end, batch_id)

    def _records(self, branch: Branch, batch: Batch) -> DataFrame:
        """Read a batch's records once more from Kafka, as far as it has them."""
        ranges, _ = self._watcher.from_oldest(branch.source.own(batch.ranges))
        return self._read(branch, batch, ranges)

    def _part(self, branch: Branch, part: Batch) -> tuple[DataFrame, list[Loss]]:
        """Read records that Spark did not deliver, and report those that were removed."""
        ranges, lost = self._watcher.from_oldest(branch.source.own(part.ranges))
        return self._read(branch, part, ranges), self._watcher.without(lost)

    def _read(self, branch: Branch, batch: Batch, ranges: Ranges) -> DataFrame:
        left = {place: span for place, span in ranges.items() if span[0] < span[1]} or ranges
        start = {partition: start for partition, (start, _) in left.items()}
        end = {partition: end for partition, (_, end) in left.items()}
        return branch.source.with_headers().read_range(
            Reading(batch.rows.sparkSession, self._connection, start), end
        )


def _position(epoch: Epoch) -> Offsets:
    last = epoch.last()
    return epoch.end_of(last.id if last.done else last.id - 1) if last else epoch.start()
