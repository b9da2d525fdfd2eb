"""What a worker reports of its runs becomes the numbers of the store."""

from __future__ import annotations

from threading import Event

import pytest

from penstock.control.liveness import clock
from penstock.control.reconcile import Local
from penstock.control.store import ControlStore
from penstock.control.store.rows import Kind
from penstock.control.store.tables import WORKERS
from penstock.control.worker_lease import Lease
from penstock.engine import Progress, State
from penstock.engine.restart_reason import RestartReason
from penstock.testing import eventually
from penstock.worker.hosted_run import HostedRun
from penstock.worker.reporting import Reporting
from penstock.worker.start_turns import StartTurns


class Runs:
    """A runnable that runs until it is stopped."""

    def __init__(self) -> None:
        self.ended = Event()
        self.seen = Progress(
            "orders",
            State.RUNNING,
            lag={"orders-0": 3, "orders-1": 4},
            restarts=1,
            restart_reasons={"java_died": 1},
        )

    def progress(self) -> Progress:
        return self.seen

    def wait(self, timeout: float | None = None) -> bool:
        return self.ended.wait(timeout)

    def stop(self, grace: float = 0.0) -> None:
        self.ended.set()


def test_lag_restarts_and_usage_are_reported(control_store: ControlStore) -> None:
    store = control_store
    store.deployments.put("orders", Kind.PIPELINE, "name: orders", by="ann")
    store.workers.join("w", "host", 1)
    claimed = store.leases.claim("orders", "w")
    assert claimed
    runnable = Runs()
    lease = Lease("orders", claimed.token, 15.0, clock())
    run = HostedRun(lease, Local(claimed.token, 1, 0), lambda: runnable, StartTurns(1))
    eventually(lambda: run.progress() is not None)
    reporting = Reporting(store, "w")
    for _ in range(3):
        reporting.report({"orders": run})

    assert store.partition_lag.all() == {"orders": {("orders", "0"): 3, ("orders", "1"): 4}}
    assert store.samples.latest()["orders"].sample.lag == 7
    assert store.restarts.all() == {("orders", RestartReason.JAVA_DIED): 1}
    (worker,) = store.workers.all()
    assert (worker.queries, worker.memory > 0, worker.heap_max) == (1, True, None)
    run.stop(None)
    eventually(lambda: run.is_over)


def test_workers_that_are_gone_are_forgotten_after_a_minute_without_interruption(
    control_store: ControlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, now = control_store, 1000.0
    monkeypatch.setattr("penstock.worker.reporting.clock", lambda: now)
    store.deployments.put("orders", Kind.PIPELINE, "name: orders", by="ann")
    for name in ("gone", "holds", "w"):
        store.workers.join(name, "host", 1)
    store.leases.claim("orders", "holds")
    with store.database.write() as session:
        old = WORKERS.update().where(WORKERS.c.id != "w")
        session.execute(old.values(seen=store.database.now - 1000))
    reporting = Reporting(store, "w")

    def known(time: float) -> list[str]:
        nonlocal now
        now = time
        reporting.report({})
        return sorted(row.id for row in store.workers.all())

    everyone = ["gone", "holds", "w"]
    for time in (1000.0, 1020.0, 1040.0, 1090.0, 1110.0, 1130.0):  # 50 s are an interruption
        assert known(time) == everyone
    assert known(1151.0) == ["holds", "w"]
