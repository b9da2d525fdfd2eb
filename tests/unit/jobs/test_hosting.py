"""One process runs a job; one that has ended is replaced at once, one that may live is waited for."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from threading import Thread
from typing import Any

import pytest
from tests.unit.jobs.conftest import Idle, put

from penstock.cli import main
from penstock.control.liveness import lives, this_process
from penstock.control.store.rows import Desired
from penstock.errors import ConfigError, TransientError
from penstock.jobs import Job, Store
from penstock.jobs.job_functions import cancel, resume_jobs
from penstock.jobs.job_store import JobRunsElsewhereError
from penstock.testing import eventually

OTHER = "another-boot-1/77/5000/abc"


def held_by(store: Store, process: str) -> None:
    """Let a process have the job, that wrote its last heartbeat just now."""
    store.want("trades", Desired.RUNNING)
    store.control.workers.join("other", "host", 77, 1.0, process)
    assert store.control.leases.claim("trades", "other") is not None


def ended_process() -> str:
    machine, _, started, _ = this_process().split("/")
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    return f"{machine}/{ended.pid}/{started}/x"


@pytest.mark.usefixtures("idle")
def test_a_job_that_runs_elsewhere_is_not_taken(store: Store, elsewhere: Store) -> None:
    put(store)
    Job(elsewhere, "trades").start()
    with pytest.raises(JobRunsElsewhereError, match="the job 'trades' runs in the worker"):
        Job(store, "trades").start()
    assert resume_jobs(store) == []


@pytest.mark.usefixtures("idle")
def test_two_processes_that_start_at_once_do_not_both_get_the_job(
    store: Store, elsewhere: Store
) -> None:
    put(store)
    for _ in range(5):
        outcomes: list[Any] = []

        def take(one: Store, outcomes: list[Any] = outcomes) -> None:
            try:
                outcomes.append(Job(one, "trades").start())
            except JobRunsElsewhereError as error:
                outcomes.append(type(error))

        both = [Thread(target=take, args=(one,)) for one in (store, elsewhere)]
        for thread in both:
            thread.start()
        for thread in both:
            thread.join()
        assert outcomes.count(JobRunsElsewhereError) == 1
        for job in outcomes:
            if isinstance(job, Job):
                job.stop()


@pytest.mark.usefixtures("idle")
def test_a_job_whose_process_has_ended_is_taken_at_once(store: Store) -> None:
    put(store)
    held_by(store, ended_process())
    assert store.find("trades").shown_state == "STOPPED"
    job = Job(store, "trades").start()
    assert job.runs_here
    assert store.find("trades").is_alive


def test_a_job_whose_process_has_ended_is_cancelled_at_once(store: Store) -> None:
    put(store)
    held_by(store, ended_process())
    cancel("trades", store)
    assert store.get("trades") is None
    assert store.control.workers.all() == []
    put(store)  # the name is free


@pytest.mark.parametrize(
    ("process", "said"),
    [
        (ended_process, "trades is cancelled"),
        (this_process, "trades is to be cancelled; the process that runs it ends it"),
    ],
)
def test_the_command_says_whether_the_job_is_cancelled(
    store: Store,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    process: Callable[[], str],
    said: str,
) -> None:
    put(store)
    held_by(store, process())
    monkeypatch.setattr(Store, "default", lambda: store)
    with pytest.raises(SystemExit) as end:
        main(["jobs", "cancel", "trades", "--yes"])
    assert not end.value.code
    assert said in capsys.readouterr().err.splitlines()


@pytest.mark.usefixtures("idle")
@pytest.mark.parametrize("process", [this_process(), OTHER, ""], ids=["here", "elsewhere", "old"])
def test_a_job_whose_process_may_live_is_not_taken(store: Store, process: str) -> None:
    put(store)
    held_by(store, process)
    assert store.find("trades").is_alive
    with pytest.raises(JobRunsElsewhereError):
        Job(store, "trades").start()


def test_a_process_of_this_machine_is_known_by_itself_and_not_by_a_clock() -> None:
    me = this_process()
    machine, pid, _, _ = me.split("/")
    assert lives(me, seen=1.0)
    assert lives(me, seen=time.time() + 1e6)
    assert not lives(ended_process(), seen=time.time())
    # Another process has the number now.
    assert not lives(f"{machine}/{pid}/1/x", seen=time.time())
    assert lives(OTHER, seen=time.time())
    assert not lives(OTHER, seen=time.time() - 60)


def test_a_stopped_job_is_free_at_once_and_is_not_started_by_others(
    idle: Any, store: Store, elsewhere: Store
) -> None:
    put(store)
    job = Job(elsewhere, "trades").start()
    job.stop()
    assert idle.runs["trades"].asked.is_set()
    found = store.find("trades")
    assert (found.desired, found.shown_state, found.is_alive) == (
        Desired.STOPPED, "STOPPED", False,
    )  # fmt: skip
    idle.runs.clear()
    (again,) = resume_jobs(store)
    assert again.runs_here
    assert store.find("trades").desired is Desired.RUNNING


def test_a_job_that_another_process_cancels_ends_where_it_runs(
    idle: Any, store: Store, elsewhere: Store
) -> None:
    put(store)
    slow = idle.runs["trades"] = Idle()
    slow.may_end.clear()
    Job(elsewhere, "trades").start()
    cancel("trades", store)
    assert slow.asked.wait(30)
    assert store.get("trades") is not None  # its batch is not done
    slow.may_end.set()
    eventually(lambda: store.get("trades") is None, 30)
    with pytest.raises(ConfigError, match="there is no job 'trades'"):
        cancel("trades", store)


def test_a_job_that_cannot_start_raises_and_stays_stopped(idle: Any, store: Store) -> None:
    put(store)
    for error in (ConfigError("no such topic"), TransientError("no broker answers")):
        idle.error = error
        with pytest.raises(type(error), match=str(error)):
            Job(store, "trades").start()
        found = store.find("trades")
        assert (found.desired, found.is_alive) == (Desired.STOPPED, False)
    idle.error = None
    assert Job(store, "trades").start().runs_here


def test_a_job_that_fails_later_raises_its_error_in_wait(idle: Any, store: Store) -> None:
    class Failing(Idle):
        def wait(self, timeout: float | None = None) -> bool:
            raise ConfigError("the table is gone")

    put(store)
    idle.runs["trades"] = Failing()
    job = Job(store, "trades").start()
    with pytest.raises(ConfigError, match="the table is gone"):
        job.wait(30)
    eventually(lambda: store.find("trades").shown_state == "FAILED", 30)
    assert store.find("trades").last_error == "the table is gone"


def test_the_end_of_a_store_stops_its_jobs(idle: Any, store: Store, elsewhere: Store) -> None:
    for name in ("a", "b"):
        put(store, name)
        Job(elsewhere, name).start()
    elsewhere.close()
    assert all(run.asked.is_set() for run in idle.runs.values())
    assert [job.desired for job in store.all()] == [Desired.STOPPED] * 2
    assert store.control.workers.all() == []


@pytest.mark.usefixtures("idle")
def test_a_process_that_takes_all_runs_what_should_run_also_later_and_gives_it_up(
    store: Store, elsewhere: Store
) -> None:
    put(store, "stopped")
    put(store, "wanted", Desired.RUNNING)
    elsewhere.hosting.take()
    eventually(lambda: store.find("wanted").is_alive, 30)
    put(store, "later", Desired.RUNNING)
    eventually(lambda: store.find("later").is_alive, 30)
    assert not store.find("stopped").is_alive
    elsewhere.hosting.leave()
    found = {job.name: (job.desired.value, job.is_alive) for job in store.all()}
    assert found == {
        "stopped": ("stopped", False), "wanted": ("running", False), "later": ("running", False),
    }  # fmt: skip
