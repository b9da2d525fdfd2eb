"""Keeps the jobs that this process runs: tells the store how they are, and obeys what it says."""

from __future__ import annotations

import atexit
import time
from threading import Lock, Thread
from typing import TYPE_CHECKING

from penstock.config.logs import event_logger
from penstock.engine import Progress, State

if TYPE_CHECKING:
    from penstock.jobs.job import Job

log = event_logger(__name__)
_EVERY = 1.0


class Keeper:
    """The jobs of this process, by name, and the thread that looks after them."""

    def __init__(self) -> None:
        self._jobs: dict[str, Job] = {}
        self._told: dict[str, tuple[State, str | None]] = {}
        self._lock = Lock()
        self._thread: Thread | None = None

    def find(self, name: str) -> Job | None:
        """Return the job of this name, if this process runs it."""
        return self._jobs.get(name)

    def all(self) -> list[Job]:
        """Return the jobs that this process runs."""
        return list(self._jobs.values())

    def keep(self, job: Job) -> None:
        """Look after a job from now on."""
        with self._lock:
            self._jobs[job.name] = job
            if self._thread is None:
                self._thread = Thread(target=self._look, name="jobs", daemon=True)
                self._thread.start()
                atexit.register(self.stop_all)

    def forget(self, name: str) -> None:
        """Look after a job no more."""
        with self._lock:
            self._jobs.pop(name, None)
            self._told.pop(name, None)

    def stop_all(self) -> None:
        """Stop every job after its running batch: the process ends."""
        for job in self.all():
            job.stop()

    def _look(self) -> None:
        while True:
            time.sleep(_EVERY)
            for job in self.all():
                try:
                    self._look_at(job)
                # The store is away, say: the jobs go on, and the next look comes.
                except Exception as error:
                    log.warning("job_not_noted", job=job.name, reason=str(error))

    def _look_at(self, job: Job) -> None:
        kept = job.store.get(job.name)
        if kept is None or kept.cancelled:
            job.end()
            job.forget()
            return
        self.note(job, job.progress())

    def note(self, job: Job, progress: Progress) -> None:
        """Tell the store how a job is; a change of state is an event."""
        job.store.seen(job.name, progress.state, progress.total_lag)
        trouble = progress.state in (State.RETRYING, State.RESTARTING, State.FAILED)
        now = progress.state, progress.last_error if trouble else None
        if self._told.get(job.name) == now:
            return
        self._told[job.name] = now
        if trouble and progress.last_error:
            job.store.failed(job.name, progress.last_error)
        reason = f": {progress.last_error}" if trouble else ""
        job.store.note(job.name, f"{progress.state.value}{reason}")


keeper = Keeper()
