"""Replays that people ask for over the API: a worker takes them from the store, one at a time.

They run in the thread that calls `step`, so that reconciling, renewing and reporting never wait for one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from threading import Lock

from penstock.config.log_fields import log_fields
from penstock.config.logs import event_logger
from penstock.control.liveness import SILENT, clock
from penstock.control.store import ControlStore
from penstock.control.store.rows import ReplayRow
from penstock.engine.dead_letters.replay_lock import ReplayingError
from penstock.engine.dead_letters.replays import Replayed
from penstock.engine.restart_reason import JavaDiedError
from penstock.engine.session import lost_session, session_is_lost
from penstock.errors import PenstockError, TransientError
from penstock.retry import retry

log = event_logger(__name__)
# For how many seconds a system that is away, or another replay, is waited for; and the store.
_AWAY, _STORE_AWAY = 60.0, 300.0
_TRY_EVERY = 2.0
# A pause of this length between two looks is one of the store, or of this process.
_INTERRUPTED = 10.0

Replay = Callable[[ReplayRow, bool], Replayed]
"""Runs a replay; the second argument says whether it was begun before and interrupted."""


class ReplayRequests:
    """The requests that one worker takes; with `only_own` those of deployments that it runs."""

    def __init__(
        self, store: ControlStore, worker: str, replay: Replay, *, only_own: bool = False
    ) -> None:
        self._store = store.replays
        self._worker = worker
        self._replay = replay
        self._only_own = only_own
        self._lock = Lock()
        self._is_closed = self._is_busy = False
        self._taken: ReplayRow | None = None
        # Since when the store is read without an interruption, and when it was read.
        self._steady = self._looked = clock()

    def step(self) -> None:
        """Run what there is, one after the other."""
        while self._begin():
            try:
                self._taken = self._take()
                if self._taken is None:
                    return
                self._run(self._taken)
            finally:
                self._taken, self._is_busy = None, False

    def _take(self) -> ReplayRow | None:
        """Take what waits; and what another worker ran, once it had time for a heartbeat."""
        now = clock()
        if now - self._looked > _INTERRUPTED:
            self._steady = now
        heard = now - self._steady >= SILENT
        taken = self._store.take(self._worker, only_own=self._only_own, from_silent=heard)
        self._looked = now
        return taken

    def close(self) -> bool:
        """Take nothing more; return whether none is running."""
        with self._lock:
            self._is_closed = True
            return not self._is_busy

    def give_back(self) -> None:
        """Let another worker take what is running: this process ends."""
        if (taken := self._taken) is not None and self._store.give_back(taken):
            log.warning("replay_given_back", deployment=taken.deployment, replay=taken.number)

    def _begin(self) -> bool:
        """Return whether one may be taken now; from then on the worker waits for it."""
        with self._lock:
            self._is_busy = not self._is_closed and not session_is_lost()
            return self._is_busy

    def _run(self, taken: ReplayRow) -> None:
        with log_fields(pipeline=taken.deployment, replay=taken.number):
            log.info("replay_begins", attempt=taken.attempts)
            write = self._outcome(taken)
            is_mine = retry(write, lambda error: _pause(error, TransientError), within=_STORE_AWAY)
            if not is_mine:
                log.warning("replay_lost")

    def _outcome(self, taken: ReplayRow) -> Callable[[], bool]:
        """Run a replay; return what writes down how it ended."""
        try:
            done = self._replayed(taken)
        except JavaDiedError as error:
            reason = str(error)
            log.warning("replay_interrupted", reason=reason)
            return lambda: self._store.give_back(taken, reason)
        except PenstockError as error:
            reason = str(error)
            log.warning("replay_failed", reason=reason)
            return lambda: self._store.fail(taken, reason)
        outcome = asdict(done)
        log.info("replay_done", **outcome)
        return lambda: self._store.finish(taken, outcome)

    def _replayed(self, taken: ReplayRow) -> Replayed:
        is_repeated = taken.attempts > 1

        def attempt() -> Replayed:
            nonlocal is_repeated
            repeated, is_repeated = is_repeated, True
            return self._replay(taken, repeated)

        def again(error: Exception) -> float | None:
            return _pause(error, (TransientError, ReplayingError))

        try:
            return retry(attempt, again, within=_AWAY)
        except PenstockError:
            raise
        except Exception as error:  # Java's, Spark's or a driver's: a reason like any other
            raise lost_session(error, taken.deployment) from error
        except BaseException as error:  # an exit in the code of a definition
            raise PenstockError(f"unexpected {type(error).__name__}: {error}") from error


def _pause(
    error: Exception, kinds: type[PenstockError] | tuple[type[PenstockError], ...]
) -> float | None:
    return _TRY_EVERY if isinstance(error, kinds) else None
