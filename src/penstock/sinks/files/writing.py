"""Writes files of a table: rows as they come, and files once more in another size."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from penstock.errors import RefusedError, SetupError, TransientError
from penstock.pipeline.storage import Folder, is_uri
from penstock.pipeline.told import told_by_spark
from penstock.sinks.files.formats import FORMATS
from penstock.sinks.files.table import FileTable
from penstock.sinks.folders import is_name_too_long

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameWriter, SparkSession

# Spark's own word for files of any number of rows.
ALL_ROWS = 0


@dataclass(frozen=True)
class Files:
    """The files of one table, and how they are written."""

    spark: SparkSession
    folder: Folder
    table: FileTable
    compression: str

    def write(self, rows: DataFrame, into: str, rows_per_file: int) -> dict[str, int]:
        """Write rows into a folder; return the files in it with their sizes."""
        writer = FORMATS[self.table.format].writer(rows, self.table)
        self._save(writer.partitionBy(*self.table.partition_by), into, rows_per_file)
        return self._sizes(into, f"{self.table.folders}*")

    def split(self, name: str, into: str, rows_per_file: int) -> dict[str, int]:
        """Write what a file holds into a folder as smaller ones; return them with their sizes."""
        return self._rewrite(self._held([name]), into, rows_per_file)

    def join(self, names: list[str], into: str) -> dict[str, int]:
        """Write what files of one folder hold into another as one; return it with its size."""
        return self._rewrite(self._held(names).coalesce(1), into, ALL_ROWS)

    def count(self, name: str) -> int:
        """Return how many rows a file holds."""
        return self._held([name]).count()

    def place(self, name: str, label: str) -> str:
        """Return where a file belongs in the table: its folder, and a name that begins with the label."""
        folder, _, file = name.rpartition("/")
        # Lines that are copied are text to Spark, and it names their files so.
        file = file.replace(".txt", f".{self.table.format}")
        return f"{folder}/{label}~{file}".lstrip("/")

    def _held(self, names: list[str]) -> DataFrame:
        files = [f"{self.folder.uri}/{name}" for name in names]
        return FORMATS[self.table.format].again(self.spark, files, self.table)

    def _rewrite(self, held: DataFrame, into: str, rows_per_file: int) -> dict[str, int]:
        writer = FORMATS[self.table.format].rewriter(held, self.table)
        self._save(writer, into, rows_per_file)
        return self._sizes(into, "*")

    def _save(self, writer: DataFrameWriter, into: str, rows_per_file: int) -> None:
        options = {"compression": self.compression, "maxRecordsPerFile": str(rows_per_file)}
        writer.mode("overwrite").options(**options).save(f"{self.folder.uri}/{into}")

    def _sizes(self, into: str, pattern: str) -> dict[str, int]:
        """What a folder holds; a file of no bytes holds no row and no header, and is left there."""
        return {name: size for name, size in self.folder.sizes(pattern, below=into).items() if size}


@contextmanager
def storage_errors(place: str) -> Iterator[None]:
    """Tell a full disk, and a row that no folder can be named after, from every other failure."""
    try:
        yield
    except (Py4JJavaError, PySparkException, OSError) as error:
        told = told_by_spark(error)
        if "No space left on device" in told or "Disk quota exceeded" in told:
            raise _no_space(place) from error
        if is_name_too_long(told):
            raise RefusedError(
                f"a value is too long to name a folder under {place}: choose other columns for "
                "'partition_by', or shorten it in a step"
            ) from error
        raise


def _no_space(place: str) -> TransientError:
    return TransientError(
        f"there is no space left under {place}: free some, and the same rows are written then"
    )


def refuse_unwritable(place: str) -> None:
    """Refuse a folder that cannot be written, before any record is read."""
    if is_uri(place):
        return
    try:
        Path(place).mkdir(parents=True, exist_ok=True)
        probe = Path(place) / "_penstock-probe"
        probe.touch()
        probe.unlink()
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise _no_space(place) from None
        raise SetupError(
            f"the sink 'files' cannot write to {place}: {error.strerror}; "
            "choose a folder that this user may write"
        ) from None
