"""The order in which a writer of a table with a log does things."""

from __future__ import annotations

import time
from collections.abc import Container
from contextlib import nullcontext
from typing import TYPE_CHECKING
from uuid import uuid4

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from penstock.config.logs import event_logger
from penstock.errors import ConfigError, TransientError, nearest
from penstock.pipeline import Batch, Delivery, LastWrite, Opening, Writer, is_repetition
from penstock.pipeline.computed_rows import computed
from penstock.sinks.evolution import evolution
from penstock.sinks.lake.lake_failures import lake_errors
from penstock.sinks.lake.lake_rows import fitted, merge, need_columns
from penstock.sinks.lake.lake_table import LakeTable

if TYPE_CHECKING:
    from penstock.sinks.lake.lake_sink import LakeSink

log = event_logger(__name__)

# How often a claim is tried again at once when another commit came first.
_CLAIMS = 5


class LakeWriter(Writer["LakeSink"]):
    """Writes rows into a Delta or Iceberg table.

    `table` is the table in the session of the pipeline; a batch is written in the session of its rows.
    """

    def __init__(self, sink: LakeSink, opening: Opening, table: LakeTable) -> None:
        super().__init__(sink, opening)
        self._table = table
        self._compacted_at: float | None = None

    def prepare(self, schema: StructType) -> None:
        """Make the table where there is none; else let it follow the rows, or refuse them."""
        stored, table = self.sink.stored(schema), self._table
        with lake_errors(table.named):
            if table.exists():
                self._refuse_other_partitions(table)
                self._follow(table, stored)
            else:
                self._create(table, stored)

    def last_write(self) -> LastWrite | None:
        """Return the newest write that the table's log knows."""
        table = self._table
        with lake_errors(table.named):
            return table.last_write(self.opening.pipeline) if table.exists() else None

    def claim(self, epoch: int, continues: Container[int] = ()) -> LastWrite | None:
        """Commit the epoch to the table's log."""
        if self.opening.delivery is Delivery.AT_LEAST_ONCE:
            return None
        table, pipeline = self._table, self.opening.pipeline
        for _ in range(_CLAIMS):
            try:
                with lake_errors(table.named):
                    return table.claim(pipeline, epoch, continues)
            except TransientError as error:  # a write of an earlier epoch came first
                log.info("claim_again", pipeline=pipeline, reason=str(error))
        with lake_errors(table.named):
            return table.claim(pipeline, epoch, continues)

    def write(self, batch: Batch) -> None:
        """Add or merge the rows in one commit; a commit of an earlier run is not repeated."""
        table = self.sink.target(batch.rows.sparkSession)
        with_mark = batch.delivery is not Delivery.AT_LEAST_ONCE
        with lake_errors(table.named):
            if with_mark and is_repetition(
                table.newest(batch.pipeline), batch.mark, batch.pipeline
            ):
                batch.rows.write.format("noop").mode("overwrite").save()
                return
            if self.sink.mode == "append":
                rows = table.fit(batch.rows)
                table.append_marked(rows, batch) if with_mark else table.append(rows)
                return
            with table.marked(batch) if with_mark else nullcontext():
                self._merge(table, batch.rows)

    def read_back(self, _schema: StructType) -> DataFrame | None:
        """Return the rows of the table as it is now."""
        table = self._table
        return table.spark.table(table.sql) if table.exists() else None

    def maintain(self, batch: Batch) -> None:
        """Join small files when it is time: after the first batch, and then as often as asked for."""
        compact = self.sink.compact
        if compact is None or not compact.is_due(self._compacted_at):
            return
        table = self.sink.target(batch.rows.sparkSession)
        try:
            with lake_errors(table.named):
                table.compact(compact.keep)
        except TransientError as error:  # small files do not stop the pipeline: it retries later
            log.warning("files_not_joined", pipeline=batch.pipeline, reason=str(error))
        self._compacted_at = time.monotonic()

    def _create(self, table: LakeTable, stored: StructType) -> None:
        if not self.sink.create:
            raise ConfigError(
                f"{table.named} does not exist, and 'create' is false: create it for the columns "
                f"{stored.simpleString()[7:-1]}, or set 'create: true'"
            )
        for column in self.sink.divided_by():
            if column not in stored.names:
                raise ConfigError(
                    f"the sink {self.sink.name!r} is configured to partition by the column {column!r}; "
                    f"{nearest(column, stored.names)}"
                )
        table.create(stored, self.sink.partition_by, self.sink.properties)
        log.info("table_made", sink=self.sink.name, table=table.named)

    def _follow(self, table: LakeTable, stored: StructType) -> None:
        change = evolution(table.schema(), stored, table.named)
        if change and not self.sink.evolve:
            names = ", ".join(field.name for field in (*change.added, *change.widened))
            raise ConfigError(
                f"{table.named} lacks columns or types of the rows ({names}), and 'evolve' is false: "
                "alter the table, leave the columns out in a step, or set 'evolve: true'"
            )
        if change:
            self.sink.check(change, table)
            table.evolve(change)
            log.info(
                "table_changed",
                table=table.named,
                added=[field.name for field in change.added],
                widened=[field.name for field in change.widened],
            )

    def _refuse_other_partitions(self, table: LakeTable) -> None:
        existing = table.partitions()
        wanted = [name.replace(" ", "") for name in self.sink.partition_by]
        if wanted and [name.replace(" ", "") for name in existing] != wanted:
            raise ConfigError(
                f"{table.named} is partitioned by {', '.join(existing) or 'nothing'}, and 'partition_by' "
                f"asks for {', '.join(self.sink.partition_by)}: leave it out, or write to another table"
            )

    def _merge(self, table: LakeTable, rows: DataFrame) -> None:
        """Merge the newest row of each key. A merge reads its rows twice: they are computed once."""
        key, delete_when = self.sink.key, self.sink.delete_when
        also = [delete_when] if delete_when else []
        given = [name for name in rows.columns if name != delete_when]
        view = f"penstock_{uuid4().hex}"
        with computed(self.sink.newest(rows)) as known, table.merging():
            schema = table.schema()
            need_columns(schema, self.sink.stored(rows.schema), table.named)
            fitted(known, schema, also).createOrReplaceTempView(view)
            try:
                table.spark.sql(merge(table.sql, view, key, given, delete_when))
            finally:
                table.spark.catalog.dropTempView(view)
