"""The handle of a job, whether this process or another one runs it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.control.job_spec import pipeline_of
from penstock.engine import Progress, State
from penstock.errors import ConfigError
from penstock.jobs.job_display import as_html, as_line, watch
from penstock.jobs.job_store import JobRow, Store
from penstock.jobs.job_table import Reader, Table
from penstock.jobs.server_store import ServerStore
from penstock.jobs.statistics import table_of
from penstock.kafka import Consumer
from penstock.sinks.memory import MemorySink

if TYPE_CHECKING:
    import pandas as pd

    from penstock.pipeline import Pipeline
    from penstock.worker.hosted_run import HostedRun


class Job:
    """A topic, through a parser, into a table, in the background.

    `with` stops it at the end of the block; it stays in the store and resumes at the next start. `cancel`
    ends it for good.
    """

    def __init__(self, store: Store | ServerStore, name: str, table: Table | None = None) -> None:
        self.store = store
        self.name = name
        self._table = table
        self._consumer: Consumer | None = None
        self._run: HostedRun | None = None
        self._pipeline: Pipeline | None = None

    # -- queries

    @property
    def row(self) -> JobRow:
        """Return the stored row of the job."""
        stored = self.store.get(self.name)
        if stored is None:
            raise self._gone()
        return stored

    @property
    def id(self) -> str:
        """Return the subscription id."""
        return self.row.id

    @property
    def pipeline(self) -> Pipeline:
        """Return the pipeline that does the job's work; its functions are loaded."""
        if self._pipeline is None:
            spec = self.store.spec(self.name)
            if spec is None:
                raise self._gone()
            self.store.require_trust(self.name, spec)
            self._pipeline = pipeline_of(spec.definition, trusted=True)
        return self._pipeline

    @property
    def state(self) -> State:
        """Return the state of the job."""
        return State(self.now().shown_state)

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
        run = self._running
        progress = run.progress() if run else None
        if progress is None:
            raise ConfigError(f"the job {self.name!r} does not run in this process")
        return progress

    def stats(self) -> pd.Series:
        """Return the job's row of `job_stats()`."""
        return table_of([self.now()]).iloc[0]

    def now(self) -> JobRow:
        """Return the stored row, with the current state and lag if this process runs it."""
        row, run = self.row, self._running
        progress = run.progress() if run else None
        if run is None or progress is None:
            return row
        return replace(row, state=run.observed().state, lag=progress.total_lag, is_alive=True)

    def __repr__(self) -> str:
        row = self.store.get(self.name)
        return f"<Job {as_line(self.now())}>" if row else f"<Job {self.name} cancelled>"

    def _repr_html_(self) -> str:
        return as_html(self.now())

    def watch(self, every: float = 1.0) -> None:
        """Show the job until it ends or Ctrl-C is pressed; the job itself keeps running."""
        watch([self], every)

    # -- running

    @property
    def _running(self) -> HostedRun | None:
        """Return the run in this process; it is another one after a change of the definition."""
        run = self.store.run_of(self.name)
        return run if run is not None and not run.is_over else None

    @property
    def runs_here(self) -> bool:
        """Return whether this process runs it."""
        return self._running is not None

    def start(self) -> Job:
        """Run the job, from where it stopped: in this process, or in a worker of its server."""
        if self.runs_here:
            return self
        _ = self.pipeline  # mistakes, and code that must not be loaded, are reported first
        self._run = self.store.start(self.name, self)
        return self

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the job ends, at most `timeout` seconds; return whether it has ended.

        A job that failed raises its error.
        """
        run = self._running or self._run
        if run is None:
            return True
        if not run.wait(timeout):
            return False
        if run.error is not None:
            raise run.error
        return True

    def stop(self) -> None:
        """Stop after the current batch; the job stays stored and resumes at the next start."""
        self.store.stop(self.name)

    def cancel(self) -> None:
        """End the job and delete it; its table and its group's offsets are kept.

        A job that another process runs is ended by that process, within seconds.
        """
        self.store.end(self.name)

    def _gone(self) -> ConfigError:
        return ConfigError(f"the job {self.name!r} was cancelled and does not exist any more")

    def __enter__(self) -> Job:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
