"""Rows that are computed once, where what reads them may read them twice, or not to the end."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# A range shuffle reads its rows a first time for a sample; a common table may be read once or more.
_OTHERWISE = re.compile(r"Limit|Sort \[|RepartitionByExpression|WithCTE")
_JOIN = re.compile(r"Join (Inner|Cross).*")
_EQUAL = re.compile(r" (=|<=>) ")
_COUNTED = "CollectMetrics"


@contextmanager
def computed(rows: DataFrame) -> Iterator[DataFrame]:
    """Compute rows once and cache them, in memory or on disk, within the context."""
    kept = rows.localCheckpoint()
    try:
        yield kept
    finally:
        plan: Any = kept._jdf.logicalPlan()
        plan.rdd().unpersist(False)


def reads_once(rows: DataFrame) -> bool:
    """Return whether Spark reads the observed rows that these are made of once, and to the end.

    Only then is what it counts on the way what there is. Where it finds that nothing can come of them it
    leaves them out, and the counts: that is seen when they are asked for.
    """
    executed: Any = rows._jdf.queryExecution()
    plan = executed.analyzed().toString()
    if _OTHERWISE.search(plan) or plan.count(_COUNTED) != 1:
        return False
    return all(_EQUAL.search(join.group()) for join in _JOIN.finditer(plan))
