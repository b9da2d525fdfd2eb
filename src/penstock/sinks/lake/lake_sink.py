"""Base of the sinks of tables with a log: their common options; which table it is, each sink says."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from pydantic import Field
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from penstock.errors import ConfigError
from penstock.pipeline import EVERY_DELIVERY, Opening, Writer
from penstock.pipeline.names import ColumnNames
from penstock.pipeline.values import Duration
from penstock.sinks.compaction import Compaction
from penstock.sinks.evolution import Evolution
from penstock.sinks.lake.lake_failures import lake_errors
from penstock.sinks.lake.lake_table import LakeTable
from penstock.sinks.lake.lake_writer import LakeWriter
from penstock.sinks.tables import KeyedSink


def need_extension(spark: SparkSession, sink: str, extension: str) -> None:
    """Refuse a session of another application that lacks it: one of ours has it."""
    if extension not in (spark.conf.get("spark.sql.extensions", "") or ""):
        raise ConfigError(
            f"the sink {sink!r} needs a Spark session with the setting 'spark.sql.extensions' = "
            f"{extension!r}; the one that runs in this process was started without it: start it with "
            "that setting and its jars, or let Penstock start the session"
        )


class LakeCompaction(Compaction):
    """When small files are joined, and how long what they replace is kept."""

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

    partition_by: ColumnNames = Field(
        default_factory=list, description="Columns that become folders."
    )
    properties: dict[str, str] = Field(
        default_factory=dict, description="Properties of the table, given to it when it is made."
    )
    create: bool = Field(default=True, description="Whether a table that is missing is made.")
    evolve: bool = Field(
        default=True,
        description="Whether the table gains the columns and the wider types that the rows have; if not, "
        "such rows are refused when the pipeline starts.",
    )
    compact: LakeCompaction | None = Field(
        default=None,
        description="Join small files between two batches, as in `{every: 1h}`; default: never.",
    )

    @abstractmethod
    def target(self, spark: SparkSession) -> LakeTable:
        """Return the table that the options name."""

    def open(self, opening: Opening) -> Writer:
        """Find the table, and return what writes to it."""
        return LakeWriter(self, opening, self.target(opening.spark))

    def lookup(self, spark: SparkSession, _columns: StructType | None) -> DataFrame:
        """Return the rows of the table as it is now."""
        table = self.target(spark)
        with lake_errors(table.named):
            if not table.exists():
                raise ConfigError(f"there is no {table.named} to look rows up in")
            return spark.table(table.sql)

    def divided_by(self) -> Sequence[str]:
        """Return the columns that `partition_by` names."""
        return self.partition_by

    def check(self, change: Evolution, table: LakeTable) -> None:
        """Refuse a change that this format cannot make."""
