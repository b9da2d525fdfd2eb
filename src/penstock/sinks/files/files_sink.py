"""The sink `files`: its options, and what it promises."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from py4j.protocol import Py4JJavaError
from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from penstock.errors import ConfigError, SetupError
from penstock.pipeline import EVERY_DELIVERY, Opening, Sink, Writer
from penstock.pipeline.names import ColumnNames
from penstock.pipeline.storage import Folder, for_spark, unglobbed
from penstock.sinks.compaction import Compaction
from penstock.sinks.files.files_writer import FilesWriter
from penstock.sinks.files.formats import FORMATS

_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}


def as_bytes(given: Any) -> int:
    """Read a size: a number of bytes, or a number with KB, MB or GB, of which each is 1024 of the last.

    >>> as_bytes("128MB"), as_bytes("1.5 kb"), as_bytes(4096)
    (134217728, 1536, 4096)
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMG]?)I?B?", str(given).strip().upper())
    if not match or isinstance(given, bool):
        raise ValueError(f"given {given!r}; a size is a number with KB, MB or GB")
    return int(float(match[1]) * _UNITS[match[2]])


Size = Annotated[
    int,
    BeforeValidator(as_bytes),
    WithJsonSchema({"anyOf": [{"type": "integer"}, {"type": "string"}]}),
]


class FilesCompaction(Compaction):
    """When small files are joined. A file is small when it has less than half of `file_size`."""

    files: int = Field(
        default=8, ge=2, description="How many small files a folder must have to be worth it."
    )


class FilesSink(Sink):
    """Rows as Parquet, JSON or CSV files under a folder or a URI.

    Exactly-once: a batch is written aside and compared with what Spark counted. Then its mark, its
    offsets and the names of its files are written into a journal in `_penstock/`, in one act that only
    one process can do, and the files are renamed into the table. A process that dies before that act
    leaves nothing in the table; after it, whoever opens the table next finishes the renaming. A process
    whose pipeline another one has claimed is refused by the journal.

    Rows are only ever added: a file cannot be changed in one place, and a folder has no act that would
    put a new file in and take an old one out at once, so that no row could be replaced or deleted safely.
    For that there are tables with a log, and databases.

    The table's columns are stored in `_penstock/` next to the files. New columns and wider types are
    accepted; older files do not change, so a reader that infers them from one file must be given the
    columns. Any other change is refused at the start.

    Joining small files (`compact`) loses and doubles nothing when it is killed. A reader that lists the
    files in the moment between putting a joined file in and taking its parts out sees those rows twice;
    where that matters, use a table with a log (Delta, Iceberg).
    """

    delivers = EVERY_DELIVERY
    names_by_label = True
    name = "files"
    main_option = "path"

    path: str = Field(min_length=1, description="Where the files go: a folder, or a URI.")
    format: Literal["parquet", "json", "csv"] = Field(
        default="parquet",
        description="parquet; json: an object on each line; csv: with a header, nested values as JSON "
        "and bytes as base64.",
    )
    partition_by: ColumnNames = Field(
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
    compact: FilesCompaction | None = Field(
        default=None,
        description="Join small files between two batches, as in `{every: 1h}`; default: never.",
    )

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

    def storage_paths(self) -> list[str]:
        """Return the table's folder."""
        return [self.path]

    def open(self, opening: Opening) -> Writer:
        """Find the folder, and return what writes the files."""
        try:
            folder = Folder(opening.spark, self.path)
        except Py4JJavaError as error:
            raise SetupError(
                f"the sink 'files' cannot reach {self.path}: {error.java_exception.getMessage()}; "
                "Spark must know the kind of storage: see 'spark.conf'"
            ) from None
        return FilesWriter(self, opening, folder)

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
