"""The sink `files`: what it promises, its options, and the order in which it does things."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Literal

from py4j.protocol import Py4JJavaError
from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, model_validator
from pyspark.errors import PySparkException

from penstock.config.logs import event_logger
from penstock.errors import ConfigError, SetupError, TransientError
from penstock.pipeline import EVERY_DELIVERY, Batch, Opening, Sink
from penstock.pipeline.storage import Folder, for_spark, unglobbed
from penstock.pipeline.values import Duration
from penstock.sinks.files.formats import FORMATS, storable
from penstock.sinks.files.joining import Joining
from penstock.sinks.files.rolling import Rolling
from penstock.sinks.files.sizes import Size
from penstock.sinks.files.table import HIDDEN, FileTable, checked, found, keep, known, other_folders
from penstock.sinks.files.writing import Files, refuse_unwritable, storage_errors
from penstock.sinks.tables import Columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

log = event_logger(__name__)


class Compaction(BaseModel):
    """When small files are joined. A file is small when it has less than half of `file_size`."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    every: Duration = Field(
        default="1h",
        validate_default=True,
        description="The shortest time between two joinings, as in `1h`.",
    )
    files: int = Field(
        default=8, ge=2, description="How many small files a folder must have to be worth it."
    )


class FilesSink(Sink):
    """Rows as Parquet, JSON or CSV files under a folder or a URI.

    Exactly-once: files carry the name of their batch. A batch is written aside and its files are
    then renamed into the table; one that is run again after a crash first removes its files. What a crash
    or a full disk leaves aside is no part of the table, and the next start removes it.

    Rows are only ever added: a file cannot be changed in one place, and a folder has no act that would
    put a new file in and take an old one out at once, so that no row could be replaced or deleted safely.
    For that there are tables with a log, and databases.

    The table's columns are kept in `_penstock/` beside the files. A new column and a wider type are
    taken; older files stay as they are, so that a reader which looks at one file only must be told the
    columns. Any other change is refused at the start.

    Joining small files (`compact`) loses and doubles nothing when it is killed. A reader that lists the
    files in the moment between putting a joined file in and taking its parts out sees those rows twice;
    where that matters, use a table with a log (Delta, Iceberg).
    """

    delivers = EVERY_DELIVERY
    name = "files"
    main_option = "path"

    path: str = Field(min_length=1, description="Where the files go: a folder, or a URI.")
    format: Literal["parquet", "json", "csv"] = Field(
        default="parquet",
        description="parquet; json: an object on each line; csv: with a header, nested values as JSON "
        "and bytes as base64.",
    )
    partition_by: Columns = Field(
        default_factory=list, description="Columns that become folders, as in `day=2024-01-02`."
    )
    compression: str | None = Field(
        default=None,
        description="For parquet: zstd (default), snappy, gzip, lz4 or none. For json and csv: none "
        "(default), gzip or bzip2.",
    )
    file_size: Size = Field(
        default="128MB",
        validate_default=True,
        ge=1024,
        description="How large a file may grow, as in `128MB`; a batch that has more becomes several.",
    )
    compact: Compaction | None = Field(
        default=None,
        description="Join small files between two batches, as in `{every: 1h}`; default: never.",
    )

    _place: Folder | None = PrivateAttr(default=None)
    _table: FileTable | None = PrivateAttr(default=None)
    _rolling: Rolling | None = PrivateAttr(default=None)
    _joined_at: float | None = PrivateAttr(default=None)

    @model_validator(mode="after")
    def _possible(self) -> FilesSink:
        allowed = FORMATS[self.format].compressions
        if self.compression not in (None, *allowed):
            raise ValueError(
                f"compression {self.compression!r} is not for {self.format}; "
                f"allowed: {', '.join(allowed)}"
            )
        if twice := [name for name in self.partition_by if self.partition_by.count(name) > 1]:
            raise ValueError(f"'partition_by' names the column {twice[0]!r} twice: name it once")
        return self

    def places(self) -> list[str]:
        """Return the table's folder."""
        return [self.path]

    def prepare(self, opening: Opening) -> None:
        """Finish what was left, and refuse a folder or rows that do not fit."""
        storable(opening.schema)
        checked(self.partition_by, opening.schema)
        self._table = self._joined_at = None
        folder = self._open(opening.spark)
        with storage_errors(self.path):
            self._clear_up(folder, opening.pipeline)
            refuse_unwritable(self.path)
            self._fit(folder, opening.spark, opening.schema)

    def write(self, batch: Batch) -> None:
        """Write the rows aside, then bring their files into the table."""
        spark = batch.rows.sparkSession
        folder = self._place or self._open(spark)
        with storage_errors(self.path):
            files = self._files(folder, spark, self._fit(folder, spark, batch.rows.schema))
            if batch.may_repeat:
                self._take_back(files, batch)
            aside = f"{HIDDEN}/{batch.label}"
            self._rolling = self._rolling or Rolling(self.file_size)
            written = files.write(batch.rows, aside, self._rolling.rows)
            for name in self._rolling.roll(files, aside, written):
                folder.move(f"{aside}/{name}", files.place(name, batch.label))
            folder.remove(aside)

    def read_back(self, opening: Opening) -> DataFrame | None:
        """Return the rows of all files; CSV does not keep enough of them."""
        if self.format == "csv":
            return super().read_back(opening)
        folder = self._open(opening.spark)
        if (table := known(folder)) is None:
            return None
        reader = opening.spark.read.schema(table.columns).format(table.format)
        return reader.load(unglobbed(folder.uri))

    def lookup(self, spark: SparkSession, columns: StructType | None) -> DataFrame:
        """Return the rows of a file, or of all files of a folder."""
        reader = spark.read.format(self.format).option("header", "true")
        if columns is not None:
            reader = reader.schema(columns)
        try:
            return reader.option("inferSchema", "true").load(unglobbed(for_spark(spark, self.path)))
        except PySparkException as error:
            raise ConfigError(
                f"{self.path} cannot be read as {self.format}: {str(error).splitlines()[0]}"
            ) from None

    def tidy(self, batch: Batch) -> None:
        """Join small files when it is time: after the first batch, and then as often as asked for."""
        if self.compact is None or self._table is None or not self._is_due(self.compact):
            return
        spark = batch.rows.sparkSession
        files = self._files(self._place or self._open(spark), spark, self._table)
        joining = Joining(files.folder, batch.pipeline)
        try:
            with storage_errors(self.path):
                joining.join(files, batch, self.file_size, self.compact.files)
        except TransientError as error:  # small files are no reason to stop: there is a next time
            log.warning("files_not_joined", pipeline=batch.pipeline, reason=str(error))
            joining.finish()
        self._joined_at = time.monotonic()

    def _clear_up(self, folder: Folder, pipeline: str) -> None:
        """Finish a joining that was cut short, and remove what other work left aside."""
        Joining(folder, pipeline).finish()
        for name in folder.names(HIDDEN):
            if name.startswith(f"{pipeline}~"):
                folder.remove(f"{HIDDEN}/{name}")

    def _is_due(self, compact: Compaction) -> bool:
        last = self._joined_at
        return last is None or time.monotonic() >= last + compact.every

    def _take_back(self, files: Files, batch: Batch) -> None:
        """Remove what an earlier run of this batch left in the table."""
        for name in files.folder.sizes(f"{files.table.folders}{batch.label}~*"):
            files.folder.remove(name)

    def _files(self, folder: Folder, spark: SparkSession, table: FileTable) -> Files:
        compression = self.compression or FORMATS[self.format].compressions[0]
        return Files(spark, folder, table, compression)

    def _fit(self, folder: Folder, spark: SparkSession, rows: StructType) -> FileTable:
        """Return the table's form, made to fit the rows and kept where it is new."""
        wanted = FileTable(self.format, tuple(self.partition_by), rows)
        kept = self._table or known(folder)
        table = kept or found(spark, folder, wanted) or wanted
        self._refuse_other(table)
        fitting = table.fitting(rows, f"the table in {self.path}")
        if fitting != kept:
            keep(folder, fitting)
        self._table = fitting
        return fitting

    def _refuse_other(self, table: FileTable) -> None:
        if table.format != self.format:
            raise ConfigError(
                f"the table in {self.path} has files of format {table.format!r}, and 'format' asks for "
                f"{self.format!r}: give it as {table.format!r}, or write to another folder"
            )
        if table.partition_by != tuple(self.partition_by):
            raise other_folders(self.path, table.partition_by, tuple(self.partition_by))

    def _open(self, spark: SparkSession) -> Folder:
        """Return the table's folder, and keep it: finding it anew for each batch takes its time."""
        try:
            self._place = Folder(spark, self.path)
            return self._place
        except Py4JJavaError as error:
            raise SetupError(
                f"the sink 'files' cannot reach {self.path}: {error.java_exception.getMessage()}; "
                "Spark must know the kind of storage: see 'spark.conf'"
            ) from None
