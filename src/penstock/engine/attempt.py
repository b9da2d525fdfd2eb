"""One start of a pipeline: from finding its place to the end of Spark's query.

A pipeline that failed is started again by another attempt, which finds its place as after a kill.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from contextlib import ExitStack
from threading import Event, Thread
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from pyspark.errors import PySparkException

from penstock.config import find_connection
from penstock.engine.batches import BatchLoop, OnBatch, StaleTableError, StopRequestedError
from penstock.engine.checkpoint import Checkpoint, Epoch
from penstock.engine.looking import need_schemes, try_folders, try_python
from penstock.engine.moving import MovedError, Moving
from penstock.engine.positions import find_epoch
from penstock.engine.progress import Progress
from penstock.engine.realtime import Following, require_slots, write_in_real_time
from penstock.engine.reasons import failure
from penstock.engine.session import fair_share, session_log, spark_session
from penstock.engine.shipping import shipped
from penstock.engine.stateful.memory import require_the_same
from penstock.engine.stateful.plan import plan_of
from penstock.engine.stateful.stream import session_for_state
from penstock.engine.stream import RECORD, columns_after, prepare_sinks, streamed
from penstock.errors import ConfigError, DataLossError, PenstockError
from penstock.kafka import Admin, GroupOffsets
from penstock.pipeline import FAILED, Offsets, Pipeline, Reading
from penstock.pipeline.storage import Folder
from penstock.pipeline.values import partitions_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from penstock.config import Connection


# How often the topics are looked at, in seconds, beside the look before each batch.
_LOOK_EVERY = 5
# What Spark's connector says when topics or partitions come or go while it plans.
_MOVED = re.compile(
    r"UnknownTopicOrPartition|Trigger\.AvailableNow|must specify all TopicPartitions"
)


Run = Callable[["DataFrame", int], None]
# Those of this process, to share its session fairly.
_running: WeakSet[Attempt] = WeakSet()


class Attempt:
    """A pipeline's query and what it holds while it runs. Made, it runs."""

    def __init__(
        self,
        pipeline: Pipeline,
        state: str,
        progress: Progress,
        *,
        once: bool,
        on_batch: OnBatch | None = None,
        seen: Offsets | None = None,
    ) -> None:
        self.pipeline = pipeline
        self._seen = seen or {}
        self._on_batch = on_batch
        self._closing = ExitStack()
        self._stopping = False
        self._lost: Exception | None = None
        self._has_query = Event()
        self._loop: BatchLoop | Following
        self._moved = False
        try:
            self._start(state, progress, once)
        except BaseException:
            self._closing.close()
            raise

    def _start(self, state: str, progress: Progress, once: bool) -> None:
        pipeline = self.pipeline
        connection = pipeline.connection or find_connection(None)
        self._admin = self._closing.enter_context(Admin(connection))
        group = self._closing.enter_context(GroupOffsets(connection, pipeline.group_id))
        plan_of(pipeline)  # what cannot be is told before Spark starts
        # A pipeline that says nothing about Spark takes the session that is there.
        chosen = pipeline.spark if "spark" in pipeline.model_fields_set else None
        spark = spark_session(chosen)
        need_schemes(spark, pipeline, state)
        pipeline = shipped(spark, pipeline)
        plan = plan_of(pipeline)
        try_python(spark, pipeline, plan, RECORD)
        checkpoint = Checkpoint(Folder(spark, state))
        found = find_epoch(checkpoint, pipeline, plan.sources, self._admin, group)
        epoch = found.epoch
        if pipeline.in_real_time and not once:
            self._start_in_real_time(epoch, group, spark, connection, progress)
            return
        moving = Moving(
            pipeline,
            plan.sources,
            epoch,
            self._admin,
            self._started,
            committed=found.committed,
            seen_ends=self.seen_ends,
        )
        loop = self._loop = BatchLoop(
            pipeline,
            plan,
            connection,
            epoch,
            group,
            moving=moving,
            progress=progress.without(found.lost),
            query=self._started,
            on_batch=self._on_batch,
        )
        own = session_for_state(spark) if plan.stream else spark
        start = epoch.start()
        records = [
            branch.source.read(Reading(own, connection, branch.source.own(start)))
            for branch in plan.branches
        ]
        rows, shapes = streamed(plan, records)
        require_the_same(epoch, shapes)
        prepare_sinks(
            pipeline, spark, columns_after(plan, rows), connection, {topic for topic, _ in start}
        )
        try_folders(spark, pipeline, [state] if plan.stream else [])
        _running.add(self)
        with fair_share(own, pipeline.name, len(_running)):
            self._query = self._begin(rows, loop.run, epoch.location, once, plan.output_mode)
        self._has_query.set()

    def _start_in_real_time(
        self,
        epoch: Epoch,
        group: GroupOffsets,
        spark: SparkSession,
        connection: Connection,
        progress: Progress,
    ) -> None:
        """Let Spark hand each record on as it comes, and follow it."""
        pipeline, start = self.pipeline, epoch.start()
        require_slots(pipeline, spark, len(start))
        self._loop = Following(pipeline, epoch, group, progress, self._on_batch)
        plan = plan_of(pipeline)
        own = spark.newSession()  # the view of SQL steps is nobody else's
        records = plan.branches[0].source.read(Reading(own, connection, start, in_real_time=True))
        rows, _ = streamed(plan, [records])
        prepare_sinks(
            pipeline, spark, columns_after(plan, rows), connection, {topic for topic, _ in start}
        )
        self._query = write_in_real_time(pipeline, rows.drop(FAILED), connection, epoch.location)
        self._loop.follow(self._query)

    def _started(self) -> StreamingQuery:
        """Return the query; its first batch may begin before Spark has handed it out."""
        self._has_query.wait()
        return self._query

    def _begin(
        self, rows: DataFrame, run: Run, location: str, once: bool, mode: str
    ) -> StreamingQuery:
        writer = rows.writeStream.queryName(self.pipeline.name).foreachBatch(run)
        writer = writer.outputMode(mode).option("checkpointLocation", location)
        if once:
            writer = writer.trigger(availableNow=True)
        elif self.pipeline.every:
            writer = writer.trigger(processingTime=f"{self.pipeline.every} seconds")
        return writer.start()

    @property
    def progress(self) -> Progress:
        """What the batches so far gave."""
        return self._loop.progress

    def ends(self, position: Offsets) -> Offsets:
        """Return where the partitions end now, those that are still there."""
        try:
            return self._admin.latest(position)
        except ConfigError:
            return self._admin.latest(self._admin.existing(position))

    def wait(self) -> None:
        """Wait until Spark's query has ended."""
        try:
            while not self._query.awaitTermination(_LOOK_EVERY):
                self._look()
            self._moved |= bool(self._loop.made_again)
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
        self._until_noted(deadline=time.monotonic() + 10)
        if self._lost is None:
            self._query.stop()
            if isinstance(self._loop, Following):
                self._loop.wait()

    @property
    def moved(self) -> bool:
        """Whether it ended, or must end, because topics are not what they were."""
        return self._moved and not self._stopping

    def _look(self) -> None:
        """See whether the topics are still what they were; end the query where they are not."""
        try:
            self._moved = self._loop.look()
        except DataLossError as error:
            self._loop.error = error
        except PenstockError:
            return  # the broker is away: Spark says so, or finds it again
        if self._moved and not self._stopping:
            self._loop.stop_soon()
            self._until_noted(deadline=time.monotonic() + _LOOK_EVERY)
        if self._moved or self._loop.error:
            self._query.stop()

    def seen_ends(self) -> Offsets:
        """Where the partitions ended when Spark planned the last batch that is done."""
        query = getattr(self, "_query", None)
        if self._lost is not None or not (query and (noted := query.lastProgress)):
            return self._seen
        seen: Offsets = {}
        for source in json.loads(noted.json)["sources"]:
            seen |= partitions_of(source["latestOffset"] or {})
        return seen

    def ends_for_the_next(self) -> Offsets:
        """What the next attempt shall know of ends that it did not see; not of topics made again."""
        again = self._loop.made_again
        return {place: end for place, end in self.seen_ends().items() if place[0] not in again}

    def close(self) -> None:
        """Let go of the connections."""
        _running.discard(self)
        self._closing.close()

    def error(self) -> PenstockError | None:
        """Return why the query ended, or None where it ended as it should."""
        if self._lost is not None:
            return failure(self._lost, self.pipeline.name, session_log())
        if isinstance(self._loop.error, DataLossError):
            return self._loop.error
        error: Any = self._query.exception()
        if _MOVED.search(str(error)):
            self._look()
            self._moved = True
            if isinstance(self._loop.error, DataLossError):
                return self._loop.error
        if self.moved or isinstance(self._loop.error, StaleTableError):
            return MovedError("topics, or a table to look up in, are not what they were")
        if self._stopping and StopRequestedError.__name__ in str(error):
            return None
        found = self._loop.error or error  # of ours Spark has only the text
        return failure(found, self.pipeline.name, session_log()) if found else None

    def _until_noted(self, deadline: float) -> None:
        """Wait until Spark has noted the last batch as done, so that it is not run again."""
        while self._lost is None and self._query.isActive and time.monotonic() < deadline:
            noted = self._query.lastProgress
            if self._loop.last_id < 0 or (noted and noted["batchId"] >= self._loop.last_id):
                return
            time.sleep(0.01)
