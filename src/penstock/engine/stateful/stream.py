"""Builds the stream: records to rows, bad ones set aside, then the steps that keep state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException
from pyspark.sql import functions as f
from pyspark.sql.types import TimestampType

from penstock.engine.counting import failures_in
from penstock.engine.reasons import reason
from penstock.engine.stateful.plan import Branch, Plan
from penstock.errors import ConfigError, nearest
from penstock.pipeline import FAILED, Step
from penstock.pipeline.stateful import Joining, Stateful, interval, kept_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Shapes = list[dict[str, str]]
"""What each step that keeps state keeps."""

_SETTINGS = {
    # State is kept on disk beside the tasks, and what changed goes to the checkpoint with each batch.
    "stateStore.providerClass": "org.apache.spark.sql.execution.streaming.state."
    "RocksDBStateStoreProvider",
    "stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "stateStore.rocksdb.boundedMemoryUsage": "true",
    # A window that is over is given out although no record comes after those that ended it.
    "noDataMicroBatches.enabled": "true",
}


def session_for_state(spark: SparkSession) -> SparkSession:
    """Return a session of the pipeline's own: settings and the view of SQL steps are nobody else's."""
    own = spark.newSession()
    for name, value in _SETTINGS.items():
        own.conf.set(f"spark.sql.streaming.{name}", value)
    return own


def rows_of(plan: Plan, branch: Branch, records: DataFrame) -> DataFrame:
    """Return a branch's good rows, each with its time; what is set aside is counted on the way."""
    decoded = branch.decode.decode(records)
    rows = decoded.observe(f"decoded-{branch.number}", *failures_in())
    rows = rows.where(f.col(FAILED).isNull()).drop(FAILED)
    for index, step in enumerate(branch.steps):
        rows = applied(step, rows, f"{branch.place}steps[{index}]")
    _require_time(branch, rows)
    rows = rows.observe(
        f"timed-{branch.number}",
        f.count_if(f.col(branch.time).isNull()).alias("timeless"),
        f.min(branch.until()).alias("least"),
    )
    there = rows.where(f.col(branch.time).isNotNull())
    return there.withWatermark(branch.time, interval(plan.delay))


def meet(plan: Plan, parts: Sequence[DataFrame]) -> tuple[DataFrame, Shapes]:
    """Return what comes out of the steps on the stream, and what those keep."""
    rows, *others = parts
    shapes: Shapes = []
    for index, step in enumerate(plan.stream, len(plan.branches[0].steps)):
        if isinstance(step, Stateful):
            shapes.append({"step": step.name, **step.shape(rows.schema)})
        if isinstance(step, Joining):
            other = others.pop(0)
            shapes[-1]["others"] = kept_columns(other.schema, other.columns)
            rows = step.join(rows, other)
        else:
            rows = applied(step, rows, f"steps[{index}]")
    return rows, shapes


def applied(step: Step, rows: DataFrame, place: str) -> DataFrame:
    """Apply a step, and let Spark look at it now: a wrong column is found here."""
    try:
        made = step.apply(rows)
        made.schema  # noqa: B018 - only then Spark looks
    except AnalysisException as error:
        raise ConfigError(f"{place} ({step.name}): {reason(error)}") from None
    return made


def _require_time(branch: Branch, rows: DataFrame) -> None:
    place = f"the step {branch.keeper.name if branch.keeper else ''!r} goes by the column {branch.time!r}"
    if branch.time not in rows.columns:
        raise ConfigError(f"{place}; {nearest(branch.time, rows.columns)}")
    kind = rows.schema[branch.time].dataType
    if not isinstance(kind, TimestampType):
        raise ConfigError(
            f"{place}, which is {kind.simpleString()}: it must be a timestamp; a sql step "
            f"makes it one, as in: to_timestamp({branch.time}) AS time"
        )
