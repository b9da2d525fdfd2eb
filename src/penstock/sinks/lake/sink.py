"""The order in which a sink of a table with a log does things; which table it is, each sink says."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING
from uuid import uuid4

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr

from penstock.config.logs import event_logger
from penstock.errors import ConfigError, TransientError, nearest
from penstock.pipeline import EVERY_DELIVERY, Batch, Delivery, Opening
from penstock.pipeline.values import Duration
from penstock.sinks.evolution import Evolution, evolution
from penstock.sinks.lake.failures import lake_errors
from penstock.sinks.lake.rows import computed, fitted, merge
from penstock.sinks.lake.table import LakeTable
from penstock.sinks.tables import Columns, KeyedSink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

log = event_logger(__name__)


class Compaction(BaseModel):
    """When small files are joined, and how long what they replace is kept."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    every: Duration = Field(
        default="1h",
        validate_default=True,
        description="The shortest time between two joinings, as in `1h`.",
    )
    keep: Duration | None = Field(
        default=None,
        ge=3600,
        description="How long older versions of the table can be read, as in `7d`: after a joining, "
        "what only older ones need is removed. It must be longer than any write to the table takes. "
        "Default: nothing is removed.",
    )


class LakeSink(KeyedSink):
    """Base of the sinks `delta` and `iceberg`."""

    delivers = EVERY_DELIVERY

    partition_by: Columns = Field(default_factory=list, description="Columns that become folders.")
    properties: dict[str, str] = Field(
        default_factory=dict, description="Properties of the table, given to it when it is made."
    )
    compact: Compaction | None = Field(
        default=None,
        description="Join small files between two batches, as in `{every: 1h}`; default: never.",
    )

    _compacted_at: float | None = PrivateAttr(default=None)

    @abstractmethod
    def target(self, spark: SparkSession) -> LakeTable:
        """Return the table that the options name."""

    def prepare(self, opening: Opening) -> None:
        """Make the table where there is none; else let it follow the rows, or refuse them."""
        stored = self.stored(opening.schema)
        table = self.target(opening.spark)
        self._compacted_at = None
        with lake_errors(table.named):
            if table.exists():
                self._refuse_other_partitions(table)
                self._follow(table, stored)
            else:
                self._create(table, stored)

    def write(self, batch: Batch) -> None:
        """Add or merge the rows in one commit; one that an earlier run made is not made again."""
        table = self.target(batch.rows.sparkSession)
        exactly_once = batch.delivery is Delivery.EXACTLY_ONCE
        with lake_errors(table.named):
            if exactly_once and _has(table, batch):
                batch.rows.write.format("noop").mode("overwrite").save()
                return
            if self.mode == "append":
                rows = table.fit(batch.rows)
                table.append_marked(rows, batch) if exactly_once else table.append(rows)
                return
            with table.marked(batch) if exactly_once else nullcontext():
                self._merge(table, batch.rows)

    def read_back(self, opening: Opening) -> DataFrame | None:
        """Return the rows of the table as it is now."""
        table = self.target(opening.spark)
        return opening.spark.table(table.sql) if table.exists() else None

    def lookup(self, spark: SparkSession, _columns: StructType | None) -> DataFrame:
        """Return the rows of the table as it is now."""
        table = self.target(spark)
        with lake_errors(table.named):
            if not table.exists():
                raise ConfigError(f"there is no {table.named} to look rows up in")
            return spark.table(table.sql)

    def tidy(self, batch: Batch) -> None:
        """Join small files when it is time: after the first batch, and then as often as asked for."""
        if self.compact is None or not self._is_due(self.compact):
            return
        table = self.target(batch.rows.sparkSession)
        try:
            with lake_errors(table.named):
                if batch.delivery is Delivery.EXACTLY_ONCE:
                    table.remember(batch)
                table.compact(self.compact.keep)
        except TransientError as error:  # small files are no reason to stop: there is a next time
            log.warning("files_not_joined", pipeline=batch.pipeline, reason=str(error))
        self._compacted_at = time.monotonic()

    def divided_by(self) -> Sequence[str]:
        """Return the columns that `partition_by` names."""
        return self.partition_by

    def check(self, change: Evolution, table: LakeTable) -> None:
        """Refuse a change that this format cannot make."""

    def _create(self, table: LakeTable, stored: StructType) -> None:
        for column in self.divided_by():
            if column not in stored.names:
                raise ConfigError(
                    f"the sink {self.name!r} is told to partition by the column {column!r}; "
                    f"{nearest(column, stored.names)}"
                )
        table.create(stored, self.partition_by, self.properties)
        log.info("table_made", sink=self.name, table=table.named)

    def _follow(self, table: LakeTable, stored: StructType) -> None:
        change = evolution(table.schema(), stored, table.named)
        if change:
            self.check(change, table)
            table.evolve(change)
            log.info(
                "table_changed",
                table=table.named,
                added=[field.name for field in change.added],
                widened=[field.name for field in change.widened],
            )

    def _refuse_other_partitions(self, table: LakeTable) -> None:
        found = table.partitions()
        wanted = [name.replace(" ", "") for name in self.partition_by]
        if wanted and [name.replace(" ", "") for name in found] != wanted:
            raise ConfigError(
                f"{table.named} is partitioned by {', '.join(found) or 'nothing'}, and 'partition_by' "
                f"asks for {', '.join(self.partition_by)}: leave it out, or write to another table"
            )

    def _merge(self, table: LakeTable, rows: DataFrame) -> None:
        """Merge the newest row of each key. A merge reads its rows twice: they are computed once."""
        also = [self.delete_when] if self.delete_when else []
        given = [name for name in rows.columns if name != self.delete_when]
        view = f"penstock_{uuid4().hex}"
        with computed(self.newest(rows)) as known, table.merging():
            fitted(known, table.schema(), also).createOrReplaceTempView(view)
            try:
                table.spark.sql(merge(table.sql, view, self.key, given, self.delete_when))
            finally:
                table.spark.catalog.dropTempView(view)

    def _is_due(self, compact: Compaction) -> bool:
        last = self._compacted_at
        return last is None or time.monotonic() >= last + compact.every


def _has(table: LakeTable, batch: Batch) -> bool:
    newest = table.newest(batch.pipeline)
    return newest is not None and newest >= batch.mark
