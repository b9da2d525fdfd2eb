"""The store in an SQLite file keeps what `control_suite` promises, and what only a file can."""

from __future__ import annotations

import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy.pool import QueuePool
from tests.contract import control_suite, log_suite, observed_suite, replay_suite
from tests.services.control import recorded_statements

from penstock.control.store import ControlStore, Database
from penstock.control.store.leases import Leases
from penstock.errors import ConfigError, SetupError, TransientError


@pytest.fixture
def statements(store: ControlStore) -> Iterator[Callable[[], list[str]]]:
    with recorded_statements(store.database) as taken:
        yield taken


class TestDeployments(control_suite.DeploymentsSuite): ...


class TestLeases(control_suite.LeasesSuite): ...


class TestCounters(control_suite.CountersSuite): ...


class TestObserved(observed_suite.ObservedSuite): ...


class TestSamples(control_suite.SamplesSuite): ...


class TestEvents(control_suite.EventsSuite): ...


class TestLogs(log_suite.LogsSuite): ...


class TestReplays(replay_suite.ReplaysSuite): ...


class TestAccess(control_suite.AccessSuite): ...


class TestProcesses(control_suite.ProcessesSuite): ...


def test_the_file_is_closed_to_others(store: ControlStore, tmp_path: Path) -> None:
    assert stat.S_IMODE((tmp_path / "control.sqlite").stat().st_mode) == 0o600
    (tmp_path / "control.sqlite").chmod(0o644)
    with pytest.raises(SetupError, match="can be opened by others") as refused:
        Database(tmp_path / "control.sqlite")
    assert "use --store or PENSTOCK_STORE with a file of your own" in str(refused.value)
    assert "PENSTOCK_JOBS" not in str(refused.value)


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("mysql://root:hunter2@db/x", "the store cannot be in 'mysql'; give a file for SQLite"),
        ("sqlite://", "the store needs a file"),
        ("://x:hunter2@y", "is not a URL"),
    ],
)
def test_wrong_places(place: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as refused:
        Database(place)
    assert "hunter2" not in str(refused.value)


def test_a_locked_file_is_a_transient_error(store: ControlStore) -> None:
    impatient = Database(str(store.database.file))
    with impatient.engine.connect() as session:
        session.connection.driver_connection.execute("PRAGMA busy_timeout = 10")
    with store.database.write():
        with pytest.raises(TransientError, match="database is locked"), impatient.write():
            pass
        assert impatient.time() > 0  # a reader waits for no writer
    impatient.close()


def test_a_folder_is_not_a_file_of_a_store(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match=r"cannot be stored in .*: Is a directory; use --store"):
        Database(tmp_path)


def test_a_file_that_this_process_has_open_keeps_its_locks_when_it_is_opened_again(
    store: ControlStore,
) -> None:
    """The system ends all locks of a process on a file that it closes once, also of other handles.

    Without them another process takes itself for the last one, and removes the log that this one writes.
    """
    file = str(store.database.file)
    store.events.add("a", "state", "before")
    again = store.database.apart()

    code = (
        "import sqlite3, sys; sqlite3.connect(sys.argv[1]).execute('SELECT 1 FROM penstock_runs')"
    )
    subprocess.run([sys.executable, "-c", code, file], check=True)
    store.events.add("a", "state", "after")

    code = "import sqlite3, sys; print(*sqlite3.connect(sys.argv[1]).execute(sys.argv[2]))"
    seen = subprocess.run(
        [sys.executable, "-c", code, file, "SELECT text FROM penstock_events"],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert seen.stdout == "('before',) ('after',)\n"
    again.close()


def test_a_pool_whose_connections_are_all_in_use_is_a_transient_error(store: ControlStore) -> None:
    pool = store.database.engine.pool
    assert isinstance(pool, QueuePool)
    pool._timeout = 0.1
    held = [store.database.engine.connect() for _ in range(pool.size() + 10)]
    with pytest.raises(TransientError, match="is too slow: all connections of this process"):
        store.leases.renew("w")

    apart = store.database.apart()
    assert Leases(apart, 15.0).renew("w") == {}
    apart.close()
    for each in held:
        each.close()


def test_the_clock_has_fractions_and_is_right(store: ControlStore) -> None:
    import time

    times = [store.database.time() for _ in range(50)]
    assert len({round(each % 1, 3) for each in times}) > 1
    assert abs(times[-1] - time.time()) < 5
