"""One process runs a job, whatever clocks say; one that lost it stops before it writes."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from penstock.engine import Done, State
from penstock.errors import FencedError
from penstock.jobs import Job, Store
from penstock.jobs import job_store as stores
from penstock.jobs.job_row import JobRow
from penstock.jobs.liveness import SILENT, lives, this_process
from penstock.pipeline import Mark

OTHER = "another-boot-1/77/5000/abc"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    held = Store(tmp_path / "jobs.sqlite")
    options = {"as_table": False, "batch_size": 0, "throttle": 1.0, "auto_commit": True}
    held.add(JobRow("trades", "1", "me", 1.0, {"name": "trades"}, options))
    return held


@pytest.fixture
def elsewhere(tmp_path: Path, store: Store) -> Store:
    """The same store, as a process of another machine has it."""
    other = Store(tmp_path / "jobs.sqlite")
    other.owner = OTHER
    return other


def read(store: Store) -> JobRow:
    found = store.get("trades")
    assert found is not None
    return found


def set_seen(store: Store, seen: float) -> None:
    assert store._update("trades", seen=seen)


@pytest.fixture
def _short_watch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores, "_WATCHED", 0.3)


@pytest.fixture
def beating(elsewhere: Store) -> Iterator[Callable[[float], None]]:
    """Writes heartbeats of the other machine, whose clock is off by some seconds."""
    over = Event()
    threads = []

    def begin(off: float) -> None:
        def beat() -> None:
            while not over.wait(0.05):
                elsewhere.seen("trades", State.RUNNING, 0)
                elsewhere._update("trades", seen=time.time() + off)

        threads.append(Thread(target=beat))
        threads[0].start()

    yield begin
    over.set()
    for thread in threads:
        thread.join()


def test_a_job_that_runs_elsewhere_is_not_taken(store: Store, elsewhere: Store) -> None:
    elsewhere.take("trades")
    with pytest.raises(stores.JobRunsElsewhereError, match="'trades' runs in another process"):
        store.take("trades")


@pytest.mark.usefixtures("_short_watch")
@pytest.mark.parametrize("off", [-3600.0, 3600.0])
def test_a_process_with_a_wrong_clock_keeps_its_job(
    store: Store, elsewhere: Store, beating: Callable[[float], None], off: float
) -> None:
    elsewhere.take("trades")
    set_seen(elsewhere, time.time() + off)
    beating(off)
    assert not read(store).is_alive  # by the clock
    with pytest.raises(stores.JobRunsElsewhereError):
        store.take("trades")


@pytest.mark.usefixtures("_short_watch")
@pytest.mark.parametrize("off", [-2 * SILENT, 3600.0])
def test_a_job_whose_process_is_gone_is_taken_whatever_the_clock_said(
    store: Store, elsewhere: Store, off: float
) -> None:
    elsewhere.take("trades")
    set_seen(elsewhere, time.time() + off)
    store.take("trades")
    assert read(store).owner == store.owner


@pytest.mark.usefixtures("_short_watch")
def test_a_process_that_wakes_up_after_its_job_was_taken_over_is_fenced(
    store: Store, elsewhere: Store
) -> None:
    elsewhere.take("trades")
    set_seen(elsewhere, 1.0)
    store.take("trades")

    assert not elsewhere.seen("trades", State.RUNNING, 0)
    done = Done(Mark(1, 0, 0), records=1, rows=1, failed=0, seconds=1.0)
    with pytest.raises(FencedError, match="was taken over by process"):
        elsewhere.count("trades", done)
    with pytest.raises(FencedError):
        elsewhere.require_owner("trades")
    store.count("trades", done)
    assert read(store).batches == 1


def test_a_batch_is_refused_before_it_is_written_when_the_job_was_taken_over(
    store: Store, elsewhere: Store
) -> None:
    job = Job(store, "trades")
    store.take("trades")
    elsewhere._update("trades", owner=OTHER)
    with pytest.raises(FencedError):  # no heartbeat was confirmed for long: the store is asked
        job._require_ownership()
    assert job.beat() is None


def test_two_processes_that_start_at_once_do_not_both_get_the_job(
    store: Store, elsewhere: Store
) -> None:
    outcomes: list[Any] = []

    def take(one: Store) -> None:
        try:
            one.take("trades")
            outcomes.append(one.owner)
        except stores.JobRunsElsewhereError as error:
            outcomes.append(type(error))

    for _ in range(20):
        outcomes.clear()
        store._update("trades", owner="", state=State.STARTING.value)
        both = [Thread(target=take, args=(one,)) for one in (store, elsewhere)]
        for thread in both:
            thread.start()
        for thread in both:
            thread.join()
        assert outcomes.count(stores.JobRunsElsewhereError) == 1
        assert read(store).owner in outcomes


def test_a_process_of_this_machine_is_known_by_itself_and_not_by_a_clock() -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    me = this_process()
    machine, pid, started, _ = me.split("/")

    assert lives(me, seen=1.0)
    assert lives(me, seen=time.time() + 1e6)
    assert not lives(f"{machine}/{ended.pid}/{started}/x", seen=time.time())
    # Another process has the number now.
    assert not lives(f"{machine}/{pid}/1/x", seen=time.time())
    assert lives(OTHER, seen=time.time())
    assert not lives(OTHER, seen=time.time() - 60)


def test_a_stopped_job_is_free_at_once(store: Store, elsewhere: Store) -> None:
    elsewhere.take("trades")
    elsewhere.seen("trades", State.STOPPED, 0)
    assert not replace(read(store)).is_alive
    store.take("trades")
