"""Writes files of a table: rows as they come, and files once more in another size."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, DataFrameWriter, SparkSession

from penstock.errors import RefusedError, SetupError, TransientError
from penstock.pipeline.java_errors import causes_of, is_disk_full, is_name_too_long
from penstock.pipeline.storage import Folder, is_uri
from penstock.sinks.files.file_table import FileTable
from penstock.sinks.files.formats import FORMATS

# Spark's own word for files of any number of rows.
ALL_ROWS = 0
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT)
# The plan of a write is wrapped by what adapts it at run time, once or twice.
_WRAPPED_BY = {"AdaptiveSparkPlanExec": "executedPlan", "ResultQueryStageExec": "plan"}


class Saved(NamedTuple):
    """What Spark's tasks reported of one write."""

    files: int
    rows: int


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
        saved = self._save(writer.partitionBy(*self.table.partition_by), into, rows_per_file)
        return self._sizes(into, f"{self.table.folders}*", saved)

    def split(self, name: str, into: str, rows_per_file: int) -> dict[str, int]:
        """Write what a file holds into a folder as smaller ones; return them with their sizes."""
        return self._rewrite([name], self._held([name]), into, rows_per_file)

    def join(self, names: list[str], into: str) -> dict[str, int]:
        """Write what files of one folder hold into another as one; return it with its size."""
        return self._rewrite(names, self._held(names).coalesce(1), into, ALL_ROWS)

    def count(self, *names: str) -> int:
        """Return how many rows files hold."""
        return self._held([*names]).count()

    def place(self, name: str, label: str) -> str:
        """Return where a file belongs in the table: its folder, and a name that begins with the label."""
        folder, _, file = name.rpartition("/")
        # Lines that are copied are text to Spark, and it names their files so.
        file = file.replace(".txt", f".{self.table.format}")
        return f"{folder}/{label}~{file}".lstrip("/")

    def _held(self, names: list[str]) -> DataFrame:
        files = [f"{self.folder.uri}/{name}" for name in names]
        return FORMATS[self.table.format].again(self.spark, files, self.table)

    def _rewrite(
        self, names: list[str], held: DataFrame, into: str, rows_per_file: int
    ) -> dict[str, int]:
        """Write what files hold into others, and read those back: they take the place of the files."""
        writer = FORMATS[self.table.format].rewriter(held, self.table)
        saved = self._save(writer, into, rows_per_file)
        written = self._sizes(into, "*", saved)
        readable = self.count(*(f"{into}/{name}" for name in written)) if written else 0
        if not written or readable != saved.rows or readable != self.count(*names):
            raise TransientError(
                f"what was to take the place of {len(names)} files under {self.folder.uri} has "
                f"{readable} rows, and {saved.rows} were written: the files stay as they are"
            )
        return written

    def _save(self, writer: DataFrameWriter, into: str, rows_per_file: int) -> Saved:
        options = {"compression": self.compression, "maxRecordsPerFile": str(rows_per_file)}
        writer = writer.mode("overwrite").options(**options)
        return _saved(self.spark, writer, f"{self.folder.uri}/{into}")

    def _sizes(self, into: str, pattern: str, saved: Saved) -> dict[str, int]:
        """Return the files of a folder, without empty ones, which have neither rows nor header."""
        listed = self.folder.sizes(pattern, below=into)
        if len(listed) != saved.files:
            raise TransientError(
                f"Spark wrote {saved.files} files to {self.folder.uri}/{into}, and {len(listed)} are "
                "listed: another process removed some, or the store does not list them yet; nothing "
                "of them is in the table, and the same rows are written again"
            )
        return {name: size for name, size in listed.items() if size}


def _saved(spark: SparkSession, writer: DataFrameWriter, place: str) -> Saved:
    """Write to a folder as `writer.save` does, and return the counts of that very write.

    `save` itself keeps its plan to itself, and Spark's store of metrics is filled later by another
    thread; the command that `save` would run is run here, so that its plan can be asked.
    """
    jvm: Any = spark._jvm
    session: Any = spark._jsparkSession
    jwriter: Any = writer._jwrite
    modes = jvm.org.apache.spark.sql.execution.CommandExecutionMode
    command = jwriter.saveCommand(jvm.scala.Option.apply(place))
    run = session.sessionState().executePlan(command, modes.ALL())
    run.assertCommandExecuted()
    plan = run.commandExecuted().commandPhysicalPlan()
    while inner := _WRAPPED_BY.get(plan.getClass().getSimpleName()):
        plan = getattr(plan, inner)()
    metrics = plan.metrics()
    return Saved(*(int(metrics.apply(name).value()) for name in ("numFiles", "numOutputRows")))


@contextmanager
def storage_errors(place: str) -> Iterator[None]:
    """Tell a full disk, and a row that no folder can be named after, from every other failure."""
    try:
        yield
    except (Py4JJavaError, PySparkException, OSError) as error:
        causes, number = causes_of(error), getattr(error, "errno", None)
        if number in _NO_SPACE or is_disk_full(causes):
            raise _no_space(place) from error
        if number == errno.ENAMETOOLONG or is_name_too_long(causes):
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
        if error.errno in _NO_SPACE:
            raise _no_space(place) from None
        raise SetupError(
            f"the sink 'files' cannot write to {place}: {error.strerror}; "
            "choose a folder that this user may write"
        ) from None
