"""A worker with a real store, broker and Spark: what is deployed runs, and follows what is asked for."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml

from penstock import Admin, Connection
from penstock.control.job_spec import JobSpec
from penstock.control.liveness import this_process
from penstock.control.store import ControlStore
from penstock.control.store.rows import Desired, Kind
from penstock.engine.restart_reason import RestartReason
from penstock.testing import eventually, fill, read_all
from penstock.worker.starting import Starting
from penstock.worker.worker import Worker, WorkerSettings

QUICK = WorkerSettings(reconcile_every=0.1, report_every=0.1)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ControlStore]:
    opened = ControlStore.at(tmp_path / "control.sqlite", tmp_path / "keys", 5.0)
    yield opened
    opened.close()


@pytest.fixture
def worker(store: ControlStore, tmp_path: Path) -> Iterator[Worker]:
    worker = Worker(store, Starting(store, str(tmp_path / "states")), QUICK)
    thread = Thread(target=worker.run)
    thread.start()
    yield worker
    worker.drain()
    thread.join(120)
    assert not thread.is_alive()


@pytest.fixture
def deploy(
    store: ControlStore, connection: Connection, unique: str, tmp_path: Path
) -> Callable[..., str]:
    def put(**more: Any) -> str:
        definition = {
            "name": unique,
            "connection": {"bootstrap.servers": connection.brokers},
            "source": {"kafka": unique},
            "decode": {"json": {"schema": "n bigint"}},
            "sink": {"files": {"path": str(tmp_path / "table")}},
            "delivery": "exactly-once",
        }
        text = yaml.safe_dump(definition | more)
        store.deployments.put(
            unique, Kind.PIPELINE, store.secrets.sealed(unique, text), by="a test"
        )
        return unique

    return put


def rows(tmp_path: Path) -> list[int]:
    files = (tmp_path / "table").glob("*.parquet")
    return sorted(n for file in files for n in pq.read_table(file).column("n").to_pylist())


def state(store: ControlStore, name: str) -> str:
    run = store.leases.get(name)
    return run.state if run else ""


def test_a_deployment_runs_and_follows_what_is_asked_for(
    store: ControlStore,
    worker: Worker,
    deploy: Callable[..., str],
    connection: Connection,
    tmp_path: Path,
    unique: str,
) -> None:
    fill(connection, unique, [{"n": n} for n in range(10)])
    name = deploy()
    eventually(lambda: rows(tmp_path) == [*range(10)], timeout=120)
    eventually(lambda: state(store, name) == "RUNNING")
    eventually(lambda: store.counters.get(name).records == 10)
    assert store.leases.get(name).worker == worker.id

    store.deployments.set_desired(name, Desired.PAUSED, by="a test")
    eventually(lambda: state(store, name) == "PAUSED", timeout=60)
    assert store.leases.get(name).worker == ""
    fill(connection, unique, [{"n": n} for n in range(10, 20)])

    deploy(steps=[{"sql": "SELECT n + 100 AS n FROM rows"}])  # another generation, still paused
    store.deployments.set_desired(name, Desired.RUNNING, by="a test")
    eventually(lambda: rows(tmp_path) == [*range(10), *range(110, 120)], timeout=120)

    deploy(steps=[{"sql": "SELECT n + 1000 AS n FROM rows"}])  # while it runs
    eventually(lambda: store.leases.get(name).generation == 3, timeout=60)
    fill(connection, unique, [{"n": 20}])
    eventually(lambda: 1020 in rows(tmp_path), timeout=60)
    eventually(lambda: store.counters.get(name).records == 21)

    # What becomes metrics.
    assert sum(store.counters.durations()[name].counts) == store.counters.get(name).batches
    assert store.restarts.all() == {(name, RestartReason.CHANGED): 1}
    eventually(lambda: set(store.partition_lag.all().get(name, {}).values()) == {0}, timeout=60)
    eventually(lambda: store.workers.all()[0].heap_used, timeout=30)
    (measured,) = store.workers.all()
    assert 0 < measured.heap_used < measured.heap_max < measured.memory * 10
    assert (measured.queries, measured.cpu_seconds > 1, measured.renewals > 0) == (1, True, True)

    store.deployments.set_desired(name, Desired.DELETED, by="a test")
    eventually(lambda: store.deployments.get(name) is None, timeout=60)
    assert not (tmp_path / "states" / name).exists()
    assert len(rows(tmp_path)) == 21


def test_a_deployment_that_cannot_run_has_failed_and_runs_when_it_is_corrected(
    store: ControlStore,
    worker: Worker,
    deploy: Callable[..., str],
    connection: Connection,
    tmp_path: Path,
    unique: str,
) -> None:
    fill(connection, unique, [{"n": 1}])
    name = deploy(steps=[{"sql": "SELECT missing FROM rows"}], restart={"limit": 0})
    eventually(lambda: state(store, name) == "FAILED", timeout=60)
    assert "missing" in (store.leases.get(name).error or "")
    deploy()
    eventually(lambda: rows(tmp_path) == [1], timeout=60)
    assert [event.kind for event in store.events.after(0, deployment=name)].count("failed") == 1


def test_the_rounds_of_an_import_are_counted(
    store: ControlStore, worker: Worker, connection: Connection, tmp_path: Path, unique: str
) -> None:
    folder = tmp_path / "lines"
    folder.mkdir()
    (folder / "a.txt").write_text("one\ntwo\nthree\n")
    definition = {
        "name": unique,
        "connection": {"bootstrap.servers": connection.brokers},
        "source": {"files": {"folder": str(folder), "poll": 0.2}},
        "sink": {"kafka": f"{unique}-out"},
    }
    store.deployments.put(unique, Kind.PIPELINE, yaml.safe_dump(definition), by="a test")
    eventually(lambda: store.counters.get(unique).records == 3, timeout=120)
    (folder / "b.txt").write_text("four\n")
    eventually(lambda: store.counters.get(unique).records == 4, timeout=120)
    assert store.counters.get(unique).rows == 4


def test_a_job_whose_process_was_killed_is_taken_over(
    store: ControlStore, worker: Worker, connection: Connection, tmp_path: Path, unique: str
) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    machine, _, started, _ = this_process().split("/")
    store.workers.join("script", "host", 1, 0.0, f"{machine}/{ended.pid}/{started}/x")
    fill(connection, unique, ['{"n": 1}', '{"n": 2}'])
    definition = {
        "name": unique,
        "connection": {"bootstrap.servers": connection.brokers},
        "source": {"kafka": {"topics": [unique]}},
        "decode": {"json": {"schema": "n bigint"}},
        "sink": {"files": {"path": str(tmp_path / "table")}},
        "delivery": "exactly-once",
    }
    text = JobSpec(definition, {}, "1").sealed(unique, store.secrets)
    store.deployments.put(unique, Kind.JOB, text, by="a test", desired=Desired.STOPPED)
    # The script has its lease, and was killed.
    assert store.leases.claim(unique, "script", stopped=True)
    store.deployments.set_desired(unique, Desired.RUNNING, by="a test")
    eventually(lambda: store.counters.get(unique).records == 2, timeout=120)
    run = store.leases.get(unique)
    assert run
    assert run.worker == worker.id
    assert sorted(pq.read_table(tmp_path / "table").column("n").to_pylist()) == [1, 2]


def test_a_flow_runs_and_another_worker_takes_it_over(
    store: ControlStore, worker: Worker, connection: Connection, tmp_path: Path, unique: str
) -> None:
    folder = tmp_path / "lines"
    folder.mkdir()
    definition = {
        "name": unique,
        "connection": {"addresses": connection.brokers},
        "trigger": {"file": {"folder": str(folder), "pattern": "*.log", "poll": 0.2}},
        "steps": [{"publish": {"kafka": {"topic": f"{unique}.out", "key": "${attribute.file}"}}}],
    }
    text = store.secrets.sealed(unique, yaml.safe_dump(definition))
    (folder / "a.log").write_text("one\ntwo\n")

    def published() -> list[bytes]:
        with Admin(connection) as admin:
            found = admin.topic_ids([f"{unique}.out"])
        return [r.value for r in read_all(connection, f"{unique}.out")] if found else []

    store.deployments.put(unique, Kind.FLOW, text, by="a test")
    eventually(lambda: published() == [b"one", b"two"], timeout=120, every=0.5)
    eventually(lambda: store.counters.get(unique).records == 2)
    eventually(lambda: state(store, unique) == "RUNNING")

    store.deployments.set_desired(unique, Desired.PAUSED, by="a test")
    eventually(lambda: state(store, unique) == "PAUSED", timeout=60)
    (folder / "b.log").write_text("three\n")
    worker.drain()
    other = Worker(store, Starting(store, str(tmp_path / "states")), QUICK)
    thread = Thread(target=other.run)
    thread.start()
    try:
        store.deployments.set_desired(unique, Desired.RUNNING, by="a test")
        eventually(lambda: published() == [b"one", b"two", b"three"], timeout=120, every=0.5)
        assert store.leases.get(unique).worker == other.id
        eventually(lambda: store.counters.get(unique).records == 3)
    finally:
        other.drain()
        thread.join(120)
    assert not thread.is_alive()
