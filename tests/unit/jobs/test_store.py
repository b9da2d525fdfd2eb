"""The store counts each batch once, is closed to others, and remembers a bounded number of events."""

from __future__ import annotations

import sqlite3
import stat
from pathlib import Path
from typing import Any

import pytest

from penstock.engine import Done, State
from penstock.errors import ConfigError, SetupError, TransientError
from penstock.jobs import Store
from penstock.jobs.job_store import JobRow
from penstock.pipeline import Mark


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "jobs.sqlite")


def kept(name: str = "trades", **more: Any) -> JobRow:
    options = {"as_table": False, "batch_size": 0, "throttle": 1.0, "auto_commit": True}
    return JobRow(name, "1", "me", 1.0, {"name": name}, options, **more)


def done(epoch: int, batch: int, **more: Any) -> Done:
    given = {"records": 10, "rows": 9, "failed": 1, "seconds": 1.0, "error": "t-0-1: oops"}
    return Done(Mark(epoch, batch, 0), **(given | more))


def test_a_batch_that_comes_again_is_counted_once(store: Store) -> None:
    store.add(kept())
    store.take("trades")
    for mark in ((1, 0), (1, 1), (1, 1), (1, 0), (2, 0), (1, 5)):
        store.count("trades", done(*mark))

    found = store.get("trades")
    assert found is not None
    assert (found.batches, found.records, found.rows, found.failed) == (3, 30, 27, 3)
    assert found.last_error == "t-0-1: oops"


def test_a_batch_without_failures_keeps_the_last_error(store: Store) -> None:
    store.add(kept())
    store.take("trades")
    store.count("trades", done(1, 0))
    store.count("trades", done(1, 1, failed=0, error=None))
    found = store.get("trades")
    assert found is not None
    assert found.last_error == "t-0-1: oops"


def test_a_name_is_taken_once(store: Store) -> None:
    store.add(kept())
    with pytest.raises(ConfigError, match="the job 'trades' already exists"):
        store.add(kept())


def test_a_job_is_alive_while_its_process_is(store: Store) -> None:
    store.add(kept())
    assert store.all()[0].shown_state == "STOPPED"
    store.take("trades")
    store.seen("trades", State.RUNNING, 7)
    assert (store.all()[0].shown_state, store.all()[0].lag) == ("RUNNING", 7)
    store.seen("trades", State.FAILED, 7)
    assert (store.all()[0].shown_state, store.all()[0].is_alive) == ("FAILED", False)


def test_the_newest_events_are_kept(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.jobs.job_store._EVENTS", 3)
    for number in range(6):
        store.note("trades", f"event {number}")
    store.note("other", "not mine")

    events = store.events("trades")
    assert [event.text for event in events] == ["event 3", "event 4", "event 5"]
    assert [event.text for event in store.events("trades", after=events[1].number)] == ["event 5"]


def test_the_file_is_for_its_owner_alone(store: Store, tmp_path: Path) -> None:
    file = tmp_path / "jobs.sqlite"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    file.chmod(0o644)
    with pytest.raises(SetupError, match="can be opened by others"):
        Store(file)


def test_secrets_in_errors_are_masked(store: Store) -> None:
    store.add(kept())
    store.failed("trades", "cannot connect to postgresql://me:hunter2@db/shop")
    found = store.get("trades")
    assert found is not None
    assert "hunter2" not in str(found.last_error)


def test_a_file_of_an_older_penstock_gains_the_columns_that_are_new(tmp_path: Path) -> None:
    file = tmp_path / "jobs.sqlite"
    store = Store(file)
    store.add(kept())
    store.close()
    with sqlite3.connect(file) as old:
        old.execute("ALTER TABLE penstock_jobs DROP COLUMN host")
        old.execute("ALTER TABLE penstock_jobs DROP COLUMN pid")
        old.execute("ALTER TABLE penstock_jobs DROP COLUMN owner")
    (job,) = Store(file).all()
    assert (job.name, job.host, job.pid, job.owner) == ("trades", "", 0, "")


def test_an_unavailable_database_is_a_transient_error(store: Store, tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "jobs.sqlite") as other:
        other.execute("DROP TABLE penstock_jobs")
    with pytest.raises(TransientError, match=r"jobs\.sqlite cannot be reached: no such table"):
        store.all()
