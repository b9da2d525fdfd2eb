"""A pipeline's stream and its destination, as they are described to Spark before a record is read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql.types import StructType

from penstock.engine.stateful.late_rows import traced
from penstock.engine.stateful.plan import Plan
from penstock.engine.stateful.stateful_stream import Shapes, applied, meet, rows_of
from penstock.pipeline import FAILED, ORIGIN

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# The columns of a record, as Spark's connector gives them, with headers.
RECORD = (
    "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, "
    "timestampType int, headers array<struct<key:string,value:binary>>"
)


def sink_schema(plan: Plan, spark: SparkSession) -> StructType:
    """Return the columns of the rows that reach the sink, without reading a record."""
    own = spark.newSession()
    records = [own.createDataFrame([], RECORD) for _ in plan.branches]
    rows, _ = streamed(plan, records)
    return columns_after(plan, rows)


def streamed(plan: Plan, records: Sequence[DataFrame]) -> tuple[DataFrame, Shapes]:
    """Return what the batches are to have, and what steps keep from batch to batch."""
    if not plan.stream:
        return plan.decoded(records[0]), []
    parts = list(zip(plan.branches, records, strict=True))
    rows = [rows_of(plan, branch, own) for branch, own in parts]
    for branch, own in parts:
        traced(branch, own)  # a late row must find the way back to its record
    return meet(plan, rows)


def columns_after(plan: Plan, rows: DataFrame) -> StructType:
    """Let Spark look at the steps of a batch before a record is read; return the columns they give."""
    own = {FAILED, *ORIGIN}
    columns = StructType([column for column in rows.schema if column.name not in own])
    if not plan.batch:
        return columns
    tried = rows.sparkSession.newSession().createDataFrame([], columns)
    for index, step in enumerate(plan.batch, plan.before):
        tried = applied(step, tried, f"steps[{index}]")
    return tried.schema
