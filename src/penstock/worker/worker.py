"""The worker: claims deployments, runs them, reports what they do, and gives them up at its end.

Four threads of its own, so that none waits for another's work: one reconciles, one renews the leases
and touches neither Kafka nor Spark, one reports, one replays dead letters. Every run has a thread, too.
"""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from threading import Event, Lock, RLock, Thread
from typing import TYPE_CHECKING

import psutil

from penstock.config.log_fields import deployments_named
from penstock.config.logs import event_logger
from penstock.control.actions import Action, Claim, Clean, Reason, Release, Restart, Start, Stop
from penstock.control.dead_workers import free_leases_of_the_dead
from penstock.control.liveness import clock, this_process
from penstock.control.reconcile import Local, has_others, reconcile
from penstock.control.store import ControlStore, View, Wanted
from penstock.control.store.leases import Leases, Stalled
from penstock.control.store.rows import (
    FAILED,
    FREE,
    PAUSED,
    PENDING,
    DeploymentRow,
    Desired,
    ReplayRow,
    RunRow,
)
from penstock.control.worker_lease import HeldLeases, Lease, LeaseWatch
from penstock.engine import State
from penstock.engine.restart_reason import RestartReason
from penstock.errors import ConfigError, NotFoundError, PenstockError, TransientError
from penstock.worker.hosted_run import HostedRun, Runnable
from penstock.worker.java_restart import JavaRestart
from penstock.worker.log_lines import LogLines
from penstock.worker.replay_requests import ReplayRequests
from penstock.worker.reporting import Reporting
from penstock.worker.start_turns import StartTurns
from penstock.worker.starting import Starting
from penstock.worker.state_removal import Removal

if TYPE_CHECKING:
    from penstock.engine.dead_letters import Replayed

log = event_logger(__name__)
# How soon a store that was away is tried again, in seconds.
_TRY_EVERY = 1.0
# For how long a step waits for the removal of a state, in seconds.
_REMOVED = 1.0
# With which state a lease is given back.
_AFTER = {
    Reason.PAUSED: PAUSED,
    Reason.STOPPED: State.STOPPED.value,
    Reason.DRAINING: PENDING,
    Reason.BALANCE: PENDING,
    Reason.JAVA_DIED: PENDING,
}
# What is counted as a restart, although the next start is on another worker.
_MOVES = {
    Reason.DRAINING: RestartReason.DRAINED,
    Reason.BALANCE: RestartReason.BALANCED,
    Reason.JAVA_DIED: RestartReason.JAVA_DIED,
}


@dataclass(frozen=True)
class WorkerSettings:
    """How often a worker does what, in seconds, and what it can do."""

    reconcile_every: float = 1.0
    report_every: float = 1.0
    # How many runs start at the same time: a start takes a core for a second.
    starts: int = 2
    # How long it waits at its end for running batches, and for a store that is away.
    grace: float = 300.0
    # How many cores it counts for, in comparison with other workers.
    capacity: float = field(default_factory=lambda: float(os.cpu_count() or 1))


class RunsElsewhereError(ConfigError):
    """Another worker has the lease of a deployment."""


class Worker:
    """Runs deployments of a store until it is stopped; `run` returns when none is left.

    It shares all deployments with the other workers of the store, or runs the `chosen` ones, as a
    process with jobs of its own does.
    """

    def __init__(
        self,
        store: ControlStore,
        starting: Starting,
        settings: WorkerSettings | None = None,
        chosen: Callable[[Wanted], bool] | None = None,
    ) -> None:
        self.id = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(3)}"
        self.store = store
        self._starting = starting
        self._settings = settings or WorkerSettings()
        self._leases = HeldLeases()
        # All runs write at the same time where the store was slow: renewals wait for none of them.
        self._renewing = Leases(store.database.apart(), store.leases.length)
        self._watch = LeaseWatch(store.leases.length)
        self._stalled: dict[str, Stalled] = {}
        self._runs: dict[str, HostedRun] = {}
        # Why the last action for a deployment was not possible: each reason is logged once.
        self._refused: dict[str, str] = {}
        self._chosen = chosen
        # By name and token of the lease: a later deployment may have the same name.
        self._removals: dict[tuple[str, int], Removal] = {}
        self._lock = Lock()
        # One step at a time: reconciling, or what a caller asks for.
        self._step = RLock()
        self._turns = StartTurns(self._settings.starts)
        self._draining, self._ended = Event(), Event()
        # A run has ended: what comes next for it is done at once.
        self._woken = Event()
        self._java = JavaRestart(self._offer)
        # Whether other workers can run what this one gives up.
        self._has_others = False
        self._deadline = 0.0
        self._reporting = Reporting(store, self.id)
        self.lines = LogLines(store.logs, self.id)
        self._replays = ReplayRequests(store, self.id, self._replay, only_own=chosen is not None)

    def run(self) -> None:
        """Run deployments until `drain` was called, here or in the store, and all have ended."""
        with deployments_named():
            self._run()

    def _run(self) -> None:
        self._join()
        threads = [
            Thread(target=self._repeat, args=[do, every], name=name, daemon=True)
            for name, do, every in (
                ("renewing", self.renew, self.store.leases.length / 3),
                ("reporting", self._report, self._settings.report_every),
                ("replaying", self._replays.step, self._settings.reconcile_every),
            )
        ]
        for thread in threads:
            thread.start()
        self._repeat(self.reconcile, self._settings.reconcile_every, self._woken)
        for thread in threads:
            thread.join(5)
        try:
            self._replays.give_back()
            self._reporting.restarts.write(self.store.restarts)
            self.lines.write()
            self.store.workers.leave(self.id)
        except PenstockError as error:  # it is forgotten when its heartbeats are old
            log.warning("worker_not_removed", worker=self.id, reason=str(error))
        finally:
            self._renewing.close()

    def drain(self) -> None:
        """Claim nothing more, stop every run after its batch and give its lease back; then `run` ends."""
        self._draining.set()
        self._woken.set()

    @property
    def runs(self) -> dict[str, HostedRun]:
        """Return the runs of this worker by their deployments' names."""
        with self._lock:
            return dict(self._runs)

    def _join(self) -> None:
        own = (socket.gethostname(), os.getpid(), self._settings.capacity, this_process())
        while not self._draining.is_set():
            try:
                self.store.workers.join(self.id, *own)
            except TransientError as error:
                log.warning("store_away", worker=self.id, reason=str(error))
                self._draining.wait(1.0)
            else:
                return

    def _repeat(self, do: Callable[[], object], every: float, woken: Event | None = None) -> None:
        """Do something again and again until the worker has ended; a store that is away is waited for.

        It is done at once when it is `woken`.
        """
        is_away, wakes = False, woken or self._ended
        while not self._ended.is_set():
            try:
                do()
            except TransientError as error:
                if not is_away:
                    log.warning("store_away", worker=self.id, reason=str(error))
                is_away = True
            except Exception:  # a mistake of ours must not end the thread that keeps the leases
                log.exception("worker_step_failed", worker=self.id)
            else:
                if is_away:
                    log.warning("store_back", worker=self.id)
                is_away = False
            wakes.wait(min(every, _TRY_EVERY) if is_away else every)
            if wakes is not self._ended:
                wakes.clear()

    # -- leases

    def renew(self) -> None:
        """Renew all leases; stop the runs of those that another worker has."""
        sent = clock()
        tokens = self._renewing.renew(self.id, psutil.cpu_percent() / 100)
        for lost in self._leases.confirm(tokens, sent):
            log.warning("lease_lost", deployment=lost.deployment, lease=lost.token)
            run = self.runs.get(lost.deployment)
            if run is not None and run.lease is lost:
                run.stop(Reason.LOST)

    # -- reconciling

    def reconcile(self) -> None:
        """Compare what runs here with what should, and act; one step."""
        with self._step:
            self._reconcile()

    def _reconcile(self) -> None:
        try:
            self._collect_ended()
        except TransientError:
            self._watch.store_away()
            raise
        finally:
            if self._draining.is_set():
                self._drain_here()
        if self._draining.is_set():
            return
        view = self._own(self._view())
        if self._is_drained(view):
            self.drain()
        self._stalled = self._watch.observe(view.runs.values())
        self._has_others = self._chosen is None and has_others(view, self.id)
        # Without Java it leaves what is free to the others; alone it claims, and the runs wait for Java.
        is_ready = self._chosen is not None or self._java.is_ready() or not self._has_others
        runs = self.runs
        local = {name: run.local for name, run in runs.items()}
        now = clock()
        begun = {name: now - run.begun for name, run in runs.items() if run.begun is not None}
        for action in reconcile(view, self.id, local, set(self._stalled), begun=begun):
            is_claim = isinstance(action, Claim)
            if not is_claim or (is_ready and self._is_free(view.runs[action.name])):
                self._alone(action.name, type(action).__name__, partial(self._act, action))

    def _alone(self, name: str, what: str, do: Callable[[], object]) -> None:
        """Do something for one deployment; where it is not possible, only this one waits."""
        try:
            do()
        except TransientError:  # the store is away
            raise
        except Exception as error:  # a mistake of ours, too, must not stop the other deployments
            reason = f"{type(error).__name__}: {error}"
            if self._refused.get(name) != reason:
                log.exception("action_failed", deployment=name, action=what)
            self._refused[name] = reason
        else:
            self._refused.pop(name, None)

    def _is_free(self, run: RunRow) -> bool:
        """Return whether a lease was given back, or its holder had time to renew it."""
        return run.worker == FREE or self._watch.is_settled()

    def _offer(self, is_ready: bool) -> None:
        """Let the other workers count on this one, or not while it has no Java."""
        self.store.workers.offer(self.id, self._settings.capacity if is_ready else 0.0)

    def _view(self) -> View:
        try:
            return self.store.view()
        except TransientError:
            self._watch.store_away()
            raise

    def _own(self, view: View) -> View:
        """Return what this worker decides by: everything, or the chosen ones as if it were alone."""
        if free_leases_of_the_dead(self.store, view.workers.values()):
            view = self.store.view()
        if self._chosen is None:
            return view
        wanted = {name: each for name, each in view.wanted.items() if self._chosen(each)}
        workers = {id: worker for id, worker in view.workers.items() if id == self.id}
        return View(view.now, wanted, {name: view.runs[name] for name in wanted}, workers)

    def _is_drained(self, view: View) -> bool:
        """Return whether someone asked for the end of this worker in the store."""
        own = view.workers.get(self.id)
        return own is None or own.draining

    def _drain_here(self) -> None:
        for run in self.runs.values():
            run.stop(Reason.DRAINING)
        self._deadline = self._deadline or clock() + self._settings.grace
        is_idle = self._replays.close() and not self.runs
        if is_idle or clock() > self._deadline:
            self._ended.set()
        else:
            self.store.workers.drain(self.id)

    def _act(self, action: Action) -> None:
        match action:
            case Claim(name):
                self._claim(name)
            case Start(name, token):
                lease = self._leases.get(name)
                if lease is None or lease.token != token:
                    self._begin(name, self._unconfirmed(name, token))
                elif lease.is_held():
                    self._begin(name, lease)
            case Restart(name, _, generation, _):
                self._restart(name, generation)
            case Stop(name, _, reason):
                self._stop(name, reason)
            case Release(name, token, reason):
                self.store.leases.release(name, self.id, token, _AFTER[reason])
                self._leases.remove(name)
            case Clean(name, token):
                self._clean(name, token)

    def _claim(self, name: str) -> None:
        sent = clock()
        claimed = self.store.leases.claim(name, self.id, self._stalled.get(name))
        if claimed is None:
            return
        if claimed.desired is Desired.DELETED:
            self._clean(name, claimed.token)
            return
        length = self.store.leases.length
        self._begin(name, self._leases.add(name, claimed.token, length, sent))

    # -- what a process asks for that runs deployments of its own

    def host(self, name: str, by: str) -> HostedRun:
        """Claim a deployment, also a stopped one, and begin to run it here.

        Raises
        ------
        RunsElsewhereError
            When another worker has its lease.
        """
        with self._step:
            self._own(self.store.view())
            sent = clock()
            claimed = self.store.leases.claim(name, self.id, stopped=True)
            if claimed is None:
                raise self._not_free(name)
            lease = self._leases.add(name, claimed.token, self.store.leases.length, sent)
            try:
                self.store.deployments.set_desired(name, Desired.RUNNING, by=by)
                run = self._begin(name, lease)
            except PenstockError:
                self._give_back(name, Local(claimed.token, 0, 0), State.STOPPED.value)
                raise
            if run is None:
                raise NotFoundError(f"there is no deployment {name!r}")
            return run

    def _not_free(self, name: str) -> PenstockError:
        run = self.store.leases.get(name)
        if run is None or self.store.deployments.get(name) is None:
            return NotFoundError(f"there is no deployment {name!r}")
        return RunsElsewhereError(f"{name!r} runs in the worker {run.worker}")

    def finish(self, name: str, reason: Reason) -> bool:
        """Stop a run after its batch and give its lease back; return whether it was running here."""
        run = self.runs.get(name)
        if run is None:
            return False
        run.stop(reason)
        run.wait()
        with self._step:
            self._collect_ended()
            if reason is Reason.DELETED:
                self._reconcile()
                while removal := self._removals.get((name, run.lease.token)):
                    removal.is_over()
                    self._reconcile()
        return True

    def _unconfirmed(self, name: str, token: int) -> Lease:
        """Return a lease that the store has and this process does not: the reply to its claim was lost.

        It is held from the next renewal on.
        """
        length = self.store.leases.length
        return self._leases.add(name, token, length, clock() - length)

    def _begin(self, name: str, lease: Lease) -> HostedRun | None:
        row = self.store.deployments.get(name)
        if row is None:
            return None
        local = Local(lease.token, row.generation, row.round)

        def goes_elsewhere() -> bool:
            if self._has_others:
                run.stop(Reason.JAVA_DIED)
            return self._has_others

        def start() -> Runnable:
            return self._starting.start(row, lease, goes_elsewhere)

        with self._lock:
            run = HostedRun(lease, local, start, self._turns, self._woken.set)
            self._runs[name] = run
        log.info("run_begins", deployment=name, lease=lease.token, generation=row.generation)
        return run

    def _stop(self, name: str, reason: Reason | None) -> None:
        run = self.runs.get(name)
        if run is not None:
            run.stop(reason)

    def _restart(self, name: str, generation: int) -> None:
        run = self.runs.get(name)
        if run is None or run.is_asked_to_stop:
            return
        changed = run.local.generation != generation
        reason = RestartReason.CHANGED if changed else RestartReason.REQUESTED
        self._reporting.restarts.add(name, reason)
        run.stop(None)

    def _clean(self, name: str, token: int) -> None:
        row = self.store.deployments.get(name)
        if row is not None and not self._is_clean(row, token):
            return
        self._leases.remove(name)
        self.store.deployments.remove(name, self.id, token)
        self._reporting.forget(name)

    def _is_clean(self, row: DeploymentRow, token: int) -> bool:
        """Return whether the state has been removed; else a later step asks again.

        It may take minutes where an object store does not answer: other deployments do not wait for it.
        """
        key = row.name, token
        removal, within = self._removals.get(key), 0.0
        if removal is None:
            removal, within = Removal(partial(self._starting.clean, row), self._woken.set), _REMOVED
            self._removals[key] = removal
        if not removal.is_over(within):
            return False
        del self._removals[key]
        try:
            removal.result()
        except TransientError as error:  # where its state is; the next step tries again
            raise PenstockError(f"the state cannot be removed now: {error}") from error
        return True

    # -- ends

    def _collect_ended(self) -> None:
        """Give back the leases of runs that have ended."""
        for name, run in self.runs.items():
            if run.is_over:
                self._alone(name, "Settle", partial(self._end, name, run))

    def _end(self, name: str, run: HostedRun) -> None:
        self._reporting.restarts.observe(name, run)
        self._settle(name, run)
        with self._lock:
            self._runs.pop(name, None)

    def _settle(self, name: str, run: HostedRun) -> None:
        """Write down how a run ended, unless its lease is needed for what comes next."""
        if run.reason is Reason.LOST or self._leases.get(name) is not run.lease:
            self._leases.remove(name)
        elif not run.is_asked_to_stop:
            state = FAILED if run.error else State.STOPPED.value
            self._give_back(name, run.local, state, str(run.error) if run.error else None)
        elif run.reason in _AFTER:
            self._give_back(name, run.local, _AFTER[run.reason])
            if run.reason in _MOVES:
                self._reporting.restarts.add(name, _MOVES[run.reason])
        # Else it is started again, or its state is removed, under the same lease.

    def _give_back(self, name: str, local: Local, state: str, error: str | None = None) -> None:
        versions = {"generation": local.generation, "round": local.round}
        if self.store.leases.release(name, self.id, local.token, state, error, **versions):
            self._reporting.ended(name, state, error)
        self._leases.remove(name)

    def _replay(self, request: ReplayRow, repeated: bool) -> Replayed:
        return self._starting.replay(request, repeated)

    def _report(self) -> None:
        try:
            self._reporting.report(self.runs)
        finally:
            self.lines.write()
