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
from penstock.engine.deadletters import dead_letters_of
from penstock.engine.progress import Done, Progress
from penstock.engine.stateful.plan import Branch, Plan
from penstock.engine.stateful.seen import Query
from penstock.engine.stateful.writing import StatefulWriting
from penstock.engine.writing import Writing
from penstock.kafka import GroupOffsets
from penstock.pipeline import Batch, Delivery, Offsets, Pipeline, Reading

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
        self._on_batch = on_batch
        self._stopping = False
        self._busy = Lock()
        self._writing: Writing | StatefulWriting = (
            StatefulWriting(pipeline, plan, epoch, query, self._records)
            if plan.stream
            else Writing(pipeline, epoch.parts(), partial(self._records, plan.branches[0]))
        )

    def stop(self) -> None:
        """Let the running batch finish and no other begin; return when none runs."""
        self._stopping = True
        with self._busy:
            return

    def run(self, records: DataFrame, batch_id: int) -> None:
        """Handle one batch: called by Spark."""
        with self._busy:
            if self._stopping:
                raise StopRequestedError
            if self._plan.is_stale:
                raise StaleTableError
            try:
                self._run(records, batch_id)
            except Exception as error:
                self.error = error  # through Java it comes back as text only
                raise

    def _run(self, decoded: DataFrame, batch_id: int) -> None:
        began = time.monotonic()
        batch = self._batch(decoded, batch_id)
        end = {partition: end for partition, (_, end) in batch.ranges.items()}
        with self._committing(end):
            written = self._writing.run(batch)
        done = Done(
            mark=batch.mark,
            records=batch.records,
            rows=written.rows,
            failed=written.failed,
            seconds=time.monotonic() - began,
            position=end,
            error=written.example,
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

    def _batch(self, decoded: DataFrame, batch_id: int) -> Batch:
        return Batch(
            rows=decoded,
            pipeline=self.pipeline.name,
            epoch=self._epoch.number,
            id=batch_id,
            connection=self._connection,
            ranges=self._epoch.ranges(batch_id),
            may_repeat=self.last_id < 0,
            delivery=self.pipeline.delivery,
        )

    @contextmanager
    def _committing(self, end: Offsets) -> Iterator[None]:
        """Commit the batch's end to the group: after the body, or before it for at-most-once."""
        first = self.pipeline.delivery is Delivery.AT_MOST_ONCE
        if first:
            self._group.commit(end)
        yield
        if not first and self.pipeline.commit:
            self._group.commit(end)

    def _records(self, branch: Branch, batch: Batch) -> DataFrame:
        """Read a batch's records once more from Kafka."""
        ranges = branch.part(batch)
        start = {partition: start for partition, (start, _) in ranges.items()}
        end = {partition: end for partition, (_, end) in ranges.items()}
        whole = branch.source.model_copy(update={"headers": True})
        return whole.read_range(Reading(batch.rows.sparkSession, self._connection, start), end)


def _position(epoch: Epoch) -> Offsets:
    last = epoch.last()
    return epoch.end_of(last.id if last.done else last.id - 1) if last else epoch.start()
