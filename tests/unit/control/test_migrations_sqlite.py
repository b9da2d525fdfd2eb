"""Migrations of an SQLite file."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest
from tests.contract.migration_suite import NAMES, V1, MigrationSuite

from penstock.control.secrets.key_file import KeyFile
from penstock.control.store import ControlStore, Database
from penstock.control.store.migrations.migration import NEWEST, VERSION_TABLE, current_version
from penstock.control.store.migrations.versions import v004_observability
from penstock.control.store.rows import Kind
from penstock.control.store.tables import TOOK
from penstock.engine import Done
from penstock.errors import TransientError
from penstock.pipeline import Mark


@pytest.fixture
def keys(tmp_path: Path) -> KeyFile:
    return KeyFile(tmp_path / "keys")


@pytest.fixture
def v1(tmp_path: Path) -> str:
    place = tmp_path / "jobs.sqlite"
    shutil.copy(V1, place)
    place.chmod(0o600)
    return str(place)


class TestMigrations(MigrationSuite): ...


def test_no_secret_remains_in_the_file(v1: str, keys: KeyFile) -> None:
    def content() -> bytes:
        return b"".join(file.read_bytes() for file in Path(v1).parent.glob("jobs.sqlite*"))

    assert content().count(b"Secret") > 5
    ControlStore.open(Database(v1), keys).close()
    assert b"Secret" not in content()


def test_pages_are_rewritten_even_if_the_process_ended_before(v1: str, keys: KeyFile) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("penstock.control.store.migrations.migration._rewrite_pages", lambda _: None)
        ControlStore.open(Database(v1), keys).close()
    with sqlite3.connect(v1) as session:
        assert session.execute("PRAGMA user_version").fetchone() == (1,)
    ControlStore.open(Database(v1), keys).close()
    with sqlite3.connect(v1) as session:
        assert session.execute("PRAGMA user_version").fetchone() == (0,)
    assert b"Secret" not in Path(v1).read_bytes()


def test_a_file_that_cannot_be_rewritten_yet_is_refused_with_the_reason(
    v1: str, keys: KeyFile
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("penstock.control.store.migrations.migration._rewrite_pages", lambda _: None)
        ControlStore.open(Database(v1), keys).close()
    impatient = Database(v1)
    with impatient.engine.connect() as session:
        session.connection.driver_connection.execute("PRAGMA busy_timeout = 10")
    with sqlite3.connect(v1) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(
            TransientError, match=r"old passwords .*rewritten \(database is locked\)"
        ):
            ControlStore.open(impatient, keys)
    ControlStore.open(impatient, keys).close()
    assert b"Secret" not in Path(v1).read_bytes()


def test_an_older_store_without_owners_is_completed(v1: str, keys: KeyFile) -> None:
    with sqlite3.connect(v1) as session:
        for column in ("host", "pid", "owner"):
            session.execute(f"ALTER TABLE penstock_jobs DROP COLUMN {column}")
    store = ControlStore.open(Database(v1), keys)
    assert [row.name for row in store.deployments.all()] == NAMES
    store.close()


def test_a_store_without_metrics_gets_their_columns_and_keeps_its_counts(
    tmp_path: Path, keys: KeyFile
) -> None:
    place = tmp_path / "control.sqlite"
    store = ControlStore.open(Database(place), keys)
    store.deployments.put("orders", Kind.PIPELINE, "name: orders", by="ann")
    lease = store.leases.claim("orders", "w")
    assert lease
    store.workers.join("w", "host", 1)
    done = Done(Mark(lease.token, 0, 0), records=10, rows=9, failed=1, seconds=2.0)
    store.counters.count("orders", lease.token, done)
    store.close()
    with sqlite3.connect(place) as session:  # as version 2 left it
        for table in ("partition_lag", "restarts", "logs", "replays"):
            session.execute(f"DROP TABLE penstock_{table}")
        session.execute("DELETE FROM penstock_sequence WHERE name = 'logs'")
        added = {
            "counters": ["seconds", *TOOK],
            "runs": ["takeovers", "lease_length"],
            "workers": ["renewals", "heap_used", "heap_max", "memory", "cpu_seconds", "queries"],
        }
        for table, columns in added.items():
            for column in columns:
                session.execute(f"ALTER TABLE penstock_{table} DROP COLUMN {column}")
        session.execute(
            f"UPDATE {VERSION_TABLE} SET version_num = '{v004_observability.down_revision}'"
        )

    store = ControlStore.open(Database(place), keys)
    assert current_version(store.database) == NEWEST
    counts, durations = store.counters.get("orders"), store.counters.durations()["orders"]
    assert (counts.batches, counts.rows, sum(durations.counts)) == (1, 9, 0)
    again = Done(Mark(lease.token, 1, 0), records=1, rows=1, failed=0, seconds=2.0)
    assert store.counters.count("orders", lease.token, again)
    assert store.counters.durations()["orders"].seconds == 2.0
    assert [row.id for row in store.workers.all()] == ["w"]
    store.close()


def test_a_store_without_replays_gets_their_table_and_keeps_its_deployments(
    tmp_path: Path, keys: KeyFile
) -> None:
    place = tmp_path / "control.sqlite"
    store = ControlStore.open(Database(place), keys)
    store.deployments.put("orders", Kind.PIPELINE, "name: orders", by="ann")
    store.close()
    with sqlite3.connect(place) as session:  # as version 6 left it
        session.execute("DROP TABLE penstock_replays")
        session.execute(f"UPDATE {VERSION_TABLE} SET version_num = '006'")

    store = ControlStore.open(Database(place), keys)
    assert current_version(store.database) == NEWEST
    number = store.replays.add("orders", {"all": True}, by="ann")
    assert [row.number for row in store.replays.before("orders")] == [number]
    store.close()
