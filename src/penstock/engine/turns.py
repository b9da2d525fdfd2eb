"""Which batch comes next where more wait for a core than there are: the one that began first.

Spark shares cores fairly between pools: by their running tasks, and where those are equal, by the names
of the pools. Pools with the names of pipelines would let the first ones by name run all the time on a
busy machine, and the others never. So each batch has a pool of its own, named by a number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import TYPE_CHECKING, Any

from penstock.pipeline.derived_names import TASK_BATCH

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import DataFrame

    from penstock.pipeline import Batch

POOL = "spark.scheduler.pool"
_numbers = count()


@contextmanager
def turn(context: SparkContext) -> Iterator[None]:
    """Let the jobs of this thread come before those of later turns, while they wait for a core."""
    name, before = f"turn-{next(_numbers):015d}", context.getLocalProperty(POOL)
    context.setLocalProperty(POOL, name)
    try:
        yield
    finally:
        context.setLocalProperty(POOL, before)  # type: ignore[arg-type]
        _remove(context, name)


def in_turn(run: Callable[[DataFrame, int], None]) -> Callable[[DataFrame, int], None]:
    """Return a function for `foreachBatch` that runs each batch in a turn of its own."""

    def run_in_turn(records: DataFrame, batch_id: int) -> None:
        with turn(records.sparkSession.sparkContext):
            run(records, batch_id)

    return run_in_turn


@contextmanager
def named(batch: Batch) -> Iterator[None]:
    """Let the tasks of this thread know of which batch they are."""
    context = batch.rows.sparkSession.sparkContext
    context.setLocalProperty(TASK_BATCH, f"{batch.epoch} {batch.id}")
    try:
        yield
    finally:
        context.setLocalProperty(TASK_BATCH, None)  # type: ignore[arg-type]


def _remove(context: Any, name: str) -> None:
    """Remove a pool, which Spark would keep for good."""
    root = context._jsc.sc().taskScheduler().rootPool()
    if (pool := root.getSchedulableByName(name)) is not None:
        root.removeSchedulable(pool)
