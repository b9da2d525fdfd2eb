"""Migrations of a database in PostgreSQL."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.contract.migration_suite import MigrationSuite, rows_of_v1

from penstock.control.secrets.key_file import KeyFile
from penstock.control.store import Database
from penstock.control.store.migrations.versions import v001_job_store


@pytest.fixture
def keys(tmp_path: Path) -> KeyFile:
    return KeyFile(tmp_path / "keys")


@pytest.fixture
def v1(empty_url: str) -> str:
    database = Database(empty_url)
    with database.write() as session:
        v001_job_store.METADATA.create_all(session)
        for table, rows in rows_of_v1().items():
            typed = [
                row | ({"cancelled": bool(row["cancelled"])} if "cancelled" in row else {})
                for row in rows
            ]
            session.execute(v001_job_store.METADATA.tables[table].insert(), typed)
    database.close()
    return empty_url


class TestMigrations(MigrationSuite): ...
