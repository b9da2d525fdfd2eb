"""What migrations of the control plane's store promise, for SQLite and PostgreSQL alike.

A file of tests for one database defines the fixtures `v1` (the address of a store of jobs as version 1
left it) and `keys`.
"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from tests.contract.apart import run_apart

from penstock.control.liveness import this_process
from penstock.control.secrets.key_file import KeyFile
from penstock.control.store import ControlStore, Database
from penstock.control.store.migrations import migration
from penstock.control.store.migrations.migration import NEWEST, current_version
from penstock.control.store.migrations.versions import v001_job_store
from penstock.control.store.migrations.versions.v001_job_store import JOBS
from penstock.control.store.rows import Desired, Kind
from penstock.control.store.tables import METADATA
from penstock.errors import SetupError

V1 = Path(__file__).parents[1] / "unit/control/data/jobs-v1.sqlite"
"""Made by `penstock.jobs.Store` of the commit before the control plane."""
NAMES = ["clicks", "orders", "quotes", "ticks", "trades"]


def start_migration(place: str, keys: KeyFile, kill_after: int = 0) -> subprocess.Popen[bytes]:
    """Migrate in another process, which is killed before this many statements."""

    def migrate() -> None:
        left = kill_after
        database = Database(place)

        def count(*_: object) -> None:
            nonlocal left
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

        sa.event.listen(database.engine, "before_cursor_execute", count)
        ControlStore.open(database, keys)

    return run_apart(migrate)


def rows_of_v1() -> dict[str, list[dict[str, Any]]]:
    """Return the rows of the fixture, by table."""
    with sqlite3.connect(f"file:{V1}?mode=ro&immutable=1", uri=True) as session:
        session.row_factory = sqlite3.Row
        names = ("penstock_jobs", "penstock_job_events")
        return {
            name: [dict(row) for row in session.execute(f"SELECT * FROM {name}")] for name in names
        }


class MigrationSuite:
    def test_jobs_are_taken_over_with_counters_and_events(self, v1: str, keys: KeyFile) -> None:
        store = ControlStore.open(Database(v1), keys)

        assert [row.name for row in store.deployments.all()] == NAMES
        desired = {row.name: row.desired for row in store.deployments.all()}
        assert desired == {
            "clicks": Desired.RUNNING,
            "orders": Desired.RUNNING,
            "quotes": Desired.STOPPED,
            "ticks": Desired.DELETED,
            "trades": Desired.RUNNING,
        }
        trades = store.deployments.find("trades")
        assert (trades.kind, trades.created_by, trades.generation) == (Kind.JOB, "ann", 1)
        counts = store.counters.get("trades")
        assert (counts.batches, counts.records, counts.rows, counts.failed) == (1, 100, 90, 10)
        assert (counts.epoch, counts.batch) == (1_790_000_000, 0)
        assert counts.last_error == "trades-0-17: not JSON"
        texts = [event.text for event in store.events.after(deployment="trades")]
        assert texts[:2] == ["STARTING", "RUNNING"]
        assert texts[-1] == "taken over from the stored jobs"
        orders = store.leases.get("orders")
        assert orders
        assert (orders.state, orders.generation) == ("FAILED", 1)
        assert "no column 'price'" in str(orders.error)
        store.close()

    def test_tokens_start_after_the_epochs_of_the_jobs(self, v1: str, keys: KeyFile) -> None:
        database = Database(v1)
        with database.write() as session:
            session.execute(sa.text("UPDATE penstock_jobs SET epoch = 9000000000"))
        store = ControlStore.open(database, keys)
        lease = store.leases.claim("trades", "w")
        assert lease
        assert lease.token == 9_000_000_001
        store.close()

    def test_definitions_are_the_same_but_for_secrets(self, v1: str, keys: KeyFile) -> None:
        (before,) = [row for row in rows_of_v1()["penstock_jobs"] if row["name"] == "trades"]
        store = ControlStore.open(Database(v1), keys)
        spec = store.deployments.find("trades").spec

        assert "Secret" not in spec
        assert "Secret" not in store.secrets.shown("trades", spec)
        opened = store.secrets.opened("trades", spec)
        assert opened["definition"] == json.loads(before["definition"])
        assert opened["options"] == json.loads(before["options"])
        clicks = store.secrets.opened("clicks", store.deployments.find("clicks").spec)
        assert clicks["definition"]["decode"]["python"]["function"]["$function"] == "__main__:parse"
        store.close()

    def test_no_row_of_the_jobs_remains(self, v1: str, keys: KeyFile) -> None:
        store = ControlStore.open(Database(v1), keys)
        with store.database.read() as session:
            for name in ("penstock_jobs", "penstock_job_events"):
                assert session.execute(sa.text(f"SELECT count(*) FROM {name}")).scalar() == 0
        store.close()

    def test_the_migrated_tables_are_those_of_the_code(self, v1: str, keys: KeyFile) -> None:
        store = ControlStore.open(Database(v1), keys)
        both = sa.MetaData()
        for table in (*METADATA.tables.values(), *v001_job_store.METADATA.tables.values()):
            table.to_metadata(both)
        with store.database.read() as session:
            options = {"version_table": migration.VERSION_TABLE}
            found = compare_metadata(MigrationContext.configure(session, opts=options), both)
        assert found == []
        assert current_version(store.database) == NEWEST
        store.close()

    @pytest.mark.parametrize("statements", [8, 30, 60])
    def test_a_migration_that_is_killed_has_changed_nothing(
        self, v1: str, keys: KeyFile, statements: int
    ) -> None:
        keys.create()
        assert start_migration(v1, keys, statements).wait(60) == -signal.SIGKILL
        database = Database(v1)
        assert current_version(database) is None
        with database.read() as session:
            assert session.execute(sa.text("SELECT count(*) FROM penstock_jobs")).scalar() == 5
            assert not sa.inspect(session).has_table("penstock_deployments")

        store = ControlStore.open(database, keys)
        assert [row.name for row in store.deployments.all()] == NAMES
        store.close()

    def test_several_processes_migrate_at_the_same_time(self, v1: str, keys: KeyFile) -> None:
        """The keys are created at the same time, too."""
        processes = [start_migration(v1, keys) for _ in range(4)]
        assert [process.wait(60) for process in processes] == [0] * 4
        store = ControlStore.open(Database(v1), keys)
        assert [row.name for row in store.deployments.all()] == NAMES
        assert store.counters.get("trades").batches == 1
        spec = store.deployments.find("trades").spec
        assert store.secrets.opened("trades", spec)["definition"]["name"] == "trades"
        store.close()

    def test_a_job_that_runs_is_not_taken_over(self, v1: str, keys: KeyFile) -> None:
        database = Database(v1)
        with database.write() as session:
            mine = JOBS.update().where(JOBS.c.name == "trades")
            session.execute(mine.values(owner=this_process(), pid=99, state="RUNNING"))
        with pytest.raises(SetupError, match="the job 'trades' runs in process 99 on host-a; stop"):
            ControlStore.open(database, keys)
        assert current_version(database) is None
        database.close()

    def test_a_store_of_a_newer_release_is_refused(self, v1: str, keys: KeyFile) -> None:
        store = ControlStore.open(Database(v1), keys)
        with store.database.write() as session:
            session.execute(sa.text(f"UPDATE {migration.VERSION_TABLE} SET version_num = '999'"))
        with pytest.raises(SetupError, match="has the schema '999' of a newer release"):
            ControlStore.open(Database(v1), keys)
        store.close()
