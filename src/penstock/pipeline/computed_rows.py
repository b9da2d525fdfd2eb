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
    plan = executed.analyzed()
    text = plan.toString()
    # In a subquery they are not in the tree: there Spark does not report what it counts.
    in_tree = sum(node.nodeName() == _COUNTED for node in _nodes(plan))
    if _OTHERWISE.search(text) or not text.count(_COUNTED) == in_tree == 1:
        return False
    return _joins_by_keys(rows, executed.optimizedPlan())


def _joins_by_keys(rows: DataFrame, plan: Any) -> bool:
    """Return whether all joins compare a value of each side; others may read a side twice or more.

    The optimized plan counts: a comparison with a constant is done before the join, and is no key of it.
    """
    java: Any = rows.sparkSession._jvm
    keys = java.org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys
    joins = (node for node in _nodes(plan) if node.nodeName() == "Join")
    return not any(keys.unapply(join).isEmpty() for join in joins)


def _nodes(plan: Any) -> Iterator[Any]:
    """Yield the nodes of a plan; those of its subqueries are not among them."""
    yield plan
    children = plan.children()
    for at in range(children.size()):
        yield from _nodes(children.apply(at))
