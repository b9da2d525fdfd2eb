"""The handle of a job, whether this process or another one runs it."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING

from penstock.config.logs import event_logger
from penstock.engine import Progress, Running, State, start
from penstock.errors import ConfigError
from penstock.jobs.job_definition import pipeline_of, remove_state
from penstock.jobs.job_display import as_html, as_line, watch
from penstock.jobs.job_store import JobRow, Store
from penstock.jobs.job_table import Reader, Table
from penstock.jobs.liveness import SILENT, clock
from penstock.jobs.statistics import table_of
from penstock.jobs.supervisor import supervisor
from penstock.kafka import Consumer
from penstock.sinks.memory import MemorySink

if TYPE_CHECKING:
    import pandas as pd

    from penstock.pipeline import Pipeline

log = event_logger(__name__)


class Job:
    """A topic, through a parser, into a table, in the background.

    `with` stops it at the end of the block; it stays in the store and resumes at the next start. `cancel`
    ends it for good.
    """

    def __init__(self, store: Store, name: str, table: Table | None = None) -> None:
        self.store = store
        self.name = name
        self._table = table
        self._consumer: Consumer | None = None
        self._running: Running | None = None
        self._starts = False
        # When the store last confirmed that this process runs the job, by `liveness.clock`.
        self._confirmed = 0.0
        self._pipeline: Pipeline | None = None

    # -- queries

    @property
    def row(self) -> JobRow:
        """Return the stored row of the job."""
        stored = self.store.get(self.name)
        if stored is None:
            raise ConfigError(f"the job {self.name!r} was cancelled and does not exist any more")
        return stored

    @property
    def id(self) -> str:
        """Return the subscription id."""
        return self.row.id

    @property
    def pipeline(self) -> Pipeline:
        """Return the pipeline that does the job's work; its functions are loaded."""
        if self._pipeline is None:
            stored = self.row
            self.store.require_trust(stored)
            self._pipeline = pipeline_of(stored.definition, trusted=True)
        return self._pipeline

    @property
    def state(self) -> State:
        """Return the state of the job."""
        return self.progress().state if self._running else State(self.row.shown_state)

    @property
    def table(self) -> Table:
        """Return the job's table, for reading."""
        if self._table is None or not self._table.is_readable:
            sink = self.pipeline.sink
            if isinstance(sink, MemorySink):
                self._table = Table(None, sink.table, key=sink.key)
            else:
                view = Table(None, sink) if self._table is None else self._table
                self._table = view.read_with(Reader(self.pipeline))
        return self._table

    @property
    def consumer(self) -> Consumer:
        """Return a consumer in the job's group: for offsets, not to subscribe while the job runs."""
        if self._consumer is None:
            pipeline = self.pipeline
            self._consumer = Consumer(pipeline.connection, group_id=pipeline.group_id)
        return self._consumer

    def give(self, consumer: Consumer) -> None:
        """Use this consumer of the group, instead of creating one."""
        self._consumer = consumer

    def progress(self) -> Progress:
        """Return the engine's progress since this process started the job."""
        if self._running is None:
            raise ConfigError(f"the job {self.name!r} does not run in this process")
        return self._running.progress()

    def stats(self) -> pd.Series:
        """Return the job's row of `job_stats()`."""
        return table_of([self.now()]).iloc[0]

    def now(self) -> JobRow:
        """Return the stored row, with the current state and lag."""
        if self._running is not None:
            self.beat()
        return self.row

    def __repr__(self) -> str:
        row = self.store.get(self.name)
        return f"<Job {as_line(row)}>" if row else f"<Job {self.name} cancelled>"

    def _repr_html_(self) -> str:
        return as_html(self.now())

    def watch(self, every: float = 1.0) -> None:
        """Show the job until it ends or Ctrl-C is pressed; the job itself keeps running."""
        watch([self], every)

    # -- running

    def start(self) -> Job:
        """Run the job in this process, from where it stopped."""
        if self.runs_here:
            return self
        pipeline = self.pipeline
        self.store.take(self.name)
        self._confirmed, self._running, self._starts = clock(), None, True
        supervisor.watch(self)  # heartbeats come from now on: Spark may take a minute to start
        try:
            count = partial(self.store.count, self.name)
            self._running = start(pipeline, on_batch=count, before_batch=self._require_ownership)
        except BaseException:
            supervisor.forget(self.name)
            self.store.seen(self.name, State.STOPPED, 0)
            raise
        finally:
            self._starts = False
        self.store.note(self.name, "started")
        return self

    def _require_ownership(self) -> None:
        """Raise if another process took the job over while this one was stopped or suspended."""
        if clock() - self._confirmed > SILENT / 2:
            self.store.require_owner(self.name)

    def beat(self) -> Progress | None:
        """Write a heartbeat, without calling Kafka or Spark; return None if another process owns it."""
        progress = self._running.progress() if self._running else Progress(self.name)
        began = clock()
        if not self.store.seen(self.name, progress.state, progress.total_lag):
            return None
        self._confirmed = began
        return progress

    @property
    def runs_here(self) -> bool:
        """Return whether this process runs it."""
        return self._starts or (self._running is not None and self._running.is_active)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the job ends, at most `timeout` seconds; return whether it has ended."""
        return self._running is None or self._running.wait(timeout)

    def stop(self) -> None:
        """Stop after the current batch; the job stays stored and resumes at the next start."""
        if self.end() and self.store.get(self.name) is not None:
            self.store.seen(self.name, State.STOPPED, 0)
            self.store.note(self.name, "stopped")

    def cancel(self) -> None:
        """End the job and delete it; its table and its group's offsets are kept.

        A job that another process runs is ended by that process, within seconds.
        """
        here = self.end()
        if here or not self.row.is_alive:
            self.forget()
        else:
            self.store.cancel(self.name)

    def end(self, grace: float | None = None) -> bool:
        """Stop the job in this process; return whether it was running."""
        running, self._running = self._running, None
        if running is None:
            return False
        supervisor.forget(self.name)
        running.stop() if grace is None else running.stop(grace)
        return True

    def forget(self) -> None:
        """Delete the job's definition, counters and checkpoint, without loading code."""
        remove_state(self.row.definition)
        self.store.remove(self.name)

    def end_cancelled(self) -> None:
        """End a job that was cancelled by another process, and delete it."""
        self.end()
        if self.store.get(self.name) is not None:
            self.forget()

    def end_lost(self) -> None:
        """End a job that another process took over, without finishing its batch."""
        log.warning("job_lost", job=self.name, store=self.store.place)
        self.end(grace=0.0)
        self.store.note(
            self.name, f"stopped in process {os.getpid()}: another process runs the job"
        )

    def __enter__(self) -> Job:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
