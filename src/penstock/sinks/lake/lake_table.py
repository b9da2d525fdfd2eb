"""One table with a log, as its sink sees it: what Delta and Iceberg do alike, and what each must say."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Container, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from penstock.pipeline import Batch, LastWrite, Mark
from penstock.pipeline.names import quoted
from penstock.sinks.evolution import Evolution
from penstock.sinks.lake.lake_rows import fitted, need_columns


class LakeTable(ABC):
    """A table that may not be there yet. `sql` is its name in statements, `named` its name for people."""

    def __init__(self, spark: SparkSession, sql: str, named: str) -> None:
        self.spark = spark
        self.sql = sql
        self.named = named

    @property
    def jvm(self) -> Any:
        """Return Spark's JVM."""
        return self.spark._jvm

    @property
    def session(self) -> Any:
        """Return the session's Java object."""
        return self.spark._jsparkSession

    @contextmanager
    def setting(self, name: str, value: str) -> Iterator[None]:
        """Set something for what is inside: each pipeline has a session state of its own."""
        conf = self.spark.conf
        before = conf.get(name, None)
        conf.set(name, value)
        try:
            yield
        finally:
            if before is None:
                conf.unset(name)
            else:
                conf.set(name, before)

    def schema(self) -> StructType:
        """Return the columns as they are now."""
        return self.spark.table(self.sql).schema

    def fit(self, rows: DataFrame) -> DataFrame:
        """Return rows as the table takes them, or refuse a column that it has no more."""
        schema = self.schema()
        need_columns(schema, rows.schema, self.named)
        return fitted(rows, schema)

    def evolve(self, change: Evolution) -> None:
        """Add columns and widen types. Each statement stands alone: the next start does what is left."""
        for field in change.added:
            declared = StructType([field]).toDDL()
            self.spark.sql(f"ALTER TABLE {self.sql} ADD COLUMNS ({declared})")
        for field in change.widened:
            kind = field.dataType.simpleString()
            self.spark.sql(f"ALTER TABLE {self.sql} ALTER COLUMN {quoted(field.name)} TYPE {kind}")

    @abstractmethod
    def exists(self) -> bool:
        """Return whether the table exists."""

    @abstractmethod
    def create(
        self, schema: StructType, partition_by: Sequence[str], properties: dict[str, str]
    ) -> None:
        """Create the empty table. Every column accepts nulls: later rows are not known."""

    @abstractmethod
    def partitions(self) -> list[str]:
        """Return what the table is partitioned by, as `partition_by` would say it."""

    @abstractmethod
    def newest(self, pipeline: str) -> Mark | None:
        """Return the mark of the pipeline's newest write that is part of the table."""

    @abstractmethod
    def last_write(self, pipeline: str) -> LastWrite | None:
        """Return the pipeline's newest write, with the ranges of offsets that it covers."""

    @abstractmethod
    def claim(self, pipeline: str, epoch: int, continues: Container[int] = ()) -> LastWrite | None:
        """Make the epoch the pipeline's newest in one commit; return the last write before it.

        A write of an earlier epoch that has begun already cannot become part of the table after it.
        """

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
