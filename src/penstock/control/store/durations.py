"""How long batches take, as a histogram: counted with the other counters, in the same statement."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import sqlalchemy as sa

from penstock.control.store.tables import COUNTERS, TOOK

BOUNDS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
"""The upper bounds of the buckets in seconds; one more bucket has what took longer."""


@dataclass(frozen=True)
class Durations:
    """The batches of a deployment by their duration, since durations are counted."""

    seconds: float = 0.0
    counts: tuple[int, ...] = (0,) * len(TOOK)

    @classmethod
    def of(cls, row: sa.RowMapping) -> Durations:
        """Read a row of the counters."""
        return cls(row["seconds"], tuple(row[name] for name in TOOK))

    def cumulative(self) -> list[int]:
        """Return for each bound how many batches took at most that long, and the number of all.

        >>> Durations(1.5, (1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0)).cumulative()
        [1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2]
        """
        return [*accumulate(self.counts)]


def with_duration(seconds: float) -> dict[str, Any]:
    """Return what a batch adds to the columns of the histogram."""
    column = COUNTERS.c[TOOK[bisect_left(BOUNDS, seconds)]]
    return {column.name: column + 1, "seconds": COUNTERS.c.seconds + seconds}
