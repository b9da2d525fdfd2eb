"""Writes the files of one pipeline: the order in which things are done, and the table as it is known."""

from __future__ import annotations

import time
from collections.abc import Container
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from penstock.config.logs import event_logger
from penstock.errors import ConfigError, TransientError
from penstock.pipeline import CLAIMED, Batch, Delivery, LastWrite, Mark, Opening, Writer
from penstock.pipeline.storage import Folder, unglobbed
from penstock.sinks.files.file_table import FileTable, checked, inferred, keep, known, other_folders
from penstock.sinks.files.file_writing import Files, refuse_unwritable, storage_errors
from penstock.sinks.files.formats import FORMATS, storable
from penstock.sinks.files.joining import Joining
from penstock.sinks.files.journal import LOG, Journal
from penstock.sinks.files.rolling import Rolling
from penstock.sinks.files.staging import epoch_in, new_staging, remove_staging

if TYPE_CHECKING:
    from penstock.sinks.files.files_sink import FilesSink

log = event_logger(__name__)


class FilesWriter(Writer["FilesSink"]):
    """Writes rows aside, and brings their files into the table with the pipeline's journal."""

    def __init__(self, sink: FilesSink, opening: Opening, folder: Folder) -> None:
        super().__init__(sink, opening)
        self._folder = folder
        self._journal = Journal(folder, opening.pipeline)
        self._pipeline = opening.pipeline
        self._table: FileTable | None = None
        self._rolling = Rolling(sink.file_size)
        self._joined_at: float | None = None

    def prepare(self, schema: StructType) -> None:
        """Finish what was left, and refuse a folder or rows that do not fit."""
        storable(schema)
        checked(self.sink.partition_by, schema)
        with storage_errors(self.sink.path):
            self._journal.settled()
            refuse_unwritable(self.sink.path)
            self._fit(self.opening.spark, schema)

    def last_write(self) -> LastWrite | None:
        """Return the newest write of the pipeline that the table's journal has."""
        with storage_errors(self.sink.path):
            act = self._journal.state().act
            return act.last if act else self._unmarked()

    def claim(self, epoch: int, continues: Container[int] = ()) -> LastWrite | None:
        """Make an epoch the newest one in the table's journal."""
        with storage_errors(self.sink.path):
            return self._journal.claim(epoch, self._unmarked, continues)

    def write(self, batch: Batch) -> None:
        """Write the rows aside, then bring their files into the table."""
        folder, journal = self._folder, self._journal
        with storage_errors(self.sink.path):
            before = journal.settled().act
            is_known = journal.has(batch, before)
            if batch.may_repeat:
                fenced = batch.delivery is not Delivery.AT_LEAST_ONCE
                remove_staging(folder, batch.pipeline, batch.mark, older_epochs=fenced)
            if is_known:
                batch.rows.write.format("noop").mode("overwrite").save()
                return
            spark = batch.rows.sparkSession
            files = self._files(spark, self._fit(spark, batch.rows.schema))
            added = self._written_aside(files, batch)
            replaced = []
            if not before or (batch.may_repeat and batch.delivery is Delivery.AT_LEAST_ONCE):
                # Files of this batch that were written before the table had a journal.
                replaced = list(folder.sizes(f"{files.table.folders}{batch.label}~*"))
            journal.write(batch, added, replaced)

    def _written_aside(self, files: Files, batch: Batch) -> dict[str, str]:
        """Write the rows; return where each file is, and its name in the table."""
        aside = new_staging(batch.label)
        written = files.write(batch.rows, aside, self._rolling.rows)
        return {
            f"{aside}/{name}": files.place(name, batch.label)
            for name in self._rolling.roll(files, aside, written)
        }

    def read_back(self, schema: StructType) -> DataFrame | None:
        """Return the rows of all files; CSV does not keep enough of them."""
        if self.sink.format == "csv":
            return super().read_back(schema)
        folder = self._folder
        for pipeline in folder.names(LOG):
            Journal(folder, pipeline).settled()
        if (table := known(folder)) is None:
            return None
        reader = self.opening.spark.read.schema(table.columns).format(table.format)
        return reader.load(unglobbed(folder.uri))

    def maintain(self, batch: Batch) -> None:
        """Join small files when it is time: after the first batch, and then as often as asked for."""
        compact = self.sink.compact
        if compact is None or self._table is None or not compact.is_due(self._joined_at):
            return
        files = self._files(batch.rows.sparkSession, self._table)
        try:
            with storage_errors(self.sink.path):
                Joining(self._journal).join(files, batch, self.sink.file_size, compact.files)
        except TransientError as error:  # small files do not stop the pipeline: it retries later
            log.warning("files_not_joined", pipeline=batch.pipeline, reason=str(error))
        self._joined_at = time.monotonic()

    def _unmarked(self) -> LastWrite | None:
        """Return the newest epoch in the names of files: an older version had no other mark."""
        names = self._folder.sizes(f"{'*/' * len(self.sink.partition_by)}{self._pipeline}~*")
        found_in = (epoch_in(name, self._pipeline) for name in names)
        epochs = [epoch for epoch in found_in if epoch is not None]
        return LastWrite(Mark(max(epochs), CLAIMED, 0)) if epochs else None

    def _files(self, spark: SparkSession, table: FileTable) -> Files:
        compression = self.sink.compression or FORMATS[self.sink.format].compressions[0]
        return Files(spark, self._folder, table, compression)

    def _fit(self, spark: SparkSession, rows: StructType) -> FileTable:
        """Return the table's form, made to fit the rows and kept where it is new."""
        folder = self._folder
        wanted = FileTable(self.sink.format, tuple(self.sink.partition_by), rows)
        kept = self._table or known(folder)
        while True:
            table = kept or inferred(spark, folder, wanted) or wanted
            self._refuse_other(table)
            fitting = table.fitting(rows, f"the table in {self.sink.path}")
            if fitting == kept:
                break
            if (now := known(folder)) == kept and keep(folder, fitting):
                break
            kept = now if now != kept else known(folder)
        self._table = fitting
        return fitting

    def _refuse_other(self, table: FileTable) -> None:
        sink = self.sink
        if table.format != sink.format:
            raise ConfigError(
                f"the table in {sink.path} has files of format {table.format!r}, and 'format' asks for "
                f"{sink.format!r}: give it as {table.format!r}, or write to another folder"
            )
        if table.partition_by != tuple(sink.partition_by):
            raise other_folders(sink.path, table.partition_by, tuple(sink.partition_by))
