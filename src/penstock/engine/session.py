"""The one Spark session of this process: embedded by default, on a cluster by its master's address."""

from __future__ import annotations

import atexit
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock, current_thread, main_thread
from typing import Any

import py4j
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkContext
from pyspark.sql import SparkSession

from penstock.config.logs import event_logger
from penstock.engine.masters import own_address
from penstock.engine.reasons import failure
from penstock.engine.restart_reason import JavaDiedError
from penstock.engine.spark_jvm import Jvm, own_jars, start_jvm
from penstock.errors import ConfigError, PenstockError, PipelineFailedError
from penstock.formats import limits
from penstock.pipeline import SparkOptions
from penstock.pipeline.storage import is_local

log = event_logger(__name__)
# Delta and Iceberg bring statements such as MERGE; any pipeline of the process may need them.
_EXTENSIONS = (
    "io.delta.sql.DeltaSparkSessionExtension,"
    "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
)

# How long a Java process whose connections are broken may take to be gone, in seconds.
_DYING = 2.0
_POLLING = "spark.sql.streaming.pollingDelay"
_PY4J = Path(py4j.__file__).parent

_lock = Lock()
_jvm: Jvm | None = None
_options: SparkOptions | None = None


def spark_session(options: SparkOptions | None = None) -> SparkSession:
    """Return the session, started when there is none yet. All pipelines of a process share it.

    It is the active one of the calling thread from here on, unless the thread has another: some calls of
    Delta need one, and Spark gives it only to the thread that started it.
    """
    session = _shared(options)
    java: Any = _java_sessions(session)
    if not java.getActiveSession().isDefined():
        java.setActiveSession(session._jsparkSession)
    return session


def _shared(options: SparkOptions | None) -> SparkSession:
    global _jvm, _options
    wanted = options or _options or SparkOptions()
    with _lock:
        if _jvm is not None and (_jvm.process.poll() is not None or _was_stopped()):
            _forget_dead(_jvm)
        if _jvm is None and (existing := _existing()) is not None:
            return existing  # of a notebook, spark-submit, a managed cluster
        if _jvm is None:
            began = time.monotonic()
            _jvm, _options = start_jvm(wanted.memory, _settings(wanted)), wanted
            log.info("java_started", seconds=round(time.monotonic() - began, 2))
            atexit.register(stop_session)
        elif options is not None and options != _options:
            raise ConfigError(
                f"Spark already runs in this process with {_options!r}; given {options!r}: "
                "all pipelines of a process share one session, so give them the same options"
            )
        return _connected(_jvm, _options or wanted)


def session_is_lost() -> bool:
    """Return whether this process had a session, and has none now: its Java died, or starts again."""
    jvm: Jvm | None = _jvm
    known: Any = SparkSession
    is_up = (
        jvm is not None and jvm.process.poll() is None and known._instantiatedSession is not None
    )
    return _options is not None and not is_up


def stop_session() -> None:
    """Stop Spark and end its Java process."""
    global _jvm, _options  # noqa: PLW0603
    with _lock:
        if _jvm is None:
            return
        existing: Any = _existing() if _jvm.process.poll() is None else None
        if existing is not None:
            existing.stop()
        _forget_gateway()
        _jvm.stop()
        _jvm = _options = None
        atexit.unregister(stop_session)


def _existing() -> SparkSession | None:
    """Return the session of this process, whichever thread asks: PySpark's answer is the thread's own."""
    known: Any = SparkSession
    session: Any = SparkSession.getActiveSession() or known._instantiatedSession
    return None if session is None or session._sc._jsc is None else session


def _java_sessions(session: SparkSession) -> Any:
    """Return Java's class of sessions, which knows the active one of a thread."""
    known: Any = SparkSession
    return known._get_j_spark_session_class(session.sparkContext._jvm)


def _was_stopped() -> bool:
    """Return whether Spark ended, also in a running Java process: a cluster may end an application."""
    context: Any = SparkContext._active_spark_context
    try:
        return context is not None and bool(context._jsc.sc().isStopped())
    except (Py4JError, OSError):
        if java_death() is None:
            raise
        return True  # it died just now


def _forget_dead(jvm: Jvm) -> None:
    """Leave behind a Java process that died: what PySpark remembers of it would be used again."""
    global _jvm  # noqa: PLW0603
    log.debug("spark_died", log=str(jvm.log))  # each pipeline reports it as its reason
    _forget_gateway()
    jvm.stop()
    context: Any = SparkContext
    context._active_spark_context = None
    session: Any = SparkSession
    session._instantiatedSession = session._activeSession = None
    _jvm = None


def pause_polling(spark: SparkSession, pipelines: int, longest: float) -> None:
    """Let queries that are started from now on share Kafka with all others that run.

    While idle each asks Kafka for news the less often the more run, and after `longest` seconds: each
    time takes 2 ms of processor time, and Spark's own pause is 10 ms.
    """
    if _options is not None and _POLLING not in _options.conf:
        spark.conf.set(_POLLING, _pause(pipelines, longest))


def _pause(pipelines: int, longest: float) -> str:
    """Return how long each of this many idle pipelines waits before it asks Kafka again.

    >>> _pause(1, 2.0), _pause(7, 2.0), _pause(200, 2.0), _pause(7, 0.05)
    ('200ms', '1400ms', '2000ms', '50ms')
    """
    return f"{min(200 * pipelines, round(longest * 1000))}ms"


def java_death() -> str | None:
    """Return how Spark's Java process ended, with its log's name; None if it runs."""
    jvm = _jvm
    if jvm is None:
        return None
    with suppress(subprocess.TimeoutExpired):
        jvm.process.wait(_DYING)  # its connections break before it is gone
    return jvm.death()


def lost_session(error: BaseException, pipeline: str) -> PenstockError:
    """Return why a call into Spark failed; where its Java process is gone, that is the reason."""
    broken = isinstance(error, (Py4JError, OSError)) and not isinstance(error, Py4JJavaError)
    if broken and (death := java_death()):
        return JavaDiedError(f"pipeline {pipeline!r} failed: {death}")
    try:
        return failure(error, pipeline, session_log())
    except (Py4JError, OSError) as gone:  # Java is asked for its causes
        died = java_death()
        kind = JavaDiedError if died else PipelineFailedError
        return kind(f"pipeline {pipeline!r} failed: {died or gone}")


def java_view() -> Any:
    """Return py4j's view of the running Java process; None if there is none, or it has died."""
    jvm = _jvm
    return None if jvm is not None and jvm.process.poll() is not None else SparkContext._jvm


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
    """Suppress PySpark's Java stack traces: the pipeline reports its errors itself."""
    without_py4j()
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    server: Any = session.sparkContext._accumulatorServer
    server.handle_error = lambda *_: log.debug(
        "spark_connection_lost", app=session.sparkContext.appName
    )


def without_py4j() -> None:
    """Drop what py4j logs when Java is gone: it logs to its own logger, and in one place to the root."""
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(_is_not_py4j)  # adding it again changes nothing


def _is_not_py4j(record: logging.LogRecord) -> bool:
    return Path(record.pathname).parent != _PY4J


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
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "8192",
        # Not Kafka: only its newer writer lets a batch be counted in the pass that writes it.
        "spark.sql.sources.useV1SourceList": "avro,csv,json,orc,parquet,text",
        "spark.sql.extensions": _EXTENSIONS,
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.redaction.regex": (
            "(?i)secret|password|passphrase|token|jaas|keystore|truststore|credential|signature|"
            "(access|account|api|private|encryption|sas)[._-]?key"
        ),
    }
    return settings | given | (_embedded(given) if is_local(master) else _spread(master, given))


def _embedded(given: dict[str, str]) -> dict[str, str]:
    """Return the settings of an embedded session, which other machines cannot reach."""
    cores = str(os.cpu_count() or 2)
    own = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        # Other users of this machine can reach 127.0.0.1: Spark makes a secret for each run.
        "spark.authenticate": "true",
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
    """Return the settings of a session on a cluster: the driver's address, jars for executors."""
    host = given.get("spark.driver.host") or own_address(master)
    jars = [*given.get("spark.jars", "").split(","), *map(str, own_jars())]
    return {
        **({"spark.driver.host": host} if host else {}),
        "spark.jars": ",".join(filter(None, jars)),
        **_decoded_limit(),
    }


def _decoded_limit() -> dict[str, str]:
    """Return the limit of a decoded value for the executors' Python workers; local ones inherit it."""
    chosen = os.environ.get(limits.VARIABLE)
    return {f"spark.executorEnv.{limits.VARIABLE}": chosen} if chosen else {}


def _text(value: str | int | float | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
