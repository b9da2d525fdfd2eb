"""Columns looked up in a table: a file, a lake table or a database, read again from time to time."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Literal, cast

from py4j.protocol import Py4JError
from pydantic import Field
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import StructType

from penstock.config.logs import event_logger
from penstock.errors import ConfigError, PenstockError, nearest
from penstock.pipeline import BoundStep, Step
from penstock.pipeline.names import ColumnNames, quoted
from penstock.pipeline.registry import AnySink
from penstock.pipeline.schema import Schema
from penstock.pipeline.values import Duration

log = event_logger(__name__)


class EnrichStep(Step):
    """The rows, with columns of a table that has the same values in `by`.

    The table is held in memory and read again when it is older than `reload`; if that fails, the one that
    is there is used on, and the log says so. If the table has several rows for a key, each gives a row.
    """

    name = "enrich"

    table: AnySink = Field(
        description="The table, written as a sink: `files`, `delta`, `iceberg` or `database`."
    )
    by: ColumnNames = Field(min_length=1, description="The columns that both have in common.")
    columns: Schema | None = Field(
        default=None,
        description="The table's columns to take, those of `by` among them, as `symbol string, name "
        "string`; default: all, with the types that the table says. A database needs them.",
    )
    how: Literal["left", "inner"] = Field(
        default="left",
        description="`left`: a row without a match gets nulls; `inner`: it is dropped.",
    )
    reload: Duration = Field(
        default="5m",
        validate_default=True,
        gt=0,
        description="How old the table may get before it is read again.",
    )

    @property
    def traces_in_bulk(self) -> bool:
        """Return True: every row keeps its columns."""
        return True

    def mixes(self) -> str | None:
        """Return None: each row is enriched independently, from the table."""
        return None

    def bind(self) -> EnrichedRows:
        """Return the step with the table that it looks rows up in."""
        return EnrichedRows(self)


class EnrichedRows(BoundStep):
    """Rows with columns of a table, which is read with the first rows and again when it is stale."""

    step: EnrichStep

    def __init__(self, step: EnrichStep) -> None:
        super().__init__(step)
        self._held: DataFrame | None = None
        self._read_at = 0.0

    def is_stale(self) -> bool:
        """Return whether the table is due to be read again."""
        return self._held is not None and time.monotonic() > self._read_at + self.step.reload

    def apply(self, rows: DataFrame) -> DataFrame:
        """Return the rows with the table's columns."""
        table, by = self._table(rows.sparkSession), self.step.by
        self._check(rows.columns, table.columns)
        joined = rows.join(f.broadcast(table), by, self.step.how)
        added = [name for name in table.columns if name not in by]
        return joined.select(*(_column(name) for name in [*rows.columns, *added]))

    def traced(self, rows: DataFrame) -> DataFrame:
        """Return the same: each row keeps its columns."""
        return self.apply(rows)

    def close(self) -> None:
        """Release the table's memory."""
        held, self._held = self._held, None
        if held is not None:
            with suppress(Py4JError, PySparkException, OSError):  # Java may be gone
                held.unpersist()

    def _table(self, spark: SparkSession) -> DataFrame:
        held = self._held
        if held is not None and not self.is_stale():
            return held
        self._read_at = time.monotonic()
        try:
            self._held = self._read(spark)
        except (PenstockError, PySparkException, Py4JError) as error:
            if held is None:
                raise
            log.warning("table_not_reloaded", table=self.step.table.name, reason=str(error))
            return held
        if held is not None:
            held.unpersist()
        return self._held

    def _read(self, spark: SparkSession) -> DataFrame:
        """Read the whole table now, so that what is wrong with it is reported here."""
        columns, source = self.step.columns, self.step.table
        wanted = cast(StructType, StructType.fromDDL(columns.ddl())) if columns else None
        rows = source.lookup(spark, wanted)
        table = (rows.select(*map(_column, wanted.names)) if wanted else rows).persist()
        log.info("table_loaded", table=source.name, rows=table.count())
        return table

    def _check(self, ours: list[str], theirs: list[str]) -> None:
        for name in self.step.by:
            for side, names in (("the rows", ours), ("the table", theirs)):
                if name not in names:
                    raise ConfigError(
                        f"'by' of the step 'enrich' names {name!r}, which {side} do not have"
                        f"; {nearest(name, names)}"
                    )
        if twice := (set(ours) & set(theirs)) - set(self.step.by):
            raise ConfigError(
                f"the rows and the table of the step 'enrich' both have a column {min(twice)!r}: "
                "leave it out by 'columns', or name it otherwise in a step before"
            )


def _column(name: str) -> Column:
    return f.col(quoted(name))
