"""Heartbeats of jobs come on time, whatever the jobs themselves wait for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from penstock.engine import Progress
from penstock.jobs import Job, Store
from penstock.jobs import supervisor as supervisors
from penstock.jobs.job_row import JobRow
from penstock.testing import eventually

OPTIONS = {"as_table": False, "batch_size": 0, "throttle": 1.0, "auto_commit": True}


class SlowToStop:
    """A running pipeline whose batch does not end."""

    def __init__(self) -> None:
        self.asked, self.may_end = Event(), Event()
        self.is_active = True

    def progress(self) -> Progress:
        return Progress("p")

    def stop(self, _grace: float = 300.0) -> None:
        self.asked.set()
        self.may_end.wait()


@pytest.fixture
def supervisor(monkeypatch: pytest.MonkeyPatch) -> Iterator[supervisors.Supervisor]:
    monkeypatch.setattr(supervisors, "_EVERY", 0.02)
    made = supervisors.Supervisor()
    monkeypatch.setattr("penstock.jobs.job.supervisor", made)
    yield made
    for job in made.all():
        made.forget(job.name)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    held = Store(tmp_path / "jobs.sqlite")
    for name in ("slow", "other"):
        held.add(JobRow(name, name, "me", 1.0, {"name": name}, OPTIONS))
        held.take(name)
    yield held
    held.close()


def running(store: Store, name: str, supervisor: supervisors.Supervisor) -> tuple[Job, Any]:
    job = Job(store, name)
    found: Any = SlowToStop()
    job._running = found
    supervisor.watch(job)
    return job, found


def seen(store: Store, name: str) -> float:
    found = store.get(name)
    return found.seen if found else 0.0


def beats_on(store: Store, name: str) -> bool:
    before = seen(store, name)
    return bool(eventually(lambda: seen(store, name) > before, 30))


def test_the_others_are_heard_of_while_a_cancelled_job_finishes_its_batch(
    store: Store, supervisor: supervisors.Supervisor
) -> None:
    _, slow = running(store, "slow", supervisor)
    running(store, "other", supervisor)
    store.cancel("slow")
    assert slow.asked.wait(30)
    assert beats_on(store, "other")
    assert beats_on(store, "other")
    slow.may_end.set()
    eventually(lambda: store.get("slow") is None, 30)


def test_a_job_that_another_process_took_over_ends_here_and_stays_there(
    store: Store, supervisor: supervisors.Supervisor
) -> None:
    _, slow = running(store, "slow", supervisor)
    slow.may_end.set()
    store._update("slow", owner="another-machine/1/2/x")
    assert slow.asked.wait(30)
    eventually(lambda: supervisor.find("slow") is None, 30)
    eventually(lambda: any("another process" in e.text for e in store.events("slow")), 30)
    found = store.get("slow")
    assert found is not None
    assert found.owner == "another-machine/1/2/x"


def test_a_job_is_heard_of_while_it_starts(
    store: Store, supervisor: supervisors.Supervisor
) -> None:
    job = Job(store, "other")
    job._starts = True
    supervisor.watch(job)
    assert beats_on(store, "other")
    assert store.all()[1].state == "STARTING"
