"""Workers on machines with clocks of their own, and a database that comes and goes; time is simulated.

The store is real. A worker is what a worker process will be: it looks, acts, and renews, and any of these
may be interrupted for any time.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from penstock.control.actions import Action, Claim, Clean, Reason, Release, Restart, Start, Stop
from penstock.control.reconcile import Local, reconcile
from penstock.control.secrets.sealing import Sealer
from penstock.control.secrets.spec_secrets import SpecSecrets
from penstock.control.store import ControlStore, Database, View
from penstock.control.store.leases import Stalled
from penstock.control.store.rows import FAILED, Desired, Kind
from penstock.control.worker_lease import HeldLeases, LeaseWatch
from penstock.engine import State

LENGTH = 15.0


class FakeClock(Database):
    """An SQLite database whose clock is a number."""

    def __init__(self, place: Path) -> None:
        self.seconds = 1_800_000_000.0
        super().__init__(place, now=sa.func.fake_now(type_=sa.Double))
        sa.event.listen(self.engine, "connect", self._tune)

    def _tune(self, connection: sqlite3.Connection, _record: Any) -> None:
        connection.create_function("fake_now", 0, lambda: self.seconds)
        connection.execute("PRAGMA synchronous = OFF")


@dataclass
class Look:
    """What a worker has seen, and has not acted on yet."""

    view: View
    stalled: dict[str, Stalled]


class Worker:
    def __init__(self, world: World, id: str, offset: float, rate: float) -> None:
        self.world = world
        self.id = id
        self._offset, self._rate = offset, rate
        self.held = HeldLeases(self.clock)
        self.watch = LeaseWatch(LENGTH, self.clock)
        self.local: dict[str, Local] = {}
        self.look_taken: Look | None = None
        self.last_seen: dict[str, Stalled] = {}
        self.renewal: tuple[float, dict[str, int]] | None = None
        self.is_suspended = False

    def clock(self) -> float:
        return self._offset + self.world.time * self._rate

    @property
    def store(self) -> ControlStore:
        return self.world.store

    def send_renewal(self) -> None:
        sent = self.clock()
        self.renewal = (sent, self.store.leases.renew(self.id))

    def receive_renewal(self) -> None:
        if self.renewal is None:
            return
        (sent, tokens), self.renewal = self.renewal, None
        for lost in self.held.confirm(tokens, sent):
            self.local.pop(lost.deployment, None)

    def look(self) -> None:
        view = self.store.view()
        if self.id not in view.workers:
            self.store.workers.join(self.id, "host", 1)
        others = [run for run in view.runs.values() if run.worker != self.id]
        self.last_seen = self.watch.observe(others)
        self.look_taken = Look(view, self.last_seen)

    def watch_only(self, name: str) -> None:
        """Look at the lease of one deployment."""
        self.last_seen = self.watch.observe(self.store.leases.all([name]))

    def act(self, most: int = 10_000) -> None:
        """Act on what was seen, maybe long ago; at most this many actions, as before a kill."""
        if self.look_taken is None:
            return
        look, self.look_taken = self.look_taken, None
        for action in reconcile(look.view, self.id, self.local, look.stalled)[:most]:
            self._do(action, look)

    def claim_blindly(self, name: str) -> None:
        """Claim a deployment that this worker does not run, whoever has it."""
        if name not in self.local:
            self._claim(name, self.last_seen.get(name))

    def _do(self, action: Action, look: Look) -> None:
        if isinstance(action, Claim):
            self._claim(action.name, look.stalled.get(action.name))
        elif isinstance(action, Start):
            self._start_held(action)
        elif isinstance(action, Restart):
            self.local[action.name] = Local(action.token, action.generation, action.round)
        elif isinstance(action, (Stop, Release)):
            self._stop(action)
        elif isinstance(action, Clean):
            self.store.deployments.remove(action.name, self.id, action.token)

    def _claim(self, name: str, stalled: Stalled | None) -> None:
        sent = self.clock()
        claimed = self.store.leases.claim(name, self.id, stalled)
        if claimed is None:
            return
        self.world.claimed(name, claimed.token)
        if claimed.desired is Desired.DELETED:
            self.store.deployments.remove(name, self.id, claimed.token)
        else:
            local = Local(claimed.token, claimed.generation, claimed.round)
            self._start(name, local, LENGTH, sent)

    def _start_held(self, action: Start) -> None:
        """Start under a lease of the store; one whose claim was not answered counts when renewed."""
        lease = self.held.get(action.name)
        local = Local(action.token, action.generation, action.round)
        if lease is None:
            self._start(action.name, local, LENGTH, self.clock() - LENGTH)
        elif lease.token == action.token and lease.is_held():
            self.local[action.name] = local

    def _start(self, name: str, local: Local, length: float, sent: float) -> None:
        self.held.add(name, local.token, length, sent)
        self.local[name] = local

    def _stop(self, action: Stop | Release) -> None:
        self.local.pop(action.name, None)
        self.held.remove(action.name)
        if action.reason is not Reason.LOST:
            self.store.leases.release(action.name, self.id, action.token, State.STOPPED.value)

    def write(self, name: str) -> None:
        """Write a batch, if this worker believes that it may."""
        lease = self.held.get(name)
        if name in self.local and lease and lease.is_held():
            self.world.written(name, lease.token)

    def fail(self, name: str) -> None:
        own = self.local.pop(name, None)
        if own:
            self.held.remove(name)
            self.store.leases.release(name, self.id, own.token, FAILED, "it failed")


@dataclass
class World:
    """Everything: `time` is the true one, `store.database.seconds` that of the database."""

    store: ControlStore
    time: float = 0.0
    workers: list[Worker] = field(default_factory=list)
    tokens: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    writes: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    refused: int = 0
    started: int = 0

    @classmethod
    def open(cls, place: Path) -> World:
        secrets = SpecSecrets(Sealer([bytes(32)]))
        return cls(ControlStore(FakeClock(place), secrets, LENGTH))

    @property
    def database(self) -> FakeClock:
        assert isinstance(self.store.database, FakeClock)
        return self.store.database

    def add_worker(self, offset: float, rate: float = 1.0) -> Worker:
        self.started += 1
        worker = Worker(self, f"w{self.started}", offset, rate)
        self.store.workers.join(worker.id, "host", 1)
        self.workers.append(worker)
        return worker

    def pass_time(self, seconds: float) -> None:
        self.time += seconds
        self.database.seconds += seconds

    def deploy(self, name: str, version: int = 0) -> None:
        self.store.deployments.put(name, Kind.PIPELINE, f"version {version}", by="ann")

    def claimed(self, name: str, token: int) -> None:
        """Note a claim; its token was never used before."""
        assert token > max(self.tokens[name], default=0)
        self.tokens[name].append(token)

    def written(self, name: str, token: int) -> None:
        """Note a write, as a sink does that refuses epochs before the newest."""
        if token < max(self.writes[name], default=0):
            self.refused += 1
        else:
            self.writes[name].append(token)

    def believers(self, name: str) -> list[int]:
        """Return the tokens of all workers that believe that they may write."""
        leases = [worker.held.get(name) for worker in self.workers if name in worker.local]
        return [lease.token for lease in leases if lease and lease.is_held()]

    def settle(self, rounds: int = 120) -> None:
        """Let time pass, with all workers that are left working as they should."""
        for _ in range(rounds):
            self.pass_time(2.0)
            for worker in self.workers:
                if not worker.is_suspended:
                    worker.receive_renewal()
                    worker.send_renewal()
                    worker.receive_renewal()
                    worker.look()
                    worker.act()
            if self.is_settled():
                return

    def is_settled(self) -> bool:
        return not self.unsettled()

    def unsettled(self) -> dict[str, Any]:
        """Return the deployments that are not as they are wanted, with who runs them."""
        view = self.store.view()
        running: dict[str, list[Local]] = defaultdict(list)
        for worker in self.workers:
            if not worker.is_suspended:
                for name, own in worker.local.items():
                    running[name].append(own)
        wrong: dict[str, Any] = {name: "gone" for name in running if name not in view.wanted}
        for name, wanted in view.wanted.items():
            run = view.runs[name]
            failed = run.state == FAILED and (run.generation, run.round) == (
                wanted.generation, wanted.round,
            )  # fmt: skip
            expected = (
                [Local(run.token, wanted.generation, wanted.round)]
                if wanted.desired is Desired.RUNNING and not failed
                else []
            )
            if running[name] != expected or wanted.desired is Desired.DELETED:
                wrong[name] = (wanted, run, running[name])
        return wrong
