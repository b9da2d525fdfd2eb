"""A job: a handle on it, whether this process runs it or another one does."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.engine import Progress, Running, State, start
from penstock.engine.places import state_folder
from penstock.errors import ConfigError
from penstock.jobs.definition import pipeline_of
from penstock.jobs.keeper import keeper
from penstock.jobs.store import Kept, Store
from penstock.jobs.table import Reader, Table
from penstock.jobs.view import as_html, as_line
from penstock.kafka import Consumer
from penstock.pipeline.storage import is_uri
from penstock.sinks.memory import MemorySink

if TYPE_CHECKING:
    import pandas as pd

    from penstock.pipeline import Pipeline


class Job:
    """A topic, through a parser, into a table, in the background.

    `with` stops it at the end of the block; it stays in the store and goes on at the next start. `cancel`
    ends it for good.
    """

    def __init__(self, store: Store, name: str, table: Table | None = None) -> None:
        self.store = store
        self.name = name
        self._table = table
        self._consumer: Consumer | None = None
        self._running: Running | None = None
        self._pipeline: Pipeline | None = None

    # -- looking

    @property
    def kept(self) -> Kept:
        """What the store has about the job."""
        found = self.store.get(self.name)
        if found is None:
            raise ConfigError(f"the job {self.name!r} was cancelled and is no more")
        return found

    @property
    def id(self) -> str:
        """The subscription id."""
        return self.kept.id

    @property
    def pipeline(self) -> Pipeline:
        """The pipeline that does the job's work."""
        if self._pipeline is None:
            self._pipeline = pipeline_of(self.kept.definition)
        return self._pipeline

    @property
    def state(self) -> State:
        """Where the job is in its life."""
        return self.progress().state if self._running else State(self.kept.shown_state)

    @property
    def table(self) -> Table:
        """The job's table, to look at."""
        if self._table is None or not self._table.is_readable:
            self._table = _readable(self._table, self.pipeline)
        return self._table

    @property
    def consumer(self) -> Consumer:
        """A consumer in the job's group: to look at offsets, not to subscribe while the job runs."""
        if self._consumer is None:
            pipeline = self.pipeline
            self._consumer = Consumer(pipeline.connection, group_id=pipeline.group_id)
        return self._consumer

    def give(self, consumer: Consumer) -> None:
        """Have this consumer of the group, instead of one of its own."""
        self._consumer = consumer

    def progress(self) -> Progress:
        """Return how it is going since this process has run it: the engine's own view."""
        if self._running is None:
            raise ConfigError(f"the job {self.name!r} does not run in this process")
        return self._running.progress()

    def stats(self) -> pd.Series:
        """Return the job's row of `job_stats()`."""
        from penstock.jobs.statistics import table_of  # noqa: PLC0415

        return table_of([self.now()]).iloc[0]

    def now(self) -> Kept:
        """Return what the store has, with the state and the lag of this moment."""
        if self._running is not None:
            progress = self._running.progress()
            self.store.seen(self.name, progress.state, progress.total_lag)
        return self.kept

    def __repr__(self) -> str:
        found = self.store.get(self.name)
        return f"<Job {as_line(found)}>" if found else f"<Job {self.name} cancelled>"

    def _repr_html_(self) -> str:
        return as_html(self.now())

    def watch(self, every: float = 1.0) -> None:
        """Show the job until it ends or Ctrl-C is pressed; the job itself goes on."""
        from penstock.jobs.view import watch  # noqa: PLC0415

        watch([self], every)

    # -- running

    def start(self) -> Job:
        """Run the job in this process, from where it was."""
        if not self.runs_here:
            self._running = start(
                self.pipeline, on_batch=lambda done: self.store.count(self.name, done)
            )
            keeper.keep(self)
            self.store.note(self.name, "started")
        return self

    @property
    def runs_here(self) -> bool:
        """Whether this process runs it."""
        return self._running is not None and self._running.is_active

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the job ends, at most `timeout` seconds; say whether it has ended."""
        return self._running is None or self._running.wait(timeout)

    def stop(self) -> None:
        """Stop after the running batch; the job stays, and goes on at the next start."""
        if self.end() and self.store.get(self.name) is not None:
            self.store.seen(self.name, State.STOPPED, 0)
            self.store.note(self.name, "stopped")

    def cancel(self) -> None:
        """End the job and forget it; its table, and its group's offsets, stay.

        A job that another process runs is ended by that process, within seconds.
        """
        here = self.end()
        if here or not self.kept.is_alive:
            self.forget()
        else:
            self.store.cancel(self.name)

    def end(self) -> bool:
        """Stop what runs in this process; say whether anything did."""
        running, self._running = self._running, None
        if running is None:
            return False
        keeper.forget(self.name)
        running.stop()
        return True

    def forget(self) -> None:
        """Remove what was kept about the job: its definition, counts and checkpoint."""
        if not is_uri(state := state_folder(self.pipeline)):
            shutil.rmtree(Path(state), ignore_errors=True)
        self.store.remove(self.name)

    def __enter__(self) -> Job:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def _readable(table: Table | None, pipeline: Pipeline) -> Table:
    """Return a view on the rows that a pipeline's sink holds."""
    sink = pipeline.sink
    if isinstance(sink, MemorySink):
        return Table(None, sink.table, key=sink.key)
    return (Table(None, sink) if table is None else table).read_with(Reader(pipeline))
