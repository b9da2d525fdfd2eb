"""Writes a batch of what came out of the steps that keep state, and puts away what they did not take.

Such a batch cannot be divided by records, as others are: a row was made of many. So a row that the sink
refuses is no dead letter; the pipeline fails with what the sink says.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql import Observation
from pyspark.sql import functions as f

from penstock.config.logs import event_logger
from penstock.engine.checkpoint import Epoch
from penstock.engine.counting import Failures, Query, counted
from penstock.engine.deadletters import put_away, require_the_same, undecoded
from penstock.engine.reasons import refusal
from penstock.engine.splitting import Written
from penstock.engine.stateful.late import late_records
from penstock.engine.stateful.plan import Branch, Plan
from penstock.engine.stateful.seen import seen
from penstock.errors import PipelineFailedError
from penstock.pipeline import Batch, Pipeline

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

log = event_logger(__name__)

Records = Callable[[Branch, Batch], "DataFrame"]
"""Gives the records of a branch of a batch once more, whole, with their headers."""


class StatefulWriting:
    """Writes the batches of one pipeline, one after the other."""

    def __init__(
        self, pipeline: Pipeline, plan: Plan, epoch: Epoch, query: Query, records: Records
    ) -> None:
        self._pipeline = pipeline
        self._plan = plan
        self._epoch = epoch
        self._query = query
        self._records = records

    def run(self, batch: Batch) -> Written:
        """Write the rows, then the bad records; return what became of them."""
        counting = Observation()
        rows = batch.rows
        for step in self._plan.batch:
            rows = step.apply(rows)
        counted_rows = rows.observe(counting, f.count(f.lit(1)).alias("rows"))
        self._write(replace(batch, rows=counted_rows))
        written = Written(counted(counting)["rows"], Failures())
        found, failures = self._bad(batch)
        return self._bury(batch, written, found, failures) if found else written

    def _write(self, batch: Batch) -> None:
        try:
            self._pipeline.sink.write(batch)
        except Exception as error:
            if (why := refusal(error)) is None:
                raise
            raise PipelineFailedError(
                f"a row of batch {batch.id} was refused: {why[2]}; it was made of many records, so none "
                "of them can be put aside: mend the step or the table"
            ) from error

    def _bad(self, batch: Batch) -> tuple[list[DataFrame], Failures]:
        """Look at what came by, and read again the records of branches in which some were bad."""
        watermark = self._epoch.watermark(batch.id)
        found: list[DataFrame] = []
        count = fingerprint = 0
        for branch in self._plan.branches:
            came = seen(self._query(), branch)
            if not came.failures.count and not came.any_late(watermark):
                continue
            records = self._records(branch, batch)
            found += undecoded(records, branch.decode, came.failures)
            if came.any_late(watermark):
                found.append(late_records(branch, records, watermark))
            count += came.failures.count
            fingerprint += came.failures.fingerprint
        return found, Failures(count, fingerprint)

    def _bury(
        self, batch: Batch, written: Written, found: list[DataFrame], failures: Failures
    ) -> Written:
        told = put_away(found, batch, self._pipeline.dead_letter_sink)
        require_the_same(failures, told)
        if told["example"] is None:  # the step before took the late ones out by itself
            return written
        log.warning(
            "records_failed",
            pipeline=self._pipeline.name,
            batch=batch.id,
            failed=failures.count,
            late=told["others"],
            example=told["example"],
        )
        return replace(written, failures=failures, late=told["others"], example=told["example"])
