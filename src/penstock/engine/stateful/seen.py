"""What came by on the stream during the batch that is under way.

Spark tells such figures to listeners, but only after the batch is noted as done: too late for the dead
letters, which must be safe before that. The plan that the batch runs knows them as soon as it has run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.engine.counting import Failures
from penstock.engine.stateful.plan import Branch

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery


@dataclass(frozen=True)
class Seen:
    """The rows of one branch in one batch: which failed, how many have no time, the oldest."""

    failures: Failures
    timeless: int = 0
    # Up to when the oldest row is taken, in microseconds since 1970; None where there is no row.
    least: int | None = None

    def any_late(self, watermark: int) -> bool:
        """Whether some row has no time, or is taken only up to a time that has passed."""
        return self.timeless > 0 or (self.least is not None and self.least <= watermark)


def seen(query: StreamingQuery, branch: Branch) -> Seen:
    """Return what came by on a branch since the running batch began."""
    metrics: Any = query._jsq.streamingQuery().lastExecution().observedMetrics()
    failed, fingerprint = _values(metrics, f"decoded-{branch.number}")
    timeless, least = _values(metrics, f"timed-{branch.number}")
    return Seen(Failures(failed or 0, fingerprint or 0), timeless or 0, least)


def _values(metrics: Any, name: str) -> tuple[int | None, int | None]:
    found = metrics.get(name)
    if not found.isDefined():
        return None, None
    row = found.get()
    first, second = (None if row.isNullAt(n) else row.getLong(n) for n in range(2))
    return first, second
