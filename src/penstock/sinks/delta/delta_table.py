"""One Delta table: a commit holds the rows and, as Delta's own transaction, the batch's number."""

from __future__ import annotations

import json
from collections.abc import Container, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from penstock.errors import TransientError
from penstock.pipeline import CLAIMED, Batch, LastWrite, Mark, is_repetition
from penstock.sinks.delta import delta_transaction
from penstock.sinks.delta.delta_marks import (
    Numbers,
    as_text,
    claim_of,
    epochs_in,
    guard,
    newest_in,
    number_of,
    ranges_in,
)
from penstock.sinks.evolution import Evolution, with_nested
from penstock.sinks.fencing import claimed
from penstock.sinks.lake.lake_rows import nullable
from penstock.sinks.lake.lake_table import LakeTable

_TRANSACTION = "spark.databricks.delta.write.txn"
# How many commits of others, since a pipeline's last one, are read to find it at a start.
_COMMITS = 10_000
_TEXT = "spark.databricks.delta.commitInfo.userMetadata"
# Delta rewrites its log with every tenth commit by default: too often if each batch is one.
_CALM = {"delta.checkpointInterval": "100"}


class DeltaTable(LakeTable):
    """A Delta table by path or by name."""

    def __init__(self, spark: SparkSession, sql: str, named: str, place: str | None = None) -> None:
        super().__init__(spark, sql, named)
        self._place = place

    def exists(self) -> bool:
        """Return whether there is a log."""
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
        for name, value in (_CALM | _naming(schema) | properties).items():
            made = made.property(name, value)
        made.execute()

    def evolve(self, change: Evolution) -> None:
        """Add columns and widen types; a table is given what that takes only when one has to."""
        needed = _naming(StructType(list(change.added)))
        if change.widened:
            needed = {**needed, "delta.enableTypeWidening": "true"}
        for name, value in needed.items():
            self.spark.sql(f"ALTER TABLE {self.sql} SET TBLPROPERTIES ('{name}' = '{value}')")
        super().evolve(change)

    def newest(self, pipeline: str) -> Mark | None:
        """Return the greatest mark among the numbers of the table's applications."""
        return newest_in(self._numbers(), pipeline)

    def last_write(self, pipeline: str) -> LastWrite | None:
        """Return the greatest mark, with the ranges in the text of its commit."""
        mark = self.newest(pipeline)
        if mark is None:
            return None
        write = next(filter(None, (ranges_in(x, pipeline, mark) for x in self._commits())), None)
        return write or LastWrite(mark)

    def claim(self, pipeline: str, epoch: int, continues: Container[int] = ()) -> LastWrite | None:
        """Commit the epoch's application, and the ones of all earlier epochs as closed.

        A commit fails when an application that it depends on was committed since it began, and Delta
        skips a write whose number is not greater: so does every write of an earlier epoch.
        """
        last = self.last_write(pipeline)
        claim = claimed(last, epoch, pipeline, continues)
        with self._text(pipeline, claim):
            if delta_transaction.usable(self.spark):
                own, number = number_of(pipeline, claim.mark)
                self._claim_at_once(pipeline, last, {own: number})
            else:
                self._claim_in_turn(pipeline, claim.mark)
        return last

    def _claim_at_once(self, pipeline: str, last: LastWrite | None, own: dict[str, int]) -> None:
        change = delta_transaction.Transaction(self.spark, self._log())
        numbers = change.numbers()
        earlier = epochs_in(numbers, pipeline)
        change.depend_on([guard(pipeline), *earlier])
        if newest_in(numbers, pipeline) != (last.mark if last else None):
            raise TransientError(f"{self.named} was written to while {pipeline!r} was claimed")
        change.commit({**earlier, **own, guard(pipeline): numbers.get(guard(pipeline), 0) + 1})

    def _claim_in_turn(self, pipeline: str, mark: Mark) -> None:
        """Claim with Delta's public writer, which takes one number, greater than before, in a commit.

        The own epoch comes first: from then on no earlier one begins a write. Then each earlier one
        is closed, which ends a write of it that has begun.
        """
        nothing = self.spark.createDataFrame([], self.schema())
        earlier = epochs_in(self._numbers(), pipeline)
        own = {claim_of(pipeline, mark.epoch): 0}
        if mark.batch != CLAIMED:
            own = dict([number_of(pipeline, mark)])
        for application, number in {**own, **earlier}.items():
            with self._numbered(application, number):
                self.append(nothing)

    @contextmanager
    def marked(self, batch: Batch) -> Iterator[None]:
        """Give the next commit of this session the batch's number, and its ranges."""
        newest = self.newest(batch.pipeline)
        if newest is None or newest.epoch < batch.epoch:
            self.claim(batch.pipeline, batch.epoch)  # a later claim finds, and ends, what is known
        with (
            self._text(batch.pipeline, batch.as_write),
            self._numbered(*number_of(batch.pipeline, batch.mark)),
        ):
            yield
        # Delta's writers silently skip a write of a closed epoch.
        if not is_repetition(self.newest(batch.pipeline), batch.mark, batch.pipeline):
            raise TransientError(f"{self.named} did not take {batch.label}; the batch is run again")

    def _numbered(self, application: str, number: int) -> AbstractContextManager[Any]:
        settings = ExitStack()
        settings.enter_context(self.setting(f"{_TRANSACTION}AppId", application))
        settings.enter_context(self.setting(f"{_TRANSACTION}Version", str(number)))
        return settings

    def _text(self, pipeline: str, write: LastWrite) -> AbstractContextManager[None]:
        return self.setting(_TEXT, as_text(pipeline, write))

    def merging(self) -> AbstractContextManager[Any]:
        """Let Delta take the rows as they are: it would keep a second copy of them."""
        return self.setting("spark.databricks.delta.merge.materializeSource", "none")

    def append(self, rows: DataFrame) -> None:
        """Add rows."""
        rows.write.format("delta").mode("append").save(self._location())

    def append_marked(self, rows: DataFrame, batch: Batch) -> None:
        """Add rows together with the batch's number, and its ranges."""
        if not delta_transaction.usable(self.spark):
            return super().append_marked(rows, batch)
        change = delta_transaction.Transaction(self.spark, self._log())
        application, number = number_of(batch.pipeline, batch.mark)
        change.depend_on([guard(batch.pipeline), application])
        if is_repetition(newest_in(change.numbers(), batch.pipeline), batch.mark, batch.pipeline):
            raise TransientError(f"another process wrote {batch.label} just now")
        with self._text(batch.pipeline, batch.as_write):
            return change.commit({application: number}, rows)

    def compact(self, keep: float | None) -> None:
        """Join small files; remove what older versions need."""
        self.spark.sql(f"OPTIMIZE {self.sql}")
        if keep is not None:
            # Delta asks for a week at least; how long is enough was said in the options.
            with self.setting("spark.databricks.delta.retentionDurationCheck.enabled", "false"):
                self.spark.sql(f"VACUUM {self.sql} RETAIN {keep / 3600:.4f} HOURS")

    def _numbers(self) -> Numbers:
        if delta_transaction.usable(self.spark):
            return delta_transaction.numbers_of(self.jvm, self._snapshot())
        return delta_transaction.all_numbers_of(self.jvm, self._snapshot())

    def _commits(self) -> Iterator[list[str]]:
        """Yield the actions of each commit that the log still has, the newest first."""
        log, names = self._log(), self.jvm.org.apache.spark.sql.delta.util.FileNames
        hadoop = log.newDeltaHadoopConf()
        newest = int(self._snapshot().version())
        for version in range(newest, max(newest - _COMMITS, -1), -1):
            try:
                lines = log.store().read(names.unsafeDeltaFile(log.logPath(), version), hadoop)
            except Py4JJavaError as error:
                if "FileNotFoundException" in str(error.java_exception):
                    return
                raise
            yield str(lines.mkString("\n")).split("\n")

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


def _naming(columns: StructType) -> dict[str, str]:
    """Return properties that allow names with spaces, commas and some others, which Delta refuses."""
    structs = (kind for kind in with_nested(columns) if isinstance(kind, StructType))
    unusual = any(set(" ,;{}()\n\t=") & set(name) for struct in structs for name in struct.names)
    return {"delta.columnMapping.mode": "name"} if unusual else {}
