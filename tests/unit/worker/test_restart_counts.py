"""What a worker counts of the restarts of its runs reaches the store once."""

from __future__ import annotations

import pytest

from penstock.control.reconcile import Local
from penstock.control.store import ControlStore
from penstock.control.store.rows import Kind
from penstock.control.worker_lease import Lease
from penstock.engine import Progress
from penstock.engine.restart_reason import RestartReason
from penstock.errors import TransientError
from penstock.testing import eventually
from penstock.worker.hosted_run import HostedRun
from penstock.worker.restart_counts import RestartCounts
from penstock.worker.start_turns import StartTurns

JAVA, FAILED = RestartReason.JAVA_DIED, RestartReason.FAILED


class Runs:
    """A runnable whose restarts are set by the test."""

    def __init__(self) -> None:
        self.reasons: dict[str, int] = {}

    def progress(self) -> Progress:
        return Progress("orders", restart_reasons=dict(self.reasons))

    def wait(self, timeout: float | None = None) -> bool:
        return True

    def stop(self, grace: float = 0.0) -> None: ...


def hosted(runnable: Runs) -> HostedRun:
    lease = Lease("orders", 1, 10.0, 0.0)
    run = HostedRun(lease, Local(1, 1, 0), lambda: runnable, StartTurns(1))
    eventually(lambda: run.is_over)
    return run


@pytest.fixture
def store(control_store: ControlStore) -> ControlStore:
    control_store.deployments.put("orders", Kind.PIPELINE, "name: orders", by="ann")
    return control_store


def test_differences_of_each_run_are_added(store: ControlStore) -> None:
    counts, first, second = RestartCounts(), Runs(), Runs()
    run, next_run = hosted(first), hosted(second)
    first.reasons = {JAVA.value: 2}
    for _ in range(3):
        counts.observe("orders", run)
        counts.write(store.restarts)
    first.reasons = {JAVA.value: 3, FAILED.value: 1}
    second.reasons = {JAVA.value: 1}
    counts.observe("orders", run)
    counts.observe("orders", next_run)
    counts.observe("orders", run)
    counts.add("orders", RestartReason.CHANGED)
    counts.write(store.restarts)

    assert store.restarts.all() == {
        ("orders", JAVA): 4,
        ("orders", FAILED): 1,
        ("orders", RestartReason.CHANGED): 1,
    }


def test_what_the_store_did_not_take_is_written_later(
    store: ControlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = RestartCounts()
    counts.add("orders", FAILED)

    def away(_: object) -> None:
        raise TransientError("the store is away")

    with monkeypatch.context() as patch:
        patch.setattr(store.restarts, "add", away)
        with pytest.raises(TransientError):
            counts.write(store.restarts)
    counts.add("orders", FAILED)
    counts.write(store.restarts)
    counts.write(store.restarts)

    assert store.restarts.all() == {("orders", FAILED): 2}
