"""The batch loop: write, dead letters, commit (or commit, write), for each batch that Spark plans."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from threading import Lock
from typing import TYPE_CHECKING

from pyspark.sql import Observation
from pyspark.sql import functions as f

from penstock.config import Connection
from penstock.config.logs import event_logger
from penstock.engine.checkpoint import Epoch
from penstock.engine.counting import Failures, counted, failures_in
from penstock.engine.deadletters import write_dead_letters
from penstock.engine.progress import Progress
from penstock.engine.reasons import refusal
from penstock.engine.splitting import Splitting, Written
from penstock.kafka import GroupOffsets
from penstock.pipeline import FAILED, Batch, Delivery, Offsets, Pipeline, Reading
from penstock.sources.kafka import KafkaSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

log = event_logger(__name__)


class StopRequestedError(Exception):
    """Ends the loop between two batches: the next one was planned and must not begin."""


class BatchLoop:
    """Runs each batch of one epoch, one after the other, and keeps the progress."""

    def __init__(
        self,
        pipeline: Pipeline,
        source: KafkaSource,
        connection: Connection,
        epoch: Epoch,
        group: GroupOffsets,
        *,
        progress: Progress,
    ) -> None:
        self.pipeline = pipeline
        self._source = source
        self.progress = replace(progress, position=_position(epoch))
        self.last_id = -1
        self.error: Exception | None = None
        self._connection = connection
        self._epoch = epoch
        self._group = group
        self._stopping = False
        self._busy = Lock()
        self._split: Splitting | None = None

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
            written = self._whole_or_in_parts(batch)
            failed = written.failures.count + len(written.refused)
            if failed:
                self._bury(batch, written)
        self.last_id = batch_id
        self.progress = self.progress.after_batch(
            records=batch.records,
            rows=written.rows,
            failed=failed,
            seconds=time.monotonic() - began,
            position=end,
        )
        log.debug("batch_done", pipeline=self.pipeline.name, batch=batch_id, rows=written.rows)
        self.pipeline.sink.tidy(batch)

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
        if not first:
            self._group.commit(end)

    def _whole_or_in_parts(self, batch: Batch) -> Written:
        """Write the batch; if something in it is refused, write it in parts to find out what."""
        if self._split:
            self._split.forget()  # that batch is noted as done, or this one would not have begun
        parts = self._epoch.parts()
        self._split = Splitting(parts, batch, self._write_part, self.pipeline.max_refused)
        if not (batch.may_repeat and self._split.begun()):
            try:
                written = self._write(batch)
            except Exception as error:
                if refusal(error) is None:
                    raise
                log.warning("batch_refused", batch=batch.id, reason=refusal(error))
            else:
                self._split = None
                return written
        return self._split.run()

    def _write_part(self, part: Batch) -> Written:
        rows = self.pipeline.decode.decode(self._records(part, self._source))
        return self._write(replace(part, rows=rows))

    def _records(self, batch: Batch, source: KafkaSource) -> DataFrame:
        """Read a batch's records once more from Kafka."""
        start = {partition: start for partition, (start, _) in batch.ranges.items()}
        end = {partition: end for partition, (_, end) in batch.ranges.items()}
        return source.read_range(Reading(batch.rows.sparkSession, self._connection, start), end)

    def _write(self, batch: Batch) -> Written:
        """Write the good rows; count them and the bad records in the same pass."""
        decoding, writing = Observation(), Observation()
        good = (
            batch.rows.observe(decoding, *failures_in()).where(f.col(FAILED).isNull()).drop(FAILED)
        )
        for step in self.pipeline.steps:
            good = step.apply(good)
        rows = good.observe(writing, f.count(f.lit(1)).alias("rows"))
        self.pipeline.sink.write(replace(batch, rows=rows))
        failed, rows_written = counted(decoding), counted(writing)["rows"]
        return Written(rows_written, Failures(failed["failed"], failed["fingerprint"]))

    def _bury(self, batch: Batch, written: Written) -> None:
        """Read the batch's records again from Kafka, for the bad ones, and put those away."""
        whole = self._source.model_copy(update={"headers": True})
        example = write_dead_letters(
            self._records(batch, whole),
            self.pipeline.decode,
            written,
            batch,
            self.pipeline.dead_letter_sink,
        )
        self.progress = replace(self.progress, last_error=example)
        log.warning(
            "records_failed",
            pipeline=self.pipeline.name,
            batch=batch.id,
            failed=written.failures.count + len(written.refused),
            example=example,
        )


def _position(epoch: Epoch) -> Offsets:
    last = epoch.last()
    return epoch.end_of(last.id if last.done else last.id - 1) if last else epoch.start()
