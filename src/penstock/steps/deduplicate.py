"""The first of rows that are the same, within a stretch of time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from penstock.pipeline.names import ColumnNames
from penstock.pipeline.stateful import Stateful, kept_columns
from penstock.pipeline.values import Duration

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType


class DeduplicateStep(Stateful):
    """Of rows with the same values in `by`, the first one; the others are dropped.

    Rows whose times lie up to `within` apart are never both kept. A key is forgotten between two
    batches, once a row has come that is `within` younger. A row that comes more than `within` after
    younger ones is late, and goes to the dead letters.
    """

    name = "deduplicate"

    by: ColumnNames = Field(min_length=1, description="The columns that make a row what it is.")
    within: Duration = Field(gt=0, description="How long a key is remembered, by the rows' time.")

    @property
    def delay(self) -> float:
        """Return how long keys are remembered."""
        return self.within

    def until(self, time: Column) -> Column:
        """Return the row's own time."""
        return time

    def apply(self, rows: DataFrame) -> DataFrame:
        """Return the first row of each key."""
        if not rows.isStreaming:
            return rows.dropDuplicates(self.by)
        return rows.dropDuplicatesWithinWatermark(self.by)

    def shape(self, rows: StructType) -> dict[str, str]:
        """Describe the state: the keys."""
        return {"time": self.time, "by": kept_columns(rows, self.by)}
