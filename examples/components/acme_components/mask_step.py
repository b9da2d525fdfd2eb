"""A step: rows in, rows out. One that reads something first overrides `bind` instead of `apply`."""

from __future__ import annotations

from pydantic import Field
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from penstock.pipeline import Step
from penstock.pipeline.names import ColumnNames, quoted


class MaskStep(Step):
    """Texts in which all but the last characters are asterisks."""

    name = "mask"
    main_option = "columns"

    columns: ColumnNames = Field(min_length=1, description="The columns to mask.")
    keep: int = Field(default=4, ge=0, description="How many characters stay readable.")

    def apply(self, rows: DataFrame) -> DataFrame:
        """Return the rows with masked columns."""
        hidden = rf".(?=.{{{self.keep}}})"
        masked = {name: f.regexp_replace(f.col(quoted(name)), hidden, "*") for name in self.columns}
        return rows.withColumns(masked)

    def mixes(self) -> None:
        """Return None: rows are independent, so the step may precede a stateful one."""
