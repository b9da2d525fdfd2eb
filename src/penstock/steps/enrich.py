"""Columns looked up in a table: a file, a lake table or a database, read again from time to time."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Literal, cast

from py4j.protocol import Py4JError
from pydantic import Field, PrivateAttr
from pyspark.errors import PySparkException
from pyspark.sql import functions as f
from pyspark.sql.types import StructType

from penstock.config.logs import event_logger
from penstock.errors import ConfigError, PenstockError, nearest
from penstock.pipeline import Step
from penstock.pipeline.registry import AnySink
from penstock.pipeline.schema import Schema
from penstock.pipeline.stateful import ColumnNames
from penstock.pipeline.values import Duration

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

log = event_logger(__name__)


class EnrichStep(Step):
    """The rows, with columns of a table that has the same values in `by`.

    The table is held in memory and read again when it is older than `reload`; if that fails, the one that
    is there is used on, and the log says so. If the table has several rows for a key, each gives a row.
    """

    name = "enrich"

    table: AnySink = Field(
        description="The table, written as a sink: `files`, `delta`, `iceberg` or `jdbc`."
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

    _held: DataFrame | None = PrivateAttr(default=None)
    _read_at: float = PrivateAttr(default=0.0)

    @property
    def is_stale(self) -> bool:
        """Whether the table is due to be read again."""
        return self._held is not None and time.monotonic() > self._read_at + self.reload

    def mixes(self) -> str | None:
        """Nothing: what belongs to a row is in the table."""
        return None

    def apply(self, rows: DataFrame) -> DataFrame:
        """Return the rows with the table's columns."""
        table = self._table(rows.sparkSession)
        self._check(rows.columns, table.columns)
        joined = rows.join(f.broadcast(table), self.by, self.how)
        added = [name for name in table.columns if name not in self.by]
        return joined.select(*(_column(name) for name in [*rows.columns, *added]))

    def _table(self, spark: SparkSession) -> DataFrame:
        held = self._held
        if held is not None and not self.is_stale:
            return held
        self._read_at = time.monotonic()
        try:
            self._held = self._read(spark)
        except (PenstockError, PySparkException, Py4JError) as error:
            if held is None:
                raise
            log.warning("table_not_reloaded", table=self.table.name, reason=str(error))
            return held
        if held is not None:
            held.unpersist()
        return self._held

    def _read(self, spark: SparkSession) -> DataFrame:
        """Read the whole table now, so that what is wrong with it is told here."""
        wanted = _struct(self.columns) if self.columns else None
        found = self.table.lookup(spark, wanted)
        table = (found.select(*map(_column, wanted.names)) if wanted else found).persist()
        log.info("table_loaded", table=self.table.name, rows=table.count())
        return table

    def _check(self, ours: list[str], theirs: list[str]) -> None:
        for name in self.by:
            for side, names in (("the rows", ours), ("the table", theirs)):
                if name not in names:
                    raise ConfigError(
                        f"'by' of the step 'enrich' names {name!r}, which {side} do not have"
                        f"; {nearest(name, names)}"
                    )
        if twice := (set(ours) & set(theirs)) - set(self.by):
            raise ConfigError(
                f"the rows and the table of the step 'enrich' both have a column {min(twice)!r}: "
                "leave it out by 'columns', or name it otherwise in a step before"
            )


def _struct(columns: Schema) -> StructType:
    return cast(StructType, StructType.fromDDL(columns.ddl()))


def _column(name: str) -> Column:
    return f.col(f"`{name}`")
