"""Migrations of an SQLite file."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest
from tests.contract.migration_suite import NAMES, V1, MigrationSuite

from penstock.control.secrets.key_file import KeyFile
from penstock.control.store import ControlStore, Database


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


def test_an_older_store_without_owners_is_completed(v1: str, keys: KeyFile) -> None:
    with sqlite3.connect(v1) as session:
        for column in ("host", "pid", "owner"):
            session.execute(f"ALTER TABLE penstock_jobs DROP COLUMN {column}")
    store = ControlStore.open(Database(v1), keys)
    assert [row.name for row in store.deployments.all()] == NAMES
    store.close()
