"""What a worker has to do so that what runs is what is wanted: a function without effects."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from penstock.control.actions import Action, Claim, Clean, Reason, Release, Restart, Start, Stop
from penstock.control.placement import Rules, is_alive, shares, to_claim, to_move
from penstock.control.store import View, Wanted
from penstock.control.store.rows import FAILED, FREE, Desired, RunRow, WorkerRow
from penstock.engine import State

_REASONS = {
    Desired.PAUSED: Reason.PAUSED,
    Desired.STOPPED: Reason.STOPPED,
    Desired.DELETED: Reason.DELETED,
}
_LONGEST_DELAY = 60.0


@dataclass(frozen=True)
class Local:
    """What runs in this worker: under which token, and which version of the deployment."""

    token: int
    generation: int
    round: int


def reconcile(
    view: View,
    me: str,
    local: Mapping[str, Local],
    stalled: Collection[str] = (),
    rules: Rules | None = None,
    *,
    begun: Mapping[str, float] | None = None,
) -> list[Action]:
    """Return the actions of one worker.

    Parameters
    ----------
    local
        The runs of this worker. One that ended by itself is not in it.
    stalled
        Deployments whose leases no one renews (`LeaseWatch`): they are free, whatever the clock says.
    begun
        How many seconds ago the start of each run of this worker began. The others wait for it: to move
        them interrupts nothing. None: all began long ago.
    """
    worker = _Reconciler(view, me, local, stalled, rules or Rules(), begun=begun)
    return [*worker.for_local(), *worker.for_held(), *worker.for_free(), *worker.for_balance()]


def has_others(view: View, me: str) -> bool:
    """Return whether other workers can run what this one gives up."""
    return any(
        worker.id != me
        and worker.capacity > 0
        and is_alive(worker, view.now)
        and not worker.draining
        for worker in view.workers.values()
    )


def delay_after(lapses: int) -> float:
    """Return how long a deployment waits after this many workers in a row died with it.

    >>> [delay_after(lapses) for lapses in (0, 1, 2, 3, 4, 9)]
    [0.0, 0.0, 5.0, 10.0, 20.0, 60.0]
    """
    return 0.0 if lapses < 2 else min(_LONGEST_DELAY, 5.0 * 2.0 ** (lapses - 2))


class _Reconciler:
    def __init__(
        self,
        view: View,
        me: str,
        local: Mapping[str, Local],
        stalled: Collection[str],
        rules: Rules,
        *,
        begun: Mapping[str, float] | None,
    ) -> None:
        self._view = view
        self._me = me
        self._local = local
        self._stalled = stalled
        self._rules = rules
        self._begun = dict.fromkeys(local, math.inf) if begun is None else begun
        known = view.workers.get(me)
        # One that is not in the table any more was removed by an operator: it claims nothing.
        self._draining = known is None or known.draining

    def for_local(self) -> Iterator[Action]:
        """Yield what changes for the runs of this worker."""
        for name, own in self._local.items():
            wanted, run = self._view.wanted.get(name), self._view.runs.get(name)
            if wanted is None or run is None or (run.worker, run.token) != (self._me, own.token):
                yield Stop(name, own.token, Reason.LOST)
            elif wanted.desired is not Desired.RUNNING:
                yield Stop(name, own.token, _REASONS[wanted.desired])
            elif self._draining:
                yield Stop(name, own.token, Reason.DRAINING)
            elif (wanted.generation, wanted.round) != (own.generation, own.round):
                yield Restart(name, own.token, wanted.generation, wanted.round)

    def for_held(self) -> Iterator[Action]:
        """Yield what to do under leases with which nothing runs, as after a lost reply."""
        for name, run in self._view.runs.items():
            if name in self._local or run.worker != self._me or not run.is_held(self._view.now):
                continue
            wanted = self._view.wanted[name]
            if wanted.desired is Desired.DELETED:
                yield Clean(name, run.token)
            elif wanted.desired is not Desired.RUNNING:
                yield Release(name, run.token, _REASONS[wanted.desired])
            elif self._draining:
                yield Release(name, run.token, Reason.DRAINING)
            else:
                yield Start(name, run.token, wanted.generation, wanted.round)

    def for_free(self) -> Iterator[Action]:
        """Yield the claims of deployments that no worker holds."""
        if self._draining:
            return
        free = self._free()
        known = shares(self._total(), self._view.runs.values(), self._workers(), self._view.now)
        for name in to_claim(self._me, free, known, self._view.now, self._rules):
            yield Claim(name)

    def for_balance(self) -> Iterator[Action]:
        """Yield the runs that this worker gives up; none while others wait to be claimed."""
        workers = self._workers()
        if self._draining or len(workers) < 2 or self._free():
            return
        mine = [self._view.runs[name] for name in self._local if self._may_move(name)]
        known = shares(self._total(), self._view.runs.values(), workers, self._view.now)
        for name in to_move(self._me, mine, known, self._rules):
            yield Stop(name, self._local[name].token, Reason.BALANCE)

    def _may_move(self, name: str) -> bool:
        """Return whether moving a run costs little: it waits for its start, or none starts now."""
        return self._is_settled(name) and (name not in self._begun or not self._starting())

    def _starting(self) -> bool:
        """Return whether a run began to start recently: the machines have enough to do.

        One that is restarted under its lease, as after a change, was claimed long ago.
        """
        now = self._view.now
        return any(
            run.state == State.STARTING.value
            and run.is_held(now)
            and min(abs(now - run.claimed), self._begun.get(name, math.inf)) < self._rules.starting
            for name, run in self._view.runs.items()
        )

    def _is_settled(self, name: str) -> bool:
        wanted, run = self._view.wanted.get(name), self._view.runs.get(name)
        own = self._local[name]
        return (
            wanted is not None
            and run is not None
            and (run.worker, run.token) == (self._me, own.token)
            and wanted.desired is Desired.RUNNING
            and (wanted.generation, wanted.round) == (own.generation, own.round)
        )

    def _workers(self) -> list[WorkerRow]:
        """Return the workers that can take something: this one, and those that are heard of."""
        now = self._view.now
        return [
            worker
            for worker in self._view.workers.values()
            if worker.id == self._me or (is_alive(worker, now) and not worker.draining)
        ]

    def _total(self) -> int:
        return sum(self._is_wanted(wanted) for wanted in self._view.wanted.values())

    def _free(self) -> list[RunRow]:
        return [self._view.runs[name] for name in self._view.wanted if self._is_free(name)]

    def _is_wanted(self, wanted: Wanted) -> bool:
        """Return whether a worker should hold the deployment: to run it, or to remove its state."""
        if wanted.desired is Desired.DELETED:
            return True
        run = self._view.runs[wanted.name]
        tried = (run.generation, run.round) == (wanted.generation, wanted.round)
        return wanted.desired is Desired.RUNNING and not (run.state == FAILED and tried)

    def _is_free(self, name: str) -> bool:
        run = self._view.runs[name]
        if name in self._local or not self._is_wanted(self._view.wanted[name]):
            return False
        if run.worker == FREE:
            return True
        if name in self._stalled:
            return run.worker != self._me
        lapsed = self._view.now - run.lease_until
        return lapsed >= 0 and lapsed >= delay_after(run.lapses + 1)
