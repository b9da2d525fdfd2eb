"""One deployment in this worker: started, watched and stopped in a thread of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from threading import Event, Thread
from typing import Protocol

from penstock.config.logs import event_logger
from penstock.control.actions import Reason
from penstock.control.liveness import clock
from penstock.control.reconcile import Local
from penstock.control.worker_lease import Lease
from penstock.engine import Progress, State
from penstock.errors import PenstockError, TransientError
from penstock.worker.start_turns import StartTurns

log = event_logger(__name__)
_GRACE = 300.0
_FIRST_WAIT, _LONGEST_WAIT = 0.5, 30.0
_LOOK_EVERY = 0.5


class Runnable(Protocol):
    """What runs a deployment, once it is started."""

    def progress(self) -> Progress:
        """Return a snapshot, at once."""
        ...

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the end; raise the error that it ended with."""
        ...

    def stop(self, grace: float = ...) -> None:
        """Stop after the batch that is under way, or after the grace."""
        ...


@dataclass(frozen=True)
class Observed:
    """What is reported of a run."""

    state: str
    error: str | None = None
    restarts: int = 0


class HostedRun:
    """A run under a lease; `start` makes its runnable, and `turns` bounds how many start at a time.

    `on_end` is called when it has ended.
    """

    def __init__(
        self,
        lease: Lease,
        local: Local,
        start: Callable[[], Runnable],
        turns: StartTurns,
        on_end: Callable[[], object] = lambda: None,
    ) -> None:
        self.lease = lease
        self.local = local
        self._start = start
        self._turns = turns
        self._on_end = on_end
        self._begun: float | None = None
        self._asked, self._tried, self._ended = Event(), Event(), Event()
        self._grace = _GRACE
        self._runnable: Runnable | None = None
        self._error: PenstockError | None = None
        self.reason: Reason | None = None
        self._thread = Thread(target=self._live, name=f"run-{lease.deployment}", daemon=True)
        self._thread.start()

    @property
    def begun(self) -> float | None:
        """Return when its start began, by the clock of this process; None while it waits for its turn."""
        return self._begun

    @property
    def is_over(self) -> bool:
        """Return whether it has ended, by itself or on request."""
        return self._ended.is_set()

    @property
    def error(self) -> PenstockError | None:
        """Return what it ended with, or what it waits for."""
        return self._error

    def progress(self) -> Progress | None:
        """Return the progress; None before it has started."""
        return self._runnable.progress() if self._runnable else None

    def observed(self) -> Observed:
        """Return what is to be reported now."""
        progress = self.progress()
        if progress is None:
            error = str(self._error) if self._error else None
            waits = isinstance(self._error, TransientError)
            return Observed((State.RETRYING if waits else State.STARTING).value, error)
        troubled = progress.state in (State.RETRYING, State.RESTARTING, State.FAILED)
        error = progress.last_error if troubled else None
        return Observed(progress.state.value, error, progress.restarts)

    def stop(self, reason: Reason | None) -> None:
        """Ask it to stop after its batch, or at once if the lease is lost; `is_over` shows the end.

        Without a reason it is started again under the same lease.
        """
        if self._asked.is_set() and reason is not Reason.LOST:
            return
        if reason is Reason.LOST:
            self._grace = 0.0
        self.reason = reason
        self._asked.set()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for its end, at most `timeout` seconds; return whether it has ended."""
        return self._ended.wait(timeout)

    def wait_for_start(self) -> None:
        """Wait until it has started, or the first attempt has failed; raise that error."""
        self._tried.wait()
        if self._error is not None and self._runnable is None:
            raise self._error

    @property
    def is_asked_to_stop(self) -> bool:
        """Return whether it was asked to stop."""
        return self._asked.is_set()

    def _live(self) -> None:
        try:
            runnable = self._runnable = self._started()
            self._tried.set()
            if runnable is not None:
                self._watch(runnable)
        except PenstockError as error:
            self._error = error
        # A mistake of ours, or an exit in the code of a definition: it must not stay silent.
        except BaseException as error:
            log.exception("run_ended", deployment=self.lease.deployment)
            self._error = PenstockError(f"unexpected {type(error).__name__}: {error}")
        finally:
            self._tried.set()
            self._ended.set()
            self._on_end()

    def _started(self) -> Runnable | None:
        """Start it; a system that is away is waited for. Return None if it is to stop before."""
        for number in count():
            try:
                with self._turns.taken(self._asked, again=number > 0) as is_taken:
                    if not is_taken:
                        return None
                    self._begun = self._begun or clock()
                    log.info("run_starts", deployment=self.lease.deployment)
                    return self._start()
            except TransientError as error:
                self._error = error
                self._tried.set()
                log.warning("run_waits", deployment=self.lease.deployment, reason=str(error))
                wait = min(_LONGEST_WAIT, _FIRST_WAIT * 2.0 ** min(number, 10))
                if self._asked.wait(max(wait, error.retry_after)):
                    return None
        return None

    def _watch(self, runnable: Runnable) -> None:
        self._error = None
        try:
            while not self._asked.is_set() and not runnable.wait(_LOOK_EVERY):
                pass
        finally:
            runnable.stop(self._grace)
