"""Builds the stream: records to rows, bad ones set aside, then the steps that keep state."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException
from pyspark.sql import functions as f
from pyspark.sql.types import TimestampType

from penstock.engine.checkpoint import Epoch
from penstock.engine.counting import failures_in
from penstock.engine.reasons import reason
from penstock.engine.stateful.plan import Branch, Plan
from penstock.errors import ConfigError, nearest
from penstock.pipeline import FAILED, BoundStep
from penstock.pipeline.names import quoted
from penstock.pipeline.stateful import Joining, Stateful, interval, kept_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Shapes = list[dict[str, str]]
"""A description of the state of each stateful step."""

_SETTINGS = {
    # State is stored on the tasks' disks, and changes go to the checkpoint with each batch.
    "stateStore.providerClass": "org.apache.spark.sql.execution.streaming.state."
    "RocksDBStateStoreProvider",
    "stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "stateStore.rocksdb.boundedMemoryUsage": "true",
    # A complete window is emitted even if no record comes after those that ended it.
    "noDataMicroBatches.enabled": "true",
}


def session_for_state(spark: SparkSession) -> SparkSession:
    """Return a session with its own settings and its own view for SQL steps."""
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
        f.count_if(branch.column().isNull()).alias("timeless"),
        f.min(branch.until()).alias("least"),
    )
    there = rows.where(branch.column().isNotNull())
    return there.withWatermark(quoted(branch.time), interval(plan.delay))


def meet(plan: Plan, parts: Sequence[DataFrame]) -> tuple[DataFrame, Shapes]:
    """Return what comes out of the steps on the stream, and what those keep."""
    rows, *others = parts
    shapes: Shapes = []
    for index, bound in enumerate(plan.stream, len(plan.branches[0].steps)):
        step = bound.step
        if isinstance(step, Stateful):
            shapes.append({"step": step.name, **step.shape(rows.schema)})
        if isinstance(step, Joining):
            other = others.pop(0)
            shapes[-1]["others"] = kept_columns(other.schema, other.columns)
            rows = step.join(rows, other)
        else:
            rows = applied(bound, rows, f"steps[{index}]")
    return rows, shapes


def applied(step: BoundStep, rows: DataFrame, place: str) -> DataFrame:
    """Apply a step, and let Spark analyze it now: a wrong column is reported here."""
    try:
        made = step.apply(rows)
        made.schema  # noqa: B018 - only then Spark looks
    except AnalysisException as error:
        raise ConfigError(f"{place} ({step.step.name}): {reason(error)}") from None
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


def require_same_state(epoch: Epoch, shapes: Shapes) -> None:
    """Compare what the steps keep with what they kept before; write it down before the first batch."""
    kept = epoch.shapes()
    if kept == shapes:
        return
    if epoch.last() is None:
        epoch.keep_shapes(shapes)
    elif changes := list(_state_changes(kept, shapes)):
        raise ConfigError(
            f"the pipeline would go on with state that was kept otherwise: {'; '.join(changes)}. "
            "Put it back, give the pipeline another name, or, to begin with empty state where the group "
            f"stands, remove {epoch.location}"
        )


def _state_changes(before: Shapes, now: Shapes) -> Iterator[str]:
    names = [[shape["step"] for shape in shapes] for shapes in (before, now)]
    if names[0] != names[1]:
        was, are = (", ".join(each) or "none" for each in names)
        yield f"the steps that keep state were {was}, and are {are}"
        return
    for old, new in zip(before, now, strict=True):
        for key in new:
            if old.get(key) != new[key]:
                yield f"{key!r} of {new['step']!r} was {old.get(key)!r}, and is {new[key]!r}"
