"""The jobs of one store that this process runs: a worker that claims those and no others.

At the end of the process they are stopped after their batches. If the process is killed, its leases
lapse: workers of the store take the jobs over, and so does a process that asks for them.
"""

from __future__ import annotations

import atexit
from collections.abc import Collection
from threading import Thread
from typing import TYPE_CHECKING

from penstock.config.logs import event_logger
from penstock.control.actions import Reason
from penstock.control.store import ControlStore, Wanted
from penstock.control.store.rows import Desired, Kind
from penstock.errors import PenstockError
from penstock.jobs.job_store import JobRunsElsewhereError
from penstock.worker.hosted_run import HostedRun
from penstock.worker.starting import Starting
from penstock.worker.worker import RunsElsewhereError, Worker, WorkerSettings

if TYPE_CHECKING:
    from penstock.jobs.job import Job

log = event_logger(__name__)
_GRACE = 30.0


class Hosting:
    """Runs the jobs that this process asks for."""

    def __init__(self, store: ControlStore, user: str) -> None:
        self.store = store
        self._user = user
        self._names: set[str] = set()
        self._takes_all = False
        self._jobs: dict[str, Job] = {}
        # It counts for no share of what the workers of the store run.
        settings = WorkerSettings(capacity=0.0)
        self.worker = Worker(
            store, Starting(store, has_memory_tables=True), settings, self._is_chosen
        )
        self._thread = Thread(target=self.worker.run, name="jobs", daemon=True)
        self._thread.start()
        atexit.register(self.close)

    def _is_chosen(self, wanted: Wanted) -> bool:
        return wanted.name in self._names or (self._takes_all and wanted.kind is Kind.JOB)

    def take(self, names: Collection[str] = ()) -> None:
        """Run these jobs as soon as no other process does, or all, also those that are created later."""
        self._names |= set(names)
        self._takes_all = not names

    def start(self, name: str, job: Job | None = None) -> HostedRun:
        """Run a job in this process; return when it has started, and raise if that is not possible."""
        self._names.add(name)
        try:
            run = self.worker.host(name, self._user)
        except RunsElsewhereError as error:
            self._names.discard(name)
            raise JobRunsElsewhereError(
                f"the job {error}; stop that one first, or end the job with penstock.cancel({name!r})"
            ) from None
        try:
            run.wait_for_start()
        except BaseException:
            self.stop(name)
            raise
        if job is not None:
            self._jobs[name] = job
        return run

    def find(self, name: str) -> Job | None:
        """Return the handle of a job that this process runs."""
        return self._jobs.get(name)

    def run_of(self, name: str) -> HostedRun | None:
        """Return the run of a job in this process."""
        return self.worker.runs.get(name)

    def stop(self, name: str, desired: Desired = Desired.STOPPED) -> bool:
        """Stop a job after its batch; return whether this process ran it."""
        here = name in self.worker.runs
        if here:
            self.store.deployments.set_desired(name, desired, by=self._user)
            reason = Reason.DELETED if desired is Desired.DELETED else Reason.STOPPED
            self.worker.finish(name, reason)
        self._names.discard(name)
        self._jobs.pop(name, None)
        return here

    def leave(self) -> None:
        """Give all jobs up after their batches, for other processes."""
        self._takes_all = False
        self.worker.drain()
        while self._thread.is_alive():
            self._thread.join(0.2)

    def close(self) -> None:
        """Stop all jobs that were started here: the process ends."""
        atexit.unregister(self.close)
        for name in list(self.worker.runs):
            try:
                self.stop(name)
            except PenstockError as error:
                log.warning("job_not_stopped", job=name, reason=str(error))
        self.worker.drain()
        self._thread.join(_GRACE)
