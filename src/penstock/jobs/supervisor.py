"""The supervisor of this process's jobs: writes their heartbeats, and ends those cancelled in the store.

The heartbeat thread calls neither Kafka nor Spark, and waits for no batch: a job whose heartbeats
stop is started by another process.
"""

from __future__ import annotations

import atexit
import time
from collections.abc import Callable
from threading import Lock, Thread
from typing import TYPE_CHECKING

from penstock.config.logs import event_logger
from penstock.engine import Progress, State
from penstock.errors import PenstockError

if TYPE_CHECKING:
    from penstock.jobs.job import Job

log = event_logger(__name__)
_EVERY = 1.0
_GRACE = 30.0


class Supervisor:
    """The jobs of this process, by name, and their heartbeat thread."""

    def __init__(self) -> None:
        self._jobs: dict[str, Job] = {}
        self._reported: dict[str, tuple[State, str | None]] = {}
        self._lock = Lock()
        self._ending: list[Thread] = []
        self._thread: Thread | None = None

    def find(self, name: str) -> Job | None:
        """Return the job of this name, if this process runs it."""
        return self._jobs.get(name)

    def all(self) -> list[Job]:
        """Return the jobs that this process runs."""
        return list(self._jobs.values())

    def watch(self, job: Job) -> None:
        """Write heartbeats for a job from now on."""
        with self._lock:
            self._jobs[job.name] = job
            if self._thread is None:
                self._thread = Thread(target=self._beat, name="jobs", daemon=True)
                self._thread.start()
                atexit.register(self.stop_all)

    def forget(self, name: str) -> None:
        """Stop the heartbeats of a job."""
        with self._lock:
            self._jobs.pop(name, None)
            self._reported.pop(name, None)

    def stop_all(self) -> None:
        """Stop every job after its current batch: the process ends."""
        for job in self.all():
            job.stop()
        for ending in self._ending:
            ending.join(_GRACE)

    def _beat(self) -> None:
        while True:
            time.sleep(_EVERY)
            for job in self.all():
                try:
                    self._beat_for(job)
                # The store may be unavailable: the jobs continue, and the next heartbeat follows.
                except Exception as error:
                    log.warning("job_not_noted", job=job.name, reason=str(error))

    def _beat_for(self, job: Job) -> None:
        row = job.store.get(job.name)
        if row is None or row.cancelled:
            self._end(job, job.end_cancelled)
        elif (progress := job.beat()) is None:
            self._end(job, job.end_lost)
        else:
            self.note(job, progress)

    def _end(self, job: Job, how: Callable[[], None]) -> None:
        """End a job in a separate thread: its batch may take minutes, and others need heartbeats."""
        self.forget(job.name)
        ending = Thread(target=self._ended, args=(job, how), name=f"ending-{job.name}", daemon=True)
        self._ending = [one for one in self._ending if one.is_alive()] + [ending]
        ending.start()

    @staticmethod
    def _ended(job: Job, how: Callable[[], None]) -> None:
        try:
            how()
        except PenstockError as error:
            log.warning("job_not_ended", job=job.name, reason=str(error))

    def note(self, job: Job, progress: Progress) -> None:
        """Store a change of state as an event."""
        trouble = progress.state in (State.RETRYING, State.RESTARTING, State.FAILED)
        now = progress.state, progress.last_error if trouble else None
        if self._reported.get(job.name) == now:
            return
        self._reported[job.name] = now
        if trouble and progress.last_error:
            job.store.failed(job.name, progress.last_error)
        reason = f": {progress.last_error}" if trouble else ""
        job.store.note(job.name, f"{progress.state.value}{reason}")


supervisor = Supervisor()
