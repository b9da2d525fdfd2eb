"""One table with a log, as its sink sees it: what Delta and Iceberg do alike, and what each must say."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import StructField, StructType

from penstock.pipeline import Batch, Mark
from penstock.sinks.evolution import Evolution
from penstock.sinks.lake.rows import fitted, quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class LakeTable(ABC):
    """A table that may not be there yet. `sql` is its name in statements, `named` its name for people."""

    def __init__(self, spark: SparkSession, sql: str, named: str) -> None:
        self.spark = spark
        self.sql = sql
        self.named = named

    @property
    def jvm(self) -> Any:
        """Spark's Java side."""
        return self.spark._jvm

    @property
    def session(self) -> Any:
        """The session as Java knows it."""
        return self.spark._jsparkSession

    def schema(self) -> StructType:
        """Return the columns as they are now."""
        return self.spark.table(self.sql).schema

    def fit(self, rows: DataFrame) -> DataFrame:
        """Return rows as the table takes them."""
        return fitted(rows, self.schema())

    def evolve(self, change: Evolution) -> None:
        """Add columns and widen types. Each statement stands alone: the next start does what is left."""
        for field in change.added:
            self.spark.sql(f"ALTER TABLE {self.sql} ADD COLUMNS ({_declared(field)})")
        for field in change.widened:
            kind = field.dataType.simpleString()
            self.spark.sql(f"ALTER TABLE {self.sql} ALTER COLUMN {quoted(field.name)} TYPE {kind}")

    @abstractmethod
    def exists(self) -> bool:
        """Whether the table is there."""

    @abstractmethod
    def create(
        self, schema: StructType, partition_by: Sequence[str], properties: dict[str, str]
    ) -> None:
        """Make the table, empty. Every column takes nulls: nobody knows what rows will come."""

    @abstractmethod
    def partitions(self) -> list[str]:
        """Return what the table is partitioned by, as `partition_by` would say it."""

    @abstractmethod
    def newest(self, pipeline: str) -> Mark | None:
        """Return the mark of the pipeline's newest write that is part of the table."""

    @abstractmethod
    def marked(self, batch: Batch) -> AbstractContextManager[None]:
        """Let the one write inside become part of the table together with the batch's mark."""

    def merging(self) -> AbstractContextManager[Any]:
        """Set what a merge of rows that are computed already needs."""
        return nullcontext()

    @abstractmethod
    def append(self, rows: DataFrame) -> None:
        """Add rows that `fit` gave."""

    def append_marked(self, rows: DataFrame, batch: Batch) -> None:
        """Add rows together with the batch's mark."""
        with self.marked(batch):
            self.append(rows)

    @abstractmethod
    def compact(self, keep: float | None) -> None:
        """Join small files; remove what only versions older than `keep` seconds need."""

    def remember(self, batch: Batch) -> None:  # noqa: B027  not every format forgets
        """Keep the batch's mark where removing old versions does not reach it."""


def _declared(field: StructField) -> str:
    return StructType([field]).toDDL()
