"""A run that waits for its turn to start."""

from __future__ import annotations

from threading import Event, Semaphore

from penstock.control.actions import Reason
from penstock.control.reconcile import Local
from penstock.control.worker_lease import Lease
from penstock.worker.hosted_run import HostedRun


def never() -> object:
    raise AssertionError("it was started")


def test_a_run_that_waits_for_its_turn_ends_when_it_is_asked_to() -> None:
    ended = Event()
    lease, local = Lease("orders", 1, 10.0, 0.0), Local(1, 1, 0)
    run = HostedRun(lease, local, never, Semaphore(0), ended.set)  # type: ignore[arg-type]
    assert run.begun is None
    run.stop(Reason.BALANCE)
    assert run.wait(60)
    assert ended.wait(60)
    assert (run.error, run.begun) == (None, None)
