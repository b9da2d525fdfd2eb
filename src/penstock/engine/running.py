"""A pipeline that runs: start it, look at it, stop it."""

from __future__ import annotations

import fcntl
import time
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread
from typing import IO, TYPE_CHECKING, Any

from pyspark.errors import AnalysisException, PySparkException

from penstock.config import find_connection
from penstock.config.places import data_dir
from penstock.engine.batches import BatchLoop, StopRequestedError
from penstock.engine.checkpoint import Checkpoint
from penstock.engine.deadletters import TABLE, dead_letters_of
from penstock.engine.positions import find_epoch
from penstock.engine.progress import Progress, State
from penstock.engine.reasons import failure, reason
from penstock.engine.session import session_log, spark_session
from penstock.errors import ConfigError, PenstockError, SetupError
from penstock.kafka import Admin, GroupOffsets
from penstock.pipeline import FAILED, Opening, Pipeline, Reading
from penstock.pipeline.storage import Folder, absolute, is_uri
from penstock.sources.kafka import KafkaSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.types import StructType


def start(pipeline: Pipeline, *, once: bool = False) -> Running:
    """Start a pipeline; with `once`, it ends by itself when what is there now is done.

    Examples
    --------
    ::

        with penstock.start(pipeline) as running:
            running.wait(timeout=60)
            print(running.progress())
    """
    return Running(pipeline, once=once)


class Running:
    """A started pipeline. Leaving the `with` block stops it, after the batch that is under way."""

    def __init__(self, pipeline: Pipeline, *, once: bool = False) -> None:
        self.pipeline = pipeline
        self._closing = ExitStack()
        self._stopping = self._closed = False
        self._ended = Event()
        self._lost: Exception | None = None
        self._lag: dict[str, int] = {}
        try:
            self._start(once)
        except BaseException:
            self._closing.close()
            raise

    def _start(self, once: bool) -> None:
        pipeline = self.pipeline
        connection = pipeline.connection or find_connection(None)
        state = _state_folder(pipeline)
        self._closing.enter_context(_locked(state, pipeline.name))
        self._admin = self._closing.enter_context(Admin(connection))
        group = self._closing.enter_context(GroupOffsets(connection, pipeline.group_id))
        source = _kafka(pipeline)
        # A pipeline that says nothing about Spark takes the session that is there.
        chosen = pipeline.spark if "spark" in pipeline.model_fields_set else None
        spark = spark_session(chosen)
        checkpoint = Checkpoint(Folder(spark, state))
        epoch = find_epoch(checkpoint, source, pipeline.delivery, self._admin, group)
        self._loop = BatchLoop(pipeline, source, connection, epoch, group)
        rows = _decoded(pipeline, Reading(spark, connection, epoch.start()))
        schema = _try_steps(pipeline, spark, rows)
        pipeline.sink.prepare(Opening(spark, schema, pipeline.name, connection, pipeline.delivery))
        pipeline.dead_letter_sink.prepare(
            Opening(spark, TABLE, dead_letters_of(pipeline.name), connection, pipeline.delivery)
        )
        self._query = self._begin(rows, epoch.location, once)
        Thread(target=self._note_the_end, name=f"{pipeline.name}-end", daemon=True).start()

    def _begin(self, rows: DataFrame, location: str, once: bool) -> StreamingQuery:
        writer = rows.writeStream.queryName(self.pipeline.name).foreachBatch(self._loop.run)
        writer = writer.option("checkpointLocation", location)
        if once:
            writer = writer.trigger(availableNow=True)
        elif self.pipeline.every:
            writer = writer.trigger(processingTime=f"{self.pipeline.every} seconds")
        return writer.start()

    def __enter__(self) -> Running:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def is_active(self) -> bool:
        """Whether the pipeline still runs."""
        return not self._ended.is_set()

    def progress(self) -> Progress:
        """Return a snapshot: state, counts, rates, lag of each partition."""
        progress = self._loop.progress
        if not self._closed:
            with suppress(PenstockError):  # a broker that is away must not hide the rest
                self._lag = progress.behind(self._admin.latest(progress.position)).lag
        return replace(
            progress,
            lag=self._lag,
            state=self._state(progress),
            last_error=self._last_error(progress),
        )

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the pipeline ends, at most `timeout` seconds; say whether it has ended.

        Raises
        ------
        PipelineFailedError
            When it ended because of an error.
        """
        if not self._ended.wait(timeout):
            return False
        if error := self._error():
            raise error
        return True

    def stop(self, grace: float = 300.0) -> None:
        """Stop after the batch that is under way, which is finished and committed."""
        if self._stopping:
            return
        self._stopping = True
        waiting = Thread(target=self._loop.stop, daemon=True)
        waiting.start()
        waiting.join(grace)
        self._until_noted(deadline=time.monotonic() + 10)
        if self._lost is None:
            self._query.stop()
        self._ended.wait(grace)
        self.progress()  # the last look at the lag, while there is a connection
        self._closed = True
        self._closing.close()

    def _note_the_end(self) -> None:
        """Wait for Spark in a thread of its own: Ctrl-C must never cut a conversation with Java short."""
        try:
            self._query.awaitTermination()
        except PySparkException:
            pass  # the query keeps its exception; `_error` asks for it
        except Exception as error:  # the Java process is gone
            self._lost = error
        finally:
            self._ended.set()

    def _until_noted(self, deadline: float) -> None:
        """Wait until Spark has noted the last batch as done, so that it is not run again."""
        while self.is_active and time.monotonic() < deadline:
            noted = self._query.lastProgress
            if self._loop.last_id < 0 or (noted and noted["batchId"] >= self._loop.last_id):
                return
            time.sleep(0.01)

    def _state(self, progress: Progress) -> State:
        if self.is_active:
            return State.STOPPING if self._stopping else progress.state
        return State.FAILED if self._error() else State.STOPPED

    def _last_error(self, progress: Progress) -> str | None:
        error = None if self.is_active else self._error()
        return str(error) if error else progress.last_error

    def _error(self) -> PenstockError | None:
        if self._lost is not None:
            return failure(self._lost, self.pipeline.name, session_log())
        error: Any = self._query.exception()
        if error is None or (self._stopping and StopRequestedError.__name__ in str(error)):
            return None
        return failure(self._loop.error or error, self.pipeline.name, session_log())


def _kafka(pipeline: Pipeline) -> KafkaSource:
    if not isinstance(pipeline.source, KafkaSource):
        raise ConfigError(f"a pipeline reads from Kafka; given {pipeline.source.name!r}")
    return pipeline.source


def _decoded(pipeline: Pipeline, reading: Reading) -> DataFrame:
    return pipeline.decode.decode(pipeline.source.read(reading))


def _try_steps(pipeline: Pipeline, spark: SparkSession, rows: DataFrame) -> StructType:
    """Let Spark look at the steps before a record is read: a wrong column is found here."""
    tried = spark.newSession().createDataFrame([], rows.drop(FAILED).schema)
    for index, step in enumerate(pipeline.steps):
        try:
            tried = step.apply(tried)
            tried.schema  # noqa: B018
        except AnalysisException as error:
            raise ConfigError(f"steps[{index}] ({step.name}): {reason(error)}") from None
    return tried.schema


def _state_folder(pipeline: Pipeline) -> str:
    return f"{absolute(pipeline.state or str(data_dir() / 'pipelines'))}/{pipeline.name}"


def _locked(state: str, name: str) -> ExitStack:
    """Refuse a second process that would run the same pipeline with the same state."""
    held = ExitStack()
    if is_uri(state):
        return held
    try:
        Path(state).mkdir(parents=True, exist_ok=True)
        lock: IO[str] = held.enter_context((Path(state) / "lock").open("w"))
    except OSError as error:
        raise SetupError(
            f"cannot write the state of pipeline {name!r} under {state}: {error.strerror}; "
            "give it a folder with 'state:'"
        ) from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        held.close()
        raise ConfigError(
            f"pipeline {name!r} already runs in another process with its state under {state}; "
            "stop that one, or give this one another name"
        ) from None
    return held
