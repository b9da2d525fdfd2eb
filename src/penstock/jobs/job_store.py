"""The jobs in the store of the control plane: deployments that a process or a worker runs."""

from __future__ import annotations

import getpass
import os
import random
import secrets
from collections.abc import Iterator
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from penstock.control.dead_workers import free_leases_of_the_dead
from penstock.control.job_spec import JobSpec
from penstock.control.liveness import has_ended
from penstock.control.places import open_store, store_place
from penstock.control.store.rows import DeploymentRow, Desired, EventRow, Kind, RunRow
from penstock.errors import ConfigError, nearest
from penstock.jobs.job_row import JobRow

if TYPE_CHECKING:
    from penstock.jobs.hosting import Hosting
    from penstock.jobs.job import Job
    from penstock.worker.hosted_run import HostedRun

__all__ = ["JobRow", "JobRunsElsewhereError", "Store", "taken"]


class JobRunsElsewhereError(ConfigError):
    """Another process runs the job."""


class Store:
    """Jobs in a store; `place` is a file for SQLite or the URL of a PostgreSQL."""

    def __init__(self, place: str | Path) -> None:
        self.control = open_store(str(place))
        self.place = self.control.database.place
        self.user = getpass.getuser()
        self._hosting: Hosting | None = None
        self._lock = Lock()

    @classmethod
    def default(cls) -> Store:
        """Return the user's own store, always the same object."""
        place = store_place()
        with _opening:
            if place not in _opened:
                _opened[place] = cls(place)
            return _opened[place]

    @property
    def hosting(self) -> Hosting:
        """Return what runs jobs of this store in this process."""
        from penstock.jobs.hosting import Hosting  # noqa: PLC0415 - it loads the engine

        with self._lock:
            if self._hosting is None:
                self._hosting = Hosting(self.control, self.user)
            return self._hosting

    def start(self, name: str, job: Job) -> HostedRun:
        """Run a job in this process; return when it has started."""
        return self.hosting.start(name, job)

    def handle(self, name: str) -> Job | None:
        """Return the handle of a job that this process runs."""
        return self._hosting.find(name) if self._hosting else None

    def run_of(self, name: str) -> HostedRun | None:
        """Return the run of a job in this process."""
        return self._hosting.run_of(name) if self._hosting else None

    def stop(self, name: str) -> None:
        """Stop a job that this process runs, after its batch."""
        if self._hosting is not None:
            self._hosting.stop(name)

    def end(self, name: str) -> None:
        """End a job and delete it; one that another process runs is ended there."""
        if self._hosting is None or not self._hosting.stop(name, Desired.DELETED):
            self.cancel(name)

    def close(self) -> None:
        """Stop the jobs that this process runs, and close the database."""
        if self._hosting is not None:
            self._hosting.close()
        self.control.close()

    # -- definitions

    def put(self, name: str, spec: JobSpec, desired: Desired | None = None) -> None:
        """Store a new job, or a new definition of one; its counters are kept."""
        self.require_trust(name, spec)
        before = self.control.deployments.get(name)
        is_job = before is not None and before.kind is Kind.JOB
        if before is not None and is_job and JobSpec.of(before, self.control.secrets) == spec:
            text = before.spec  # encrypting a secret again would look like a change
        else:
            text = spec.sealed(name, self.control.secrets)
        # As it was read: another process may have created or changed it since.
        expected = before.revision if before else 0
        self.control.deployments.put(
            name, Kind.JOB, text, by=self.user, desired=desired, expected=expected
        )

    def require_trust(self, name: str, spec: JobSpec) -> None:
        """Refuse a function stored by value, unless the store is a private file."""
        spec.require_trust(name, self.control.database.file, self.place)

    def new_id(self) -> str:
        """Return an id that no job has."""
        taken_ids = {job.id for job in self.all()}
        while True:
            number = str(random.SystemRandom().randrange(10**7, 10**9))
            if number not in taken_ids:
                return number

    # -- queries

    def get(self, name: str) -> JobRow | None:
        """Return the job of this name."""
        row = self._row(name)
        return None if row is None else next(self._read([row]), None)

    def spec(self, name: str) -> JobSpec | None:
        """Return the stored definition of a job."""
        row = self._row(name)
        return None if row is None else JobSpec.of(row, self.control.secrets)

    def find(self, what: str | int) -> JobRow:
        """Return a job by its name or its subscription id; a name wins over an id."""
        if (named := self.get(str(what))) is not None:
            return named
        every = self.all()
        if (match := next((job for job in every if job.id == str(what)), None)) is not None:
            return match
        names = [job.name for job in every]
        hint = nearest(str(what), names) if names else "there are none: create_job makes one"
        raise ConfigError(f"there is no job {what!r}; {hint}")

    def all(self) -> list[JobRow]:
        """Return every job, the oldest first."""
        rows = [row for row in self.control.deployments.all() if row.kind is Kind.JOB]
        return sorted(self._read(rows), key=lambda job: job.created)

    def events(self, name: str, after: int = 0) -> list[EventRow]:
        """Return the job's events with a greater number, the oldest first."""
        return self.control.events.after(after, deployment=name)

    def _row(self, name: str) -> DeploymentRow | None:
        row = self.control.deployments.get(name)
        return row if row is not None and row.kind is Kind.JOB else None

    def _read(self, rows: list[DeploymentRow]) -> Iterator[JobRow]:
        names = [row.name for row in rows]
        now = self.control.database.time()
        runs = {run.deployment: run for run in self.control.leases.all(names)}
        counts = {row.deployment: row for row in self.control.counters.all(names)}
        ended = {each.id for each in self.control.workers.all() if has_ended(each.process)}
        lags = {name: at.sample.lag for name, at in self.control.samples.latest().items()}
        for row in rows:
            if row.name in counts:  # else it was removed in between
                run, lag = runs.get(row.name) or RunRow(row.name), lags.get(row.name, 0)
                spec = JobSpec.readable(row, self.control.secrets)
                alive = run.is_held(now) and run.worker not in ended
                yield JobRow.of(row, spec, run, counts[row.name], is_alive=alive, lag=lag)

    # -- wishes

    def want(self, name: str, desired: Desired) -> None:
        """Ask for a state of a job, from whichever process runs it."""
        self.control.deployments.set_desired(name, desired, by=self.user)

    def cancel(self, name: str) -> None:
        """Ask for the end of a job; one that no process runs is removed at once.

        The process of this machine that ran it may have been killed: its lease counts no longer.
        """
        self.want(name, Desired.DELETED)
        free_leases_of_the_dead(self.control, self.control.workers.all())
        asking = f"cancel-{os.getpid()}-{secrets.token_hex(3)}"
        claimed = self.control.leases.claim(name, asking)
        row = self._row(name)
        if claimed is not None and row is not None:
            from penstock.worker.starting import Starting  # noqa: PLC0415 - it loads the engine

            Starting(self.control).clean(row)
            self.control.deployments.remove(name, asking, claimed.token)


_opened: dict[str, Store] = {}
_opening = Lock()


def taken(name: str) -> ConfigError:
    """Return the error for a name that another job has."""
    return ConfigError(
        f"the job {name!r} already exists; choose another name, or end that one with "
        f"penstock.cancel({name!r})"
    )
