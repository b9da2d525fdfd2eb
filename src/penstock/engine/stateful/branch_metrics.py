"""Counts of the rows on the stream, in the batch that is under way.

Spark reports them to listeners only after the batch is noted as done: too late for the dead letters,
which must be written before that. The batch's executed plan has them as soon as it has run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.engine.counting import Failures
from penstock.engine.stateful.plan import Branch

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery


@dataclass(frozen=True)
class BranchMetrics:
    """The rows of one branch in one batch: which failed, how many have no time, the oldest."""

    failures: Failures
    timeless: int = 0
    # Until when the oldest row is accepted, in microseconds since 1970; None if there is no row.
    least: int | None = None

    def any_late(self, watermark: int) -> bool:
        """Return whether some row has no time, or is late."""
        return self.timeless > 0 or (self.least is not None and self.least <= watermark)


def branch_metrics(query: StreamingQuery, branch: Branch) -> BranchMetrics:
    """Return the counts of a branch since the running batch began."""
    metrics: Any = query._jsq.streamingQuery().lastExecution().observedMetrics()
    failed, fingerprint = _values(metrics, f"decoded-{branch.number}")
    timeless, least = _values(metrics, f"timed-{branch.number}")
    return BranchMetrics(Failures(failed or 0, fingerprint or 0), timeless or 0, least)


def _values(metrics: Any, name: str) -> tuple[int | None, int | None]:
    observed = metrics.get(name)
    if not observed.isDefined():
        return None, None
    row = observed.get()
    first, second = (None if row.isNullAt(n) else row.getLong(n) for n in range(2))
    return first, second
