"""Writes one batch to the end: rows to the sink, whole or in parts; bad records to the dead letters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql import Observation
from pyspark.sql import functions as f

from penstock.config.logs import event_logger
from penstock.engine.counting import Failures, counted, failures_in
from penstock.engine.deadletters import write_dead_letters
from penstock.engine.losses import Loss
from penstock.engine.reasons import refusal
from penstock.engine.splitting import Splitting, Written
from penstock.pipeline import FAILED, Batch, Pipeline
from penstock.pipeline.storage import Folder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

log = event_logger(__name__)

Records = Callable[[Batch], "DataFrame"]
"""Gives the records of a batch once more, whole, with their headers."""
Part = Callable[[Batch], tuple["DataFrame", list[Loss]]]
"""Gives the records of a part of a batch, and what Kafka has no more of it."""


class Writing:
    """Writes the batches of one pipeline, one after the other."""

    def __init__(self, pipeline: Pipeline, parts: Folder, records: Records, part: Part) -> None:
        self._pipeline = pipeline
        self._parts = parts
        self._records = records
        self._part = part
        self._split: Splitting | None = None

    def run(self, batch: Batch) -> Written:
        """Write the rows, then the bad records; return what became of them."""
        written = self._whole_or_in_parts(batch)
        if written.failed:
            return replace(written, example=self._bury(batch, written))
        return written

    def _whole_or_in_parts(self, batch: Batch) -> Written:
        """Write the batch; if something in it is refused, write it in parts to find out what."""
        if self._split:
            self._split.forget()  # that batch is noted as done, or this one would not have begun
        most = self._pipeline.max_refused
        self._split = Splitting(self._parts, batch, self._write_part, most)
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
        records, lost = self._part(part)
        written = self._write(replace(part, rows=self._pipeline.decode.decode(records)))
        return replace(written, lost=tuple(lost))

    def _write(self, batch: Batch) -> Written:
        """Write the good rows; count them and the bad records in the same pass."""
        decoding = writing = Observation()
        is_good = f.col(FAILED).isNull()
        decoded = batch.rows.observe(decoding, *failures_in(), f.count_if(is_good).alias("rows"))
        rows = decoded.where(is_good).drop(FAILED)
        if self._pipeline.steps:
            for step in self._pipeline.steps:
                rows = step.apply(rows)
            writing = Observation()
            rows = rows.observe(writing, f.count(f.lit(1)).alias("rows"))
        self._pipeline.sink.write(replace(batch, rows=rows))
        failed, rows_written = counted(decoding), counted(writing)["rows"]
        return Written(rows_written, Failures(failed["failed"], failed["fingerprint"]))

    def _bury(self, batch: Batch, written: Written) -> str:
        """Read the batch's records again, for the bad ones, and put those away."""
        pipeline = self._pipeline
        example = write_dead_letters(
            self._records(batch), pipeline.decode, written, batch, pipeline.dead_letter_sink
        )
        log.warning(
            "records_failed",
            pipeline=pipeline.name,
            batch=batch.id,
            failed=written.failed,
            example=example,
        )
        return example
