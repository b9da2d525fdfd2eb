"""Writes a batch of rows from stateful steps, and the records that these did not accept.

Such a batch cannot be divided by records, like others: a row was made of many. So a row that the sink
refuses does not become a dead letter; the pipeline fails with the sink's message.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql import Observation

from penstock.config.logs import event_logger
from penstock.engine.checkpoint import Epoch
from penstock.engine.claims import Claims
from penstock.engine.counting import Failures, Written, aggregated, all_rows, counted
from penstock.engine.dead_letter_batch import require_the_same, undecoded, write_bad_records
from penstock.engine.loop import LaunchedQuery
from penstock.engine.phases import phase
from penstock.engine.reasons import refusal
from penstock.engine.stateful.branch_metrics import branch_metrics
from penstock.engine.stateful.late_rows import late_records
from penstock.engine.stateful.plan import Branch, Plan
from penstock.errors import PipelineFailedError
from penstock.pipeline import Batch, Pipeline
from penstock.pipeline.computed_rows import computed, reads_once

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

log = event_logger(__name__)

Records = Callable[[Branch, Batch], "DataFrame"]
"""Reads the records of a branch of a batch again, with their headers."""


class StatefulWriting:
    """Writes the batches of one pipeline, one after the other."""

    def __init__(
        self,
        pipeline: Pipeline,
        plan: Plan,
        epoch: Epoch,
        query: LaunchedQuery,
        *,
        records: Records,
        claims: Claims,
    ) -> None:
        self._pipeline = pipeline
        self._claims = claims
        self._plan = plan
        self._epoch = epoch
        self._query = query
        self._records = records
        # Known after the first batch: the steps are the same for all.
        self._reads_once: bool | None = None

    def run(self, batch: Batch) -> Written:
        """Write the rows, then the bad records; return what became of them."""
        with phase("write"):
            written = self._write_rows(batch)
        with phase("dead_letters"):
            bad, failures = self._bad(batch)
            return self._write_bad(batch, written, bad, failures) if bad else written

    def _write_rows(self, batch: Batch) -> Written:
        counting = Observation()
        known = self._claims.has(batch)
        with ExitStack() as stack:
            rows = batch.rows if known else self._after_steps(batch.rows, stack)
            counted_rows = rows.observe(counting, all_rows())
            self._write(replace(batch, rows=counted_rows), known)
            counts = counted(counting) or aggregated(rows, [all_rows()])
        return Written(counts["rows"], Failures())

    def _after_steps(self, rows: DataFrame, stack: ExitStack) -> DataFrame:
        """Return what the steps make of rows: computed first where these would not be read to the end.

        The state of a task that does not come to its end is not kept.
        """
        if self._reads_once is None:
            observed = rows.observe(Observation(), all_rows())
            self._reads_once = reads_once(self._plan.after_steps(observed))
        once = self._reads_once
        return self._plan.after_steps(rows if once else stack.enter_context(computed(rows)))

    def _write(self, batch: Batch, known: bool) -> None:
        if known:  # the state advances with the rows, and the sink has them
            batch.rows.write.format("noop").mode("overwrite").save()
            return
        try:
            self._claims.writers.rows.write(batch)
        except Exception as error:
            if (why := refusal(error)) is None:
                raise
            raise PipelineFailedError(
                f"a row of batch {batch.id} was refused: {why[2]}; it was made of many records, so none "
                "of them can become a dead letter: fix the step or the table"
            ) from error

    def _bad(self, batch: Batch) -> tuple[list[DataFrame], Failures]:
        """Check the counts, and read again the records of branches in which some were bad."""
        watermark = self._epoch.watermark(batch.id)
        bad: list[DataFrame] = []
        count = fingerprint = 0
        for branch in self._plan.branches:
            metrics = branch_metrics(self._query(), branch)
            if not metrics.failures.count and not metrics.any_late(watermark):
                continue
            records = self._records(branch, batch)
            bad += undecoded(records, branch.decode, metrics.failures)
            if metrics.any_late(watermark):
                bad.append(late_records(branch, records, watermark))
            count += metrics.failures.count
            fingerprint += metrics.failures.fingerprint
        return bad, Failures(count, fingerprint)

    def _write_bad(
        self, batch: Batch, written: Written, bad: list[DataFrame], failures: Failures
    ) -> Written:
        counts = write_bad_records(bad, batch, self._claims.writers.dead_letters)
        require_the_same(failures, counts)
        if counts["example"] is None:  # an earlier step dropped the late ones
            return written
        log.warning(
            "records_failed",
            pipeline=self._pipeline.name,
            batch=batch.id,
            failed=failures.count,
            late=counts["others"],
            example=counts["example"],
        )
        return replace(written, failures=failures, late=counts["others"], example=counts["example"])
