"""A run that waits for its turn to start."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event
from typing import Any

from penstock.control.actions import Reason
from penstock.control.reconcile import Local
from penstock.control.worker_lease import Lease
from penstock.errors import TransientError
from penstock.worker.hosted_run import HostedRun
from penstock.worker.start_turns import StartTurns


def run_of(name: str, start: Callable[[], Any], turns: StartTurns, ended: Event) -> HostedRun:
    return HostedRun(Lease(name, 1, 10.0, 0.0), Local(1, 1, 0), start, turns, ended.set)


def never() -> object:
    raise AssertionError("it was started")


def test_a_run_that_waits_for_its_turn_ends_when_it_is_asked_to() -> None:
    ended = Event()
    run = run_of("orders", never, StartTurns(0), ended)
    assert run.begun is None
    run.stop(Reason.BALANCE)
    assert run.wait(60)
    assert ended.wait(60)
    assert (run.error, run.begun) == (None, None)


class Idle:
    """A runnable that runs until it is stopped."""

    def wait(self, timeout: float | None = None) -> bool:
        return False

    def stop(self, grace: float = 0.0) -> None:
        return


def test_a_start_that_waits_for_its_system_gives_its_turn_up() -> None:
    blocked, ended, turns = Event(), Event(), StartTurns(1, longest=0.01)
    slow = run_of("slow", lambda: blocked.wait(60) and Idle(), turns, ended)
    healthy = run_of("healthy", Idle, turns, ended)
    healthy.wait_for_start()
    assert slow.progress() is None  # it starts still
    blocked.set()
    for run in (slow, healthy):
        run.wait_for_start()
        run.stop(Reason.STOPPED)
        assert run.wait(60)


def test_runs_that_start_again_for_want_of_a_system_take_no_turn_of_those_that_start_first() -> (
    None
):
    tried, blocked, ended, turns = Event(), Event(), Event(), StartTurns(1, longest=3600)
    attempts = 0

    def unavailable() -> Idle:
        nonlocal attempts
        attempts += 1
        if attempts == 1:
            raise TransientError("the broker is away")
        tried.set()
        blocked.wait(60)
        return Idle()

    waiting = run_of("waiting", unavailable, turns, ended)
    assert tried.wait(60)
    healthy = run_of("healthy", Idle, turns, ended)
    healthy.wait_for_start()
    blocked.set()
    for run in (waiting, healthy):
        run.stop(Reason.STOPPED)
        assert run.wait(60)
