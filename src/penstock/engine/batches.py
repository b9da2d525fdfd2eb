"""The batch loop: write, dead letters, commit (or commit, write), for each batch that Spark plans."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING

from penstock.config import Connection
from penstock.config.logs import event_logger
from penstock.engine.checkpoint import Epoch
from penstock.engine.counting import Query
from penstock.engine.deadletters import dead_letters_of
from penstock.engine.losses import Loss, counted
from penstock.engine.moving import Moving, Ranges, Taken
from penstock.engine.progress import Done, Progress
from penstock.engine.stateful.plan import Branch, Plan
from penstock.engine.stateful.writing import StatefulWriting
from penstock.engine.writing import Writing
from penstock.kafka import GroupOffsets
from penstock.pipeline import Batch, Delivery, Offsets, Partition, Pipeline, Reading

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

log = event_logger(__name__)

OnBatch = Callable[[Done], None]
"""Called after each batch, before Spark notes it as done: if it raises, the batch is run again."""


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
        group: GroupOffsets,
        *,
        moving: Moving,
        progress: Progress,
        query: Query,
        on_batch: OnBatch | None = None,
    ) -> None:
        self.pipeline = pipeline
        self._plan = plan
        self.progress = replace(progress, position=_position(epoch))
        self.last_id = -1
        self.error: Exception | None = None
        self._connection = connection
        self._epoch = epoch
        self._group = group
        self._moving = moving
        self._taken: dict[Partition, tuple[int, int]] = {}
        self._seen_busy: dict[Partition, tuple[int, int]] | None = None
        self._on_batch = on_batch
        self._stopping = False
        self._busy = Lock()
        self._writing: Writing | StatefulWriting = (
            StatefulWriting(pipeline, plan, epoch, query, self._records)
            if plan.stream
            else self._plain_writing(plan.branches[0])
        )

    def _plain_writing(self, only: Branch) -> Writing:
        records, part = partial(self._records, only), partial(self._part, only)
        return Writing(self.pipeline, self._epoch.parts(), records, part)

    def stop(self) -> None:
        """Let the running batch finish and no other begin; return when none runs."""
        self._stopping = True
        with self._busy:
            return

    @property
    def made_again(self) -> set[str]:
        """The topics that were made again: they are read from their beginning, in a new epoch."""
        return self._moving.made_again

    def stop_soon(self) -> None:
        """Let no other batch begin."""
        self._stopping = True

    def look(self) -> bool:
        """Look at the topics between two batches; say whether the pipeline must begin a new epoch.

        A batch that waits for a topic that is gone must be begun anew, too: seen twice, it waits.
        """
        if not self._busy.acquire(blocking=False):
            return self._waits_in_vain()
        try:
            self.progress = self.progress.without(self._moving.look(self.progress.position))
            return bool(self.made_again)
        finally:
            self._busy.release()

    def _waits_in_vain(self) -> bool:
        """Whether this batch was under way before, and reads from a topic that is gone."""
        taken, self._seen_busy = self._seen_busy, self._taken
        return taken is self._taken and self._moving.gone({topic for topic, _ in self._taken})

    def run(self, records: DataFrame, batch_id: int) -> None:
        """Handle one batch: called by Spark."""
        with self._busy:
            if self._stopping:
                raise StopRequestedError
            try:
                self._run(records, batch_id)
            except Exception as error:
                self.error = error  # through Java it comes back as text only
                raise

    def _run(self, decoded: DataFrame, batch_id: int) -> None:
        if self._plan.is_stale and self.last_id >= 0:  # what was just read is good for one batch
            raise StaleTableError
        if self.last_id < 0:
            self._epoch.outlast_its_second()
        began = time.monotonic()
        taken = self._moving.plan(batch_id)
        self._taken = taken.ranges
        batch = self._as_planned(decoded, batch_id, taken)
        without: list[Loss] | None = None
        if taken.differs and not self._plan.stream:  # state goes on with what Spark reads
            batch, without = self._without_moved(batch)
        end = {partition: end for partition, (_, end) in batch.ranges.items()}
        with self._committing(end):
            written = self._writing.run(batch)
            missing = without if written.lost is None else written.lost
            if missing is None:
                missing = self._moving.after(batch)
        lost, told = counted([*taken.lost, *missing])
        done = Done(
            mark=batch.mark,
            records=batch.records,
            rows=written.rows,
            failed=written.failed,
            seconds=time.monotonic() - began,
            position=end,
            error=told or written.example,
            lost=lost,
        )
        if self._on_batch:
            self._on_batch(done)
        self.last_id = batch_id
        self.progress = self.progress.after_batch(done)
        log.debug("batch_done", pipeline=self.pipeline.name, batch=batch_id, rows=written.rows)
        self.pipeline.sink.tidy(batch)
        if written.failed:
            letters = replace(batch, pipeline=dead_letters_of(batch.pipeline))
            self.pipeline.dead_letter_sink.tidy(letters)

    def _without_moved(self, batch: Batch) -> tuple[Batch, list[Loss]]:
        """Read the batch by its offsets: Spark would take a topic that was made again for the old one."""
        if not batch.records:
            return replace(batch, rows=batch.rows.limit(0)), []
        branch = self._plan.branches[0]
        records, lost = self._part(branch, batch)
        return replace(batch, rows=branch.decode.decode(records)), lost

    def _as_planned(self, decoded: DataFrame, batch_id: int, taken: Taken) -> Batch:
        return Batch(
            rows=decoded,
            pipeline=self.pipeline.name,
            epoch=self._epoch.number,
            id=batch_id,
            connection=self._connection,
            ranges=taken.ranges,
            may_repeat=self.last_id < 0,
            delivery=self.pipeline.delivery,
        )

    @contextmanager
    def _committing(self, end: Offsets) -> Iterator[None]:
        """Commit the batch's end to the group: after the body, or before it for at-most-once."""
        first = self.pipeline.delivery is Delivery.AT_MOST_ONCE
        if first:
            self._moving.commit(self._group, end)
        yield
        if not first and self.pipeline.commit:
            self._moving.commit(self._group, end)

    def _records(self, branch: Branch, batch: Batch) -> DataFrame:
        """Read a batch's records once more from Kafka, as far as it has them."""
        ranges, _ = self._moving.from_oldest(branch.source.own(batch.ranges))
        return self._read(branch, batch, ranges)

    def _part(self, branch: Branch, part: Batch) -> tuple[DataFrame, list[Loss]]:
        """Read records that Spark has not handed out; what is gone of them is told here or nowhere."""
        ranges, lost = self._moving.from_oldest(branch.source.own(part.ranges))
        return self._read(branch, part, ranges), self._moving.without(lost)

    def _read(self, branch: Branch, batch: Batch, ranges: Ranges) -> DataFrame:
        left = {place: span for place, span in ranges.items() if span[0] < span[1]} or ranges
        start = {partition: start for partition, (start, _) in left.items()}
        end = {partition: end for partition, (_, end) in left.items()}
        whole = branch.source.model_copy(update={"headers": True})
        return whole.read_range(Reading(batch.rows.sparkSession, self._connection, start), end)


def _position(epoch: Epoch) -> Offsets:
    last = epoch.last()
    return epoch.end_of(last.id if last.done else last.id - 1) if last else epoch.start()
