"""Finds the records whose rows came too late, or have no time; only looked for if there are any."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from penstock.engine.stateful.plan import Branch
from penstock.errors import ConfigError
from penstock.pipeline import FAILED, ORIGIN

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_PLACE = ("topic", "partition", "offset")


def late_records(branch: Branch, records: DataFrame, watermark: int) -> DataFrame:
    """Return the records, whole, of which a row is late, with the columns of a bad record."""
    rows = traced(branch, records)
    timeless = branch.column().isNull()
    late = rows.where(timeless | (branch.until() <= watermark))
    named = [f.col(own).alias(name) for own, name in zip(ORIGIN, _PLACE, strict=True)]
    kind = f.when(timeless, "NoTimeError").otherwise("LateError")
    failed = late.select(*named, kind.alias("error_type"), _text(branch, watermark).alias("error"))
    once = failed.groupBy(*_PLACE).agg(
        f.first("error_type").alias("error_type"), f.first("error").alias("error")
    )
    return records.join(once, list(_PLACE)).withColumns(
        {"stage": f.lit("late"), FAILED: f.lit(None).cast("long")}
    )


def traced(branch: Branch, records: DataFrame) -> DataFrame:
    """Return a branch's good rows with their origin; refuse a step that loses it."""
    rows = branch.decode.traced(records).where(f.col(FAILED).isNull()).drop(FAILED)
    for index, step in enumerate(branch.steps):
        rows = step.traced(rows)
        if not set(ORIGIN) <= set(rows.columns):
            raise ConfigError(
                f"{branch.place}steps[{index}] ({step.step.name}) does not keep of which record a row "
                "was made, and a step that keeps state must know it of rows that come too late: its "
                f"class must define traced(rows), which keeps the columns {', '.join(ORIGIN)}"
            )
    return rows


def _text(branch: Branch, watermark: int) -> Column:
    time = branch.column()
    passed = f.timestamp_micros(f.lit(watermark)).cast("string")
    late = f.concat(
        f.lit(f"{branch.time} is "), time.cast("string"),
        f.lit(", and all up to "), passed, f.lit(" was done already"),
    )  # fmt: skip
    return f.when(time.isNull(), f"{branch.time} is null").otherwise(late)
