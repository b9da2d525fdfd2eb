"""Real-time mode: Spark hands each record on as it comes, from topic to topic, with no batches between.

Spark notes where it is every few seconds. Each time the group's offsets follow, so that Kafka's tools see
the lag here, too. After a crash what came since the last note is sent again: at-least-once.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError

from penstock.config.logs import event_logger
from penstock.engine.checkpoint import Epoch
from penstock.engine.loop import Hooks
from penstock.engine.progress import Done, Progress
from penstock.engine.resumption import Stamp
from penstock.errors import ConfigError
from penstock.pipeline import BoundStep, Mark, Pipeline, Writer
from penstock.pipeline.source_log import SourceLog
from penstock.retry import wait_for

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

log = event_logger(__name__)
# How often Spark notes where it is: the least that it allows.
NOTED_EVERY = 5.0
_LOOK = 0.2


def write_in_real_time(
    rows: DataFrame, steps: Sequence[BoundStep], sink: Writer, location: str
) -> StreamingQuery:
    """Start the query that sends each row as soon as it arrives."""
    for step in steps:
        rows = step.apply(rows)
    writer: Any = sink.stream_writer(rows)
    writer = writer.outputMode("update").queryName(sink.opening.pipeline)
    writer = writer.option("checkpointLocation", location)
    java = rows.sparkSession.sparkContext._jvm
    trigger = java.org.apache.spark.sql.streaming.Trigger.RealTime(f"{NOTED_EVERY:.0f} seconds")  # type: ignore[union-attr]
    writer._jwrite = writer._jwrite.trigger(trigger)
    query: StreamingQuery = writer.start()
    return query


def require_slots(pipeline: Pipeline, spark: SparkSession, partitions: int) -> None:
    """Refuse a pipeline whose partitions would wait for each other: each occupies a slot permanently."""
    slots = spark.sparkContext.defaultParallelism
    if partitions > slots:
        raise ConfigError(
            f"in real-time mode each of the {partitions} partitions that {pipeline.name!r} reads needs a "
            f"task slot of its own, and Spark has {slots}: give it more, as in 'spark: {{master: "
            f"\"local[{partitions}]\"}}', or leave 'latency' out"
        )


class RealTimeMonitor:
    """Follows a query in real-time mode: what Spark notes is counted and committed to the group."""

    def __init__(
        self,
        pipeline: Pipeline,
        epoch: Epoch,
        source_log: SourceLog,
        progress: Progress,
        hooks: Hooks,
    ) -> None:
        last = epoch.last()
        self._pipeline = pipeline
        self._epoch = epoch
        self._log = source_log
        self._hooks = hooks
        self._noted = last.id if last and last.done else (last.id - 1 if last else -1)
        self.progress = replace(progress, position=epoch.end_of(self._noted))
        self.error: Exception | None = None
        self.last_id = -1  # a batch of this kind is done when Spark has noted it
        self._ended = Event()
        self._since = time.monotonic()

    @property
    def ended_between(self) -> bool:
        """Return False: there are no batches to end between."""
        return False

    @property
    def recreated(self) -> set[str]:
        """Return no topics: Spark itself ends a query in real-time mode when one is recreated."""
        return set()

    def check_topics(self) -> bool:
        """Return False: Spark itself compares the topics in real-time mode."""
        return False

    def stop_soon(self) -> None:
        """Do nothing: there is no next batch to prevent."""

    def follow(self, query: StreamingQuery) -> None:
        """Look after the query until it ends, in a thread of its own."""
        Thread(target=self._follow, args=(query,), daemon=True).start()

    def stop(self) -> None:
        """Wait until Spark notes where it is, so that little is sent again, or until it has ended."""
        before = self._noted
        wait_for(
            lambda: self._noted != before or self._ended.is_set(),
            within=3 * NOTED_EVERY,
            every=_LOOK / 10,
        )

    def join(self) -> None:
        """Wait until the last note is committed."""
        self._ended.wait(10)

    def _follow(self, query: StreamingQuery) -> None:
        try:
            while query.isActive:
                self._take_notes()
                time.sleep(_LOOK)
            self._take_notes()
        except Exception as error:  # kept: whoever waits for the query asks for it
            self.error = error
            with suppress(Py4JError, OSError):  # the Java process may be gone
                query.stop()
        finally:
            self._ended.set()

    def _take_notes(self) -> None:
        for batch in range(self._noted + 1, self._epoch.last_done() + 1):
            self._note(batch)

    def _note(self, batch: int) -> None:
        begin, end = self._epoch.end_of(batch - 1), self._epoch.end_of(batch)
        records = sum(at - begin.get(where, 0) for where, at in end.items())
        now = time.monotonic()
        if self._pipeline.commit:
            self._log.commit(end, Stamp(self._epoch.number, batch).text)
        mark = Mark(self._epoch.number, batch, 0)
        done = Done(mark, records, records, 0, now - self._since, end, earlier=self._epoch.earlier)
        self._hooks.done(done)
        self.progress = self.progress.after_batch(done)
        self._noted, self._since = batch, now
