"""One Delta table: a commit holds the rows and, as Delta's own transaction, the batch's number."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import StructType

from penstock.pipeline import Batch, Mark
from penstock.sinks.delta import transaction
from penstock.sinks.evolution import Evolution
from penstock.sinks.lake.rows import nullable
from penstock.sinks.lake.sessions import setting
from penstock.sinks.lake.table import LakeTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_TRANSACTION = "spark.databricks.delta.write.txn"
# Delta writes its log anew with every tenth commit by default: too often where each batch is one.
_CALM = {"delta.checkpointInterval": "100"}
# A batch's number and its part's number in the one number that Delta keeps.
_PARTS = 1 << 24


class DeltaTable(LakeTable):
    """A Delta table by path or by name."""

    def __init__(self, spark: SparkSession, sql: str, named: str, place: str | None = None) -> None:
        super().__init__(spark, sql, named)
        self._place = place

    def exists(self) -> bool:
        """Whether there is a log."""
        if self._place is None:
            return self.spark.catalog.tableExists(self.sql)
        return bool(self._log().tableExists())

    def partitions(self) -> list[str]:
        """Return the partition columns."""
        columns = self._snapshot().metadata().partitionColumns()
        return [str(columns.apply(at)) for at in range(columns.size())]

    def schema(self) -> StructType:
        """Return the columns as they are now."""
        return StructType.fromJson(json.loads(self._snapshot().schema().json()))

    def create(
        self, schema: StructType, partition_by: Sequence[str], properties: dict[str, str]
    ) -> None:
        """Make the table, empty."""
        made = self.jvm.io.delta.tables.DeltaTable.createIfNotExists(self.session)
        made = made.tableName(self.sql) if self._place is None else made.location(self._place)
        made = made.addColumns(self.session.parseDataType(nullable(schema).json()))
        if partition_by:
            made = made.partitionedBy(self._array(partition_by))
        for name, value in (_CALM | properties).items():
            made = made.property(name, value)
        made.execute()

    def evolve(self, change: Evolution) -> None:
        """Add columns and widen types; a table is allowed to widen only when one has to."""
        if change.widened:
            self.spark.sql(
                f"ALTER TABLE {self.sql} SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')"
            )
        super().evolve(change)

    def newest(self, pipeline: str) -> Mark | None:
        """Return the greatest mark among the table's transactions."""
        kept = self._transactions()
        found = re.compile(rf"penstock~{re.escape(pipeline)}~(\d+)")
        marks = [
            Mark(int(match[1]), *divmod(version, _PARTS))
            for application, version in kept.items()
            if (match := found.fullmatch(application))
        ]
        return max(marks, default=None)

    @contextmanager
    def marked(self, batch: Batch) -> Iterator[None]:
        """Give the next commit of this session the batch's number."""
        with (
            setting(self.spark, f"{_TRANSACTION}AppId", _application(batch)),
            setting(self.spark, f"{_TRANSACTION}Version", str(_version(batch))),
        ):
            yield

    def merging(self) -> AbstractContextManager[Any]:
        """Let Delta take the rows as they are: it would keep a second copy of them."""
        return setting(self.spark, "spark.databricks.delta.merge.materializeSource", "none")

    def append(self, rows: DataFrame) -> None:
        """Add rows."""
        rows.write.format("delta").mode("append").save(self._location())

    def append_marked(self, rows: DataFrame, batch: Batch) -> None:
        """Add rows together with the batch's number."""
        if not transaction.usable(self.spark):
            return super().append_marked(rows, batch)
        return transaction.append(self._log(), rows, _application(batch), _version(batch))

    def compact(self, keep: float | None) -> None:
        """Join small files; remove what older versions need."""
        self.spark.sql(f"OPTIMIZE {self.sql}")
        if keep is not None:
            # Delta asks for a week at least; how long is enough was said in the options.
            with setting(
                self.spark, "spark.databricks.delta.retentionDurationCheck.enabled", "false"
            ):
                self.spark.sql(f"VACUUM {self.sql} RETAIN {keep / 3600:.4f} HOURS")

    def _transactions(self) -> dict[str, int]:
        snapshot = self._snapshot()
        if transaction.usable(self.spark) and (known := transaction.known(snapshot)) is not None:
            return known
        convert = self.jvm.scala.jdk.javaapi.CollectionConverters
        kept = convert.asJava(snapshot.transactions())
        return {str(name): int(version) for name, version in kept.items()}

    def _array(self, names: Sequence[str]) -> Any:
        gateway: Any = self.spark.sparkContext._gateway
        array = gateway.new_array(self.jvm.String, len(names))
        for at, name in enumerate(names):
            array[at] = name
        return array

    def _snapshot(self) -> Any:
        none = self.jvm.scala.Option.empty()
        return self._log().update(False, none, none)

    def _log(self) -> Any:
        log = self.jvm.org.apache.spark.sql.delta.DeltaLog
        return log.forTable(self.session, self._location())

    def _location(self) -> str:
        if self._place is None:
            detail: Any = self.spark.sql(f"DESCRIBE DETAIL {self.sql}").first()
            self._place = str(detail["location"])
        return self._place


def _application(batch: Batch) -> str:
    return f"penstock~{batch.pipeline}~{batch.epoch}"


def _version(batch: Batch) -> int:
    return batch.id * _PARTS + batch.part
