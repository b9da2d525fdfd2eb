"""One deployment with which nothing is possible does not keep a worker from the others."""

from __future__ import annotations

import logging
from threading import Event
from typing import Any

import pytest
from tests.unit.jobs.conftest import Idle

from penstock.control.actions import Reason
from penstock.control.store import ControlStore
from penstock.control.store.rows import Desired, Kind
from penstock.control.store.tables import RUNS
from penstock.control.worker_lease import LeaseWatch
from penstock.errors import ConfigError, TransientError
from penstock.testing import eventually
from penstock.worker import worker as worker_module
from penstock.worker.worker import Worker


class CannotClean:
    """Starts runs that do nothing, and cannot remove what they leave."""

    error: Exception | None = ValueError("the state is broken")
    start_error: BaseException | None = None
    # Where the state is that does not answer, until this is set.
    answers: Event | None = None
    cleaned = 0

    def start(self, *_: Any) -> Idle:
        if self.start_error:
            raise self.start_error
        return Idle()

    def clean(self, _row: Any) -> None:
        if self.error:
            raise self.error
        if self.answers:
            self.answers.wait(60)
        self.cleaned += 1


@pytest.fixture
def starting() -> CannotClean:
    return CannotClean()


@pytest.fixture
def worker(control_store: ControlStore, starting: Any) -> Worker:
    """A worker that does one step at a time, when a test asks for it."""
    made = Worker(control_store, starting, chosen=lambda _: True)
    control_store.workers.join(made.id, "host", 1)
    for name in ("a", "b"):
        control_store.deployments.put(name, Kind.PIPELINE, f"name: {name}", by="a test")
    control_store.deployments.set_desired("a", Desired.DELETED, by="a test")
    return made


def test_a_deletion_that_is_not_possible_does_not_stop_the_others(
    worker: Worker, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR):
        for _ in range(4):
            worker.reconcile()

    assert list(worker.runs) == ["b"]
    assert caplog.text.count("action_failed") == 1
    worker.store.deployments.restart("b", by="a test")
    first = worker.runs["b"]
    worker.reconcile()
    eventually(lambda: first.is_over)
    worker.reconcile()
    assert worker.runs["b"] is not first
    worker.finish("b", Reason.STOPPED)


def test_a_state_whose_place_is_away_is_removed_later(
    worker: Worker, starting: CannotClean
) -> None:
    starting.error = TransientError("the bucket is away")
    worker.reconcile()
    assert worker.store.deployments.get("a")

    starting.error = None
    worker.reconcile()

    assert worker.store.deployments.get("a") is None
    assert list(worker.runs) == ["b"]
    worker.finish("b", Reason.STOPPED)


def test_a_state_that_is_removed_slowly_does_not_stop_the_others(
    worker: Worker, starting: CannotClean, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_module, "_REMOVED", 0.0)
    starting.error, starting.answers = None, Event()
    for _ in range(3):
        worker.reconcile()
    assert list(worker.runs) == ["b"]
    assert worker.store.deployments.get("a")

    starting.answers.set()
    eventually(lambda: worker.reconcile() or worker.store.deployments.get("a") is None)
    assert starting.cleaned == 1
    worker.finish("b", Reason.STOPPED)


def test_who_deletes_what_runs_here_waits_for_the_removal_of_its_state(
    worker: Worker, starting: CannotClean, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_module, "_REMOVED", 0.0)
    starting.error = None
    worker.reconcile()
    worker.store.deployments.set_desired("b", Desired.DELETED, by="a test")

    assert worker.finish("b", Reason.DELETED)

    assert worker.store.deployments.get("b") is None


def test_a_store_that_is_away_ends_the_step(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise TransientError("the store is away")

    monkeypatch.setattr(worker.store.leases, "claim", refuse)
    with pytest.raises(TransientError):
        worker.reconcile()


def test_an_error_with_a_name_that_is_not_unicode_is_stored(
    worker: Worker, starting: CannotClean
) -> None:
    """Python has names of files with other bytes as lone surrogates, which no database takes."""
    starting.start_error = ConfigError("there is no file caf\udce9")
    worker.reconcile()
    eventually(lambda: worker.runs["b"].is_over)
    worker.reconcile()

    run = worker.store.leases.get("b")
    assert run is not None
    assert (run.state, run.error) == ("FAILED", "there is no file caf\\udce9")
    assert worker.runs == {}
    texts = [event.text for event in worker.store.events.after(deployment="b")]
    assert any("there is no file caf\\udce9" in text for text in texts)


def test_an_end_that_cannot_be_written_down_does_not_stop_the_others(
    worker: Worker, starting: CannotClean, monkeypatch: pytest.MonkeyPatch
) -> None:
    starting.start_error = ConfigError("b cannot start")
    release = worker.store.leases.release
    refused = ValueError("a mistake of ours")

    def refuse(name: str, *given: Any, **more: Any) -> bool:
        if name == "b":
            raise refused
        return release(name, *given, **more)

    monkeypatch.setattr(worker.store.leases, "release", refuse)
    worker.reconcile()
    eventually(lambda: worker.runs["b"].is_over)
    starting.start_error = None
    worker.store.deployments.put("c", Kind.PIPELINE, "name: c", by="a test")

    worker.reconcile()
    assert sorted(worker.runs) == ["b", "c"]

    monkeypatch.undo()
    worker.reconcile()
    assert sorted(worker.runs) == ["c"]
    run = worker.store.leases.get("b")
    assert run is not None
    assert run.error == "b cannot start"
    worker.finish("c", Reason.STOPPED)


def test_after_an_outage_of_the_store_no_lease_is_claimed_that_its_holder_may_renew(
    control_store: ControlStore, starting: Any
) -> None:
    now = [1000.0]
    worker = Worker(control_store, starting)
    worker._watch = LeaseWatch(control_store.leases.length, lambda: now[0])
    for id in (worker.id, "other"):
        control_store.workers.join(id, "host", 1)
    control_store.deployments.put("a", Kind.PIPELINE, "name: a", by="a test")
    claimed = control_store.leases.claim("a", "other")
    assert claimed
    worker.reconcile()

    now[0] += 60  # the store was away for all of them
    worker._watch.store_away()
    with control_store.database.write() as session:
        session.execute(RUNS.update().values(lease_until=control_store.database.now - 45))
    worker.reconcile()
    assert control_store.leases.renew("other") == {"a": claimed.token}

    with control_store.database.write() as session:
        session.execute(RUNS.update().values(lease_until=control_store.database.now - 45))
    worker.reconcile()
    assert list(worker.runs) == []
    now[0] += 8
    worker.reconcile()
    assert list(worker.runs) == ["a"]
    worker.finish("a", Reason.STOPPED)


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt("from a module")], ids=repr)
def test_code_of_a_definition_that_ends_its_process_fails_its_deployment_alone(
    worker: Worker, starting: CannotClean, error: BaseException
) -> None:
    starting.start_error = error
    worker.reconcile()
    eventually(lambda: worker.runs["b"].is_over)
    worker.reconcile()

    run = worker.store.leases.get("b")
    assert run is not None
    assert (run.state, run.error) == ("FAILED", f"unexpected {type(error).__name__}: {error}")
    worker.reconcile()
    assert worker.runs == {}  # it is not claimed again and again


def test_a_lease_whose_claim_was_not_answered_replaces_an_older_one(worker: Worker) -> None:
    """The older one lapsed while the store was away, and was never confirmed as lost."""
    leases = worker.store.leases
    worker._leases.add("b", 1, leases.length, sent=0.0)
    claimed = leases.claim("b", worker.id)
    assert claimed

    worker.reconcile()
    assert worker.runs["b"].lease.token == claimed.token
    assert not worker.runs["b"].lease.is_held()
    worker.renew()
    assert worker.runs["b"].lease.is_held()
    worker.finish("b", Reason.STOPPED)


def test_leases_are_renewed_while_all_connections_of_the_runs_are_in_use(worker: Worker) -> None:
    """As with many runs that count their batches, and a store that answers slowly."""
    worker.reconcile()
    run = worker.store.leases.get("b")
    assert run is not None
    held = [worker.store.database.engine.connect() for _ in range(15)]

    worker.renew()

    for each in held:
        each.close()
    renewed = worker.store.leases.get("b")
    assert renewed is not None
    assert renewed.renewals == run.renewals + 1
    worker.finish("b", Reason.STOPPED)
