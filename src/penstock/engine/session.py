"""The one Spark session of this process: embedded by default, on a cluster by its master's address."""

from __future__ import annotations

import atexit
import logging
import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock, current_thread, main_thread
from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession

from penstock.config.logs import event_logger
from penstock.engine.jvm import Jvm, own_jars, start_jvm
from penstock.engine.masters import own_address
from penstock.errors import ConfigError
from penstock.pipeline import SparkOptions
from penstock.pipeline.storage import is_local

log = event_logger(__name__)
# Delta and Iceberg bring statements such as MERGE; any pipeline of the process may need them.
_EXTENSIONS = (
    "io.delta.sql.DeltaSparkSessionExtension,"
    "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
)

_POOL = "spark.scheduler.pool"
_POLLING = "spark.sql.streaming.pollingDelay"

_lock = Lock()
_jvm: Jvm | None = None
_options: SparkOptions | None = None


def spark_session(options: SparkOptions | None = None) -> SparkSession:
    """Return the session, started when there is none yet. All pipelines of a process share it."""
    global _jvm, _options
    wanted = options or _options or SparkOptions()
    with _lock:
        if _jvm is not None and (_jvm.process.poll() is not None or _was_stopped()):
            _forget_dead(_jvm)
        if _jvm is None and (found := SparkSession.getActiveSession()) is not None:
            return found  # somebody else's: a notebook, spark-submit, a managed cluster
        if _jvm is None:
            _jvm, _options = start_jvm(wanted.memory, _settings(wanted)), wanted
            atexit.register(stop_session)
        elif options is not None and options != _options:
            raise ConfigError(
                f"Spark already runs in this process with {_options!r}; given {options!r}: "
                "all pipelines of a process share one session, so give them the same options"
            )
        return _connected(_jvm, _options or wanted)


def stop_session() -> None:
    """Stop Spark and end its Java process."""
    global _jvm, _options  # noqa: PLW0603
    with _lock:
        if _jvm is None:
            return
        active: Any = SparkSession.getActiveSession()
        if active is not None and _jvm.process.poll() is None:
            active.stop()
        _forget_gateway()
        _jvm.stop()
        _jvm = _options = None
        atexit.unregister(stop_session)


def _was_stopped() -> bool:
    """Whether Spark ended by itself in a Java process that goes on: a cluster may end an application."""
    context: Any = SparkContext._active_spark_context
    return context is not None and bool(context._jsc.sc().isStopped())


def _forget_dead(jvm: Jvm) -> None:
    """Leave behind a Java process that died: what PySpark remembers of it would be used again."""
    global _jvm  # noqa: PLW0603
    log.warning("spark_died", log=str(jvm.log))
    _forget_gateway()
    jvm.stop()
    context: Any = SparkContext
    context._active_spark_context = None
    session: Any = SparkSession
    session._instantiatedSession = session._activeSession = None
    _jvm = None


@contextmanager
def fair_share(spark: SparkSession, name: str, pipelines: int) -> Iterator[None]:
    """Let the query that is started here share Spark and Kafka fairly with all others that run.

    Without a pool of its own it would stand in one line with them: a large batch would hold up all.
    While idle it asks Kafka for news the less often the more run: each time takes 2 ms of processor
    time, and Spark's own pause is 10 ms.
    """
    if _options is not None and _POLLING not in _options.conf:
        spark.conf.set(_POLLING, _pause(pipelines))
    context = spark.sparkContext
    context.setLocalProperty(_POOL, name)
    try:
        yield
    finally:
        context.setLocalProperty(_POOL, None)  # type: ignore[arg-type]


def _pause(pipelines: int) -> str:
    """How long an idle pipeline, the last one of so many, waits before it asks Kafka again.

    >>> _pause(1), _pause(7), _pause(200)
    ('200ms', '1400ms', '2000ms')
    """
    return f"{min(200 * pipelines, 2000)}ms"


def session_log() -> Path | None:
    """Return the file that Spark's own output goes to."""
    return _jvm.log if _jvm else None


def _connected(jvm: Jvm, options: SparkOptions) -> SparkSession:
    interrupt = signal.getsignal(signal.SIGINT)
    # PySpark finds a Java process that already runs through these two variables.
    gateway = {"PYSPARK_GATEWAY_PORT": str(jvm.port), "PYSPARK_GATEWAY_SECRET": jvm.secret}
    try:
        with _environment({**gateway, "PYSPARK_PYTHON": _python(options)}):
            session = SparkSession.builder.getOrCreate()
        _without_tracebacks(session)
        return session
    finally:
        if current_thread() is main_thread():
            signal.signal(signal.SIGINT, interrupt)  # PySpark's own would cancel the running batch


def _python(options: SparkOptions) -> str:
    """Return the interpreter of the workers: the one that runs here, with its packages, if none is given.

    The setting has a meaning to spark-submit alone, which looks at it before Python starts.
    """
    given = options.conf.get("spark.pyspark.python") or os.environ.get("PYSPARK_PYTHON")
    return str(given or sys.executable)


@contextmanager
def _environment(variables: dict[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _without_tracebacks(session: SparkSession) -> None:
    """What fails is told by the pipeline; PySpark would print pages of Java for it as well."""
    for noisy in ("SQLQueryContextLogger", "py4j.clientserver"):
        logging.getLogger(noisy).setLevel(logging.CRITICAL)
    server: Any = session.sparkContext._accumulatorServer
    server.handle_error = lambda *_: log.debug(
        "spark_connection_lost", app=session.sparkContext.appName
    )


def _forget_gateway() -> None:
    gateway: Any = SparkContext._gateway
    if gateway is not None:
        gateway.shutdown()
    SparkContext._gateway = None
    SparkContext._jvm = None


def _settings(options: SparkOptions) -> dict[str, str]:
    given = {key: _text(value) for key, value in options.conf.items()}
    master = given.get("spark.master", options.master)
    settings = {
        "spark.master": master,
        "spark.app.name": "penstock",
        "spark.driver.memory": options.memory,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # Each batch's plan is put into words for the user interface, long ones by default.
        "spark.sql.ui.explainMode": "simple",
        "spark.scheduler.mode": "FAIR",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.streaming.noDataMicroBatches.enabled": "false",
        "spark.sql.warehouse.dir": str(
            Path(tempfile.gettempdir()) / f"penstock-warehouse-{os.getuid()}"
        ),
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "8192",
        # Not Kafka: only its newer writer lets a batch be counted in the pass that writes it.
        "spark.sql.sources.useV1SourceList": "avro,csv,json,orc,parquet,text",
        "spark.sql.extensions": _EXTENSIONS,
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.redaction.regex": "(?i)secret|password|token|jaas|keystore|truststore|access[.]key",
    }
    return settings | given | (_embedded(given) if is_local(master) else _spread(master, given))


def _embedded(given: dict[str, str]) -> dict[str, str]:
    """What only an embedded session has. Nothing of it is seen from outside this machine."""
    cores = str(os.cpu_count() or 2)
    own = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.python.daemon.module": "penstock.decode.daemon",
        # Hadoop's own two ways to this disk run chmod and readlink: 60 processes for a small batch.
        "spark.hadoop.fs.file.impl": "com.globalmentor.apache.hadoop.fs.BareLocalFileSystem",
        "spark.sql.streaming.checkpointFileManagerClass": (
            "org.apache.spark.sql.execution.streaming.checkpointing."
            "FileSystemBasedCheckpointFileManager"
        ),
        "spark.sql.shuffle.partitions": cores,
        # Delta's own small jobs are cut for a cluster: fifty tasks to read a log of ten lines.
        "spark.databricks.delta.snapshotPartitions": cores,
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": cores,
    }
    return own | given


def _spread(master: str, given: dict[str, str]) -> dict[str, str]:
    """What only a session on a cluster has: a way back to the driver, and the jars for executors."""
    host = given.get("spark.driver.host") or own_address(master)
    jars = [*given.get("spark.jars", "").split(","), *map(str, own_jars())]
    return {
        **({"spark.driver.host": host} if host else {}),
        "spark.jars": ",".join(filter(None, jars)),
    }


def _text(value: str | int | float | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
