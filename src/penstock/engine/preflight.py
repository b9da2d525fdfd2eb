"""Checks a pipeline on a cluster's executors before a record is read: what they lack is reported at the
start, in plain words, and not by a task in the middle of a batch.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from threading import Timer
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit
from uuid import uuid4

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import functions as f
from pyspark.sql.types import StructType

from penstock.config.logs import event_logger
from penstock.engine.reasons import reason
from penstock.engine.shipping import functions_of, parts_of
from penstock.errors import ConfigError
from penstock.pipeline import Pipeline
from penstock.pipeline.names import map_in_arrow
from penstock.pipeline.storage import Folder, absolute, is_local, is_uri

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark import SparkContext
    from pyspark.sql import DataFrame, SparkSession

    from penstock.engine.stateful.plan import Plan

    Load = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]

log = event_logger(__name__)

_PATIENCE = 30.0
# No record is read here, so what Spark writes is its own text.
_NO_PYTHON = re.compile(
    r"ModuleNotFoundError|ImportError|PYTHON_VERSION_MISMATCH|Cannot run program|No module named"
)
_UNSEEN = re.compile(r"FileNotFoundException|FILE_NOT_EXIST|FAILED_READ_FILE|Permission denied")


def need_schemes(spark: SparkSession, pipeline: Pipeline, state: str) -> None:
    """Refuse a plain path where Spark would look for it in another file system than this machine's."""
    if is_local(str(spark.sparkContext.master)):
        return
    context: Any = spark.sparkContext._jsc
    default = str(context.hadoopConfiguration().get("fs.defaultFS") or "file:///")
    for place in [state, *_places(pipeline)]:
        if not is_uri(place) and urlsplit(default).scheme not in ("", "file"):
            raise ConfigError(
                f"{place!r} does not say where it is, and this cluster's own file system is {default}: "
                f"write {default.rstrip('/')}{absolute(place)}, or file://{absolute(place)}"
            )


def try_python(spark: SparkSession, pipeline: Pipeline, plan: Plan, records: str) -> None:
    """Run the decodes over no records: tasks on the executors load what they will need with some."""
    master = str(spark.sparkContext.master)
    if is_local(master):
        return
    load = _loading(pipeline)
    with _warn_without_executors(master), _python_errors(spark.sparkContext):
        for branch in plan.branches:
            rows = branch.decode.decode(_no_records(spark, records))
            rows = map_in_arrow(rows, load, rows.schema) if load else rows
            rows.write.format("noop").mode("overwrite").save()


def try_folders(spark: SparkSession, pipeline: Pipeline, others: Sequence[str] = ()) -> None:
    """Let executors read what the driver writes, in every folder that they will write to."""
    if is_local(str(spark.sparkContext.master)):
        return
    for place in [*_places(pipeline), *others]:
        if urlsplit(place).scheme in ("", "file"):
            _try_folder(spark, place)


def _places(pipeline: Pipeline) -> list[str]:
    return [*pipeline.sink.storage_paths(), *pipeline.dead_letter_sink.storage_paths()]


@contextmanager
def _python_errors(context: SparkContext) -> Iterator[None]:
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        if _NO_PYTHON.search(_full_text(error)) is None:
            raise
        raise ConfigError(
            f"the executors of {context.master} cannot run Python for this pipeline: {reason(error)}; "
            f"they run {context.pythonExec!r}, which must be Python "
            f"{sys.version_info[0]}.{sys.version_info[1]} with the packages that docs/cluster.md lists: "
            "set 'spark.pyspark.python' in 'spark.conf', or send an environment with 'spark.archives'"
        ) from None


def _full_text(error: BaseException) -> str:
    """Return the text of an error with Java's stack trace and causes."""
    parts = [error, getattr(error, "_stackTrace", None), getattr(error, "cause", None)]
    return "\n".join(str(part or "") for part in parts)


def _no_records(spark: SparkSession, columns: str) -> DataFrame:
    """Return an empty frame of several tasks; Spark cannot optimize its condition away."""
    tasks = _tasks(spark)
    none = spark.range(0, tasks, 1, tasks).where(f.spark_partition_id() < 0)
    fields = cast(StructType, StructType.fromDDL(columns)).fields
    return none.select(*(f.lit(None).cast(each.dataType).alias(each.name) for each in fields))


def _loading(pipeline: Pipeline) -> Load | None:
    """Return what loads the functions of all steps, and the sinks whose tasks run Python."""
    steps = [part for step in pipeline.steps for part in parts_of(step)]
    functions = [function for part in steps for function in functions_of(part).values()]
    sinks = [pipeline.sink, pipeline.dead_letter_sink]
    modules = [type(s).__module__ for s in sinks if s.runs_python(pipeline.delivery)]

    def load(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for module in modules:
            import_module(module)
        for function in functions:
            function.load()
        yield from batches

    return load if functions or modules else None


def _try_folder(spark: SparkSession, place: str) -> None:
    """Write some files on the driver, and let executors read them."""
    whole = Folder(spark, place)
    hidden = f".penstock-seen-{uuid4().hex[:12]}"
    try:
        for name in range(_tasks(spark)):
            whole.below(hidden).write(f"files/{name}", "x")
        # A file is a task of its own, so that more than one executor has to look.
        reader = spark.newSession()
        reader.conf.set("spark.sql.files.maxPartitionBytes", "1")
        seen = reader.read.text(f"{whole.uri}/{hidden}/files")
        seen.write.format("noop").mode("overwrite").save()
    except (PySparkException, Py4JJavaError) as error:
        if _UNSEEN.search(_full_text(error)) is None:
            raise
        raise ConfigError(
            f"an executor of {spark.sparkContext.master} does not see in {place} what the driver wrote "
            "there: on a cluster this must be a location that all machines share: a shared folder, HDFS, "
            "or an object store, as in s3a://bucket/folder"
        ) from None
    finally:
        whole.remove(hidden)


def _tasks(spark: SparkSession) -> int:
    """Return a number of tasks that gives each current executor one."""
    context: Any = spark.sparkContext._jsc
    executors = context.sc().getExecutorMemoryStatus().size() - 1
    return max(2, 2 * int(executors))


@contextmanager
def _warn_without_executors(master: str) -> Iterator[None]:
    """Log a warning while Spark waits for executors, which it does silently and without a limit."""

    def warn() -> None:
        log.warning("waiting_for_executors", master=master, seconds=_PATIENCE)

    waiting = Timer(_PATIENCE, warn)
    waiting.daemon = True
    waiting.start()
    try:
        yield
    finally:
        waiting.cancel()
