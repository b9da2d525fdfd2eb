"""One start of a pipeline: from finding its place to the end of Spark's query.

A pipeline that failed is started again by another attempt, which finds its place as after a kill.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from threading import Thread
from typing import TYPE_CHECKING
from weakref import WeakSet

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql.types import StructType

from penstock.config.logs import event_logger
from penstock.engine.batches import BatchLoop, StaleTableError
from penstock.engine.bindings import Bindings
from penstock.engine.checkpoint import Checkpoint, Epoch
from penstock.engine.claims import Claims, Writers
from penstock.engine.dead_letter_batch import finish_dead_letters
from penstock.engine.loop import Hooks, LaunchedQuery, Loop
from penstock.engine.preflight import need_schemes, try_folders, try_python
from penstock.engine.progress import Progress
from penstock.engine.realtime import RealTimeMonitor, require_slots, write_in_real_time
from penstock.engine.reasons import ended_with
from penstock.engine.resuming import Resuming, Resumption
from penstock.engine.session import lost_session, pause_polling, spark_session
from penstock.engine.shipping import shipped
from penstock.engine.stateful.plan import Plan, plan_of, with_bound_decode
from penstock.engine.stateful.stateful_stream import require_same_state, session_for_state
from penstock.engine.stream import RECORD, columns_after, sink_schema, streamed
from penstock.engine.topic_watcher import MovedError, TopicWatcher, topics_moved
from penstock.engine.turns import in_turn
from penstock.errors import DataLossError, PenstockError
from penstock.pipeline import (
    FAILED,
    Offsets,
    Opening,
    Partition,
    Pipeline,
    Ranges,
    Reading,
)
from penstock.pipeline.source_log import SourceLog
from penstock.pipeline.storage import Folder
from penstock.pipeline.values import partitions_of
from penstock.retry import wait_for

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from penstock.config import Connection


log = event_logger(__name__)
# How often the topics are checked, in seconds, in addition to the check before each batch.
_CHECK_EVERY = 5


# Those of this process, to share its session fairly.
_running: WeakSet[Attempt] = WeakSet()


@dataclass(frozen=True)
class _Ready:
    """The result of the preflight: a pipeline that can run, and what it runs with."""

    pipeline: Pipeline
    plan: Plan
    spark: SparkSession
    connection: Connection
    source_log: SourceLog


class Attempt:
    """A pipeline's query and what it holds while it runs."""

    def __init__(
        self,
        pipeline: Pipeline,
        state: str,
        progress: Progress,
        hooks: Hooks,
        bindings: Bindings,
        *,
        once: bool,
        seen: Offsets | None = None,
        held: int = -1,
        token: int | None = None,
    ) -> None:
        self.pipeline = pipeline
        self._state = state
        self._progress = progress
        self._hooks = hooks
        self._bindings = bindings
        self._once = once
        self._seen = seen or {}
        self._held = held
        self._token = token
        self._closing = ExitStack()
        self._query = LaunchedQuery()
        self._writers: Writers
        self._loop: Loop
        self._lost: Exception | None = None
        self._data_loss: DataLossError | None = None
        self._stopping = self._moved = False

    def begin(self) -> None:
        """Check that the pipeline can run, find where it goes on, and launch Spark's query."""
        began = time.monotonic()
        try:
            ready = self._preflight()
            checked = time.monotonic()
            resumption = self._resume(ready)
            claimed = time.monotonic()
            self._launch(ready, resumption)
        except BaseException:
            self._closing.close()
            raise
        log.info(
            "query_launched",
            pipeline=self.pipeline.name,
            preflight=round(checked - began, 2),
            claiming=round(claimed - checked, 2),
            launching=round(time.monotonic() - claimed, 2),
        )

    def _preflight(self) -> _Ready:
        """Raise what prevents a run of the pipeline: the cheap reasons first, before Spark starts."""
        pipeline = self.pipeline
        connection = pipeline.find_connection()
        opened = pipeline.source.open_log(connection, pipeline.group_id)
        source_log = self._closing.enter_context(opened)
        pipeline = with_bound_decode(pipeline)
        plan_of(pipeline)
        spark = spark_session(pipeline.session_options)
        need_schemes(spark, pipeline, self._state)
        pipeline = shipped(spark, pipeline)
        self._bindings.use(spark.sparkContext)
        plan = plan_of(pipeline, self._bindings.bind)
        try_python(spark, pipeline, plan, RECORD)
        return _Ready(pipeline, plan, spark, connection, source_log)

    def _resume(self, ready: _Ready) -> Resumption:
        """Open the writers, claim the pipeline in its sinks, and find the offsets to go on from."""
        pipeline, spark, connection = ready.pipeline, ready.spark, ready.connection
        opening = Opening(spark, pipeline.name, connection, pipeline.delivery)

        def open_claims(partitions: Sequence[Partition]) -> Claims:
            own = replace(opening, partitions=tuple(partitions))
            self._writers = self._closing.enter_context(closing(Writers.open(pipeline, own)))
            return Claims(
                pipeline, self._writers, lambda: self._prepare(sink_schema(ready.plan, spark))
            )

        def finish(epoch: int, ranges: Ranges) -> None:
            writer, reading = self._writers.dead_letters, Reading(spark, connection, {})
            finish_dead_letters(pipeline, reading, writer, epoch, ranges)

        checkpoint = Checkpoint(Folder(spark, self._state))
        sources, source_log = ready.plan.sources, ready.source_log
        resuming = Resuming(
            checkpoint,
            pipeline,
            sources,
            source_log,
            open_claims,
            held=self._held,
            token=self._token,
            finish=finish,
        )
        resumption = resuming.find()
        self._held = resumption.epoch.number
        return resumption

    def _launch(self, ready: _Ready, resumption: Resumption) -> None:
        """Start Spark's query, and the loop that its records go through."""
        if ready.pipeline.in_real_time and not self._once:
            self._launch_in_real_time(ready, resumption.epoch)
        else:
            self._launch_batches(ready, resumption)

    def _launch_batches(self, ready: _Ready, resumption: Resumption) -> None:
        pipeline, plan, epoch = ready.pipeline, ready.plan, resumption.epoch
        watcher = TopicWatcher(
            pipeline,
            plan.sources,
            epoch,
            ready.source_log,
            self._query,
            committed=resumption.committed,
            seen_ends=self.seen_ends,
        )
        loop = self._loop = BatchLoop(
            pipeline,
            plan,
            ready.connection,
            epoch,
            watcher=watcher,
            progress=self._progress.without(resumption.lost),
            query=self._query,
            claims=Claims(pipeline, self._writers),
            hooks=self._hooks,
        )
        spark = session_for_state(ready.spark) if plan.stream else ready.spark
        start = epoch.start()
        records = [
            branch.source.read(Reading(spark, ready.connection, branch.source.own(start)))
            for branch in plan.branches
        ]
        rows, shapes = streamed(plan, records)
        require_same_state(epoch, shapes)
        self._prepare(columns_after(plan, rows))
        try_folders(ready.spark, pipeline, [self._state] if plan.stream else [])
        writer = rows.writeStream.queryName(pipeline.name).foreachBatch(in_turn(loop.run))
        writer = writer.outputMode(plan.output_mode).option("checkpointLocation", epoch.location)
        if self._once:
            writer = writer.trigger(availableNow=True)
        elif pipeline.every:
            writer = writer.trigger(processingTime=f"{pipeline.every} seconds")
        _running.add(self)
        pause_polling(spark, len(_running), pipeline.source.longest_pause)
        self._query.set(writer.start())

    def _launch_in_real_time(self, ready: _Ready, epoch: Epoch) -> None:
        pipeline, plan, start = ready.pipeline, ready.plan, epoch.start()
        require_slots(pipeline, ready.spark, len(start))
        monitor = RealTimeMonitor(pipeline, epoch, ready.source_log, self._progress, self._hooks)
        self._loop = monitor
        own = ready.spark.newSession()  # SQL steps name a view: each pipeline has its own
        reading = Reading(own, ready.connection, start, in_real_time=True)
        rows, _ = streamed(plan, [plan.branches[0].source.read(reading)])
        self._prepare(columns_after(plan, rows))
        self._query.set(
            write_in_real_time(rows.drop(FAILED), plan.batch, self._writers.rows, epoch.location)
        )
        monitor.follow(self._query())

    def _prepare(self, schema: StructType) -> None:
        if not self._writers.is_prepared:
            self._writers.prepare(schema)

    @property
    def progress(self) -> Progress:
        """Return the progress of the batches so far."""
        return self._loop.progress

    @property
    def held(self) -> int:
        """Return the epoch that it runs; another process that claims a later one ends this one."""
        return self._held

    def wait(self) -> None:
        """Wait until Spark's query has ended."""
        try:
            while not self._query().awaitTermination(_CHECK_EVERY):
                self._check_topics()
            self._moved |= bool(self._loop.recreated)
        except PySparkException:
            pass  # the query keeps its exception; `error` asks for it
        except Exception as error:  # the Java process is gone
            self._lost = error

    def stop(self, grace: float) -> None:
        """End the query after the batch that is under way, which is finished and committed."""
        self._stopping = True
        waiting = Thread(target=self._loop.stop, daemon=True)
        waiting.start()
        waiting.join(grace)
        try:
            self._until_noted(within=10)
            if self._lost is None:
                self._query().stop()
        except (Py4JError, OSError) as gone:  # the Java process is: nothing is left to stop
            self._lost = gone
        if self._lost is None:
            self._loop.join()

    @property
    def moved(self) -> bool:
        """Return whether it ended, or must end, because topics were deleted or recreated."""
        return self._moved and not self._stopping

    def _check_topics(self) -> None:
        """End the query if the topics are not those of the epoch any more."""
        try:
            self._moved = self._loop.check_topics()
        except DataLossError as error:
            self._data_loss = error
        except PenstockError:
            return  # the broker is away: Spark says so, or finds it again
        if self._moved and not self._stopping:
            self._loop.stop_soon()
            self._until_noted(within=_CHECK_EVERY)
        if self._moved or self._data_loss or self._loop.error:
            self._query().stop()

    def seen_ends(self) -> Offsets:
        """Return the ends of the partitions when Spark planned the last completed batch."""
        query = self._query.current
        if self._lost is not None or query is None:
            return self._seen
        try:
            noted = query.lastProgress
        except (Py4JError, OSError) as gone:  # Java died after the query had ended
            self._lost = gone
            return self._seen
        if not noted:
            return self._seen
        seen: Offsets = {}
        for source in json.loads(noted.json)["sources"]:
            seen |= partitions_of(source["latestOffset"] or {})
        return seen

    def ends_for_the_next(self) -> Offsets:
        """Return the known ends of partitions for the next attempt, without recreated topics."""
        recreated = self._loop.recreated
        return {p: end for p, end in self.seen_ends().items() if p[0] not in recreated}

    def close(self) -> None:
        """Close the connections."""
        _running.discard(self)
        self._closing.close()

    def error(self) -> PenstockError | None:
        """Return why the query ended, or None where it ended as it should."""
        error: Exception | None = None
        if self._lost is None:
            try:
                error = ended_with(self._query())
            except (Py4JError, OSError) as gone:
                self._lost = gone
        if loss := self._loss():
            return loss
        if self._lost is not None:
            return lost_session(self._lost, self.pipeline.name)
        if topics_moved(error) or topics_moved(self._loop.error):
            self._check_topics()
            self._moved = True
            if loss := self._loss():
                return loss
        if self.moved or isinstance(self._loop.error, StaleTableError):
            return MovedError("topics, or a table to look up in, are not what they were")
        if self._stopping and self._loop.ended_between:
            return None
        raised = self._loop.error or error  # of ours Spark has only the text
        return lost_session(raised, self.pipeline.name) if raised else None

    def _loss(self) -> DataLossError | None:
        known = self._data_loss or self._loop.error
        return known if isinstance(known, DataLossError) else None

    def _until_noted(self, within: float) -> None:
        """Wait until Spark has noted the last batch as done, so that it is not run again."""
        wait_for(self._is_noted, within=within, every=0.01)

    def _is_noted(self) -> bool:
        query, last = self._query(), self._loop.last_id
        if self._lost is not None or not query.isActive or last < 0:
            return True
        noted = query.lastProgress
        return bool(noted and noted["batchId"] >= last)
