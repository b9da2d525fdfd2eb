"""What the sink database says and keeps when its database is away, killed, locked, or shut to it."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pymysql
import pytest
from pydantic import SecretStr
from tests.integration.sinks.databases import DatabaseTable, database_table
from tests.services.mariadb import PASSWORD as MARIADB_PASSWORD
from tests.services.mariadb import MariaDb
from tests.services.postgres import PASSWORD

from penstock.errors import ConfigError, RefusedError, TransientError
from penstock.pipeline import Delivery, LastWrite, Mark
from penstock.sinks.database.address import Address
from penstock.sinks.database.database_api import Table
from penstock.sinks.database.database_sink import DatabaseSink
from penstock.testing import eventually

SERVERS = ["postgres", "mariadb"]


@pytest.fixture(scope="session")
def spark() -> Any:
    from penstock.engine import spark_session

    return spark_session()


@pytest.fixture(params=SERVERS)
def db(request: Any, spark: Any, unique: str, tmp_path: Path) -> Iterator[DatabaseTable]:
    server = request.getfixturevalue(request.param)
    yield database_table(request.param, server, unique.replace("-", "_"), spark, tmp_path)
    if server.child is None:
        server.start()


def waiting_rows(spark: Any, folder: Path) -> Any:
    """Rows that stop in the middle: `sent` appears when the first have gone out, `go` lets them end."""

    def stopping(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from penstock.testing import eventually

        for number, batch in enumerate(batches):
            if number == 8:
                (folder / "sent").touch()
                eventually((folder / "go").exists)
            yield batch

    return spark.range(0, 200_000, numPartitions=1).mapInArrow(stopping, "id bigint")


@pytest.mark.by_turns
def test_a_server_killed_in_mid_write_is_transient_and_the_replay_is_exact(
    db: DatabaseTable, tmp_path: Path
) -> None:
    writer = db.prepared("id bigint")
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(writer.write, db.of(waiting_rows(db.spark, tmp_path)))
        eventually((tmp_path / "sent").exists)
        db.server.kill()
        (tmp_path / "go").touch()
        with pytest.raises(TransientError, match="away or busy"):
            writing.result(timeout=120)

    with pytest.raises(TransientError):
        writer.write(db.of(db.spark.range(200_000)))
    db.server.start()
    assert db.ask("SELECT COUNT(*) FROM {t}") == [(0,)]
    for _ in range(2):
        writer.write(db.of(db.spark.range(200_000)))
    assert db.ask("SELECT COUNT(*), COUNT(DISTINCT id) FROM {t}") == [(200_000, 200_000)]


def test_a_server_that_is_away_at_the_start_is_transient(db: DatabaseTable) -> None:
    db.server.stop()
    with pytest.raises(TransientError, match=rf"{db.server.port}.* is away or busy"):
        db.prepared("id bigint")


def test_a_second_writer_of_the_same_mark_waits_and_then_has_nothing_to_do(
    db: DatabaseTable,
) -> None:
    """A zombie of an earlier process still holds the write when the new process runs it again."""
    writer = db.prepared("id bigint")
    zombie = writer.sink.database()
    with ThreadPoolExecutor(1) as pool, zombie.session() as session:
        assert session.lock_mark(Table.read(db.table), "p") is None
        session.set_mark(Table.read(db.table), "p", LastWrite(Mark(0, 0, 0)))
        writing = pool.submit(writer.write, db.batch("id bigint", [(1,)]))
        eventually(lambda: _waits(db))
        session.commit()
        writing.result(timeout=60)
    assert db.ask("SELECT * FROM {t}") == []


def _waits(db: DatabaseTable) -> bool:
    waiting = {
        "postgres": "SELECT COUNT(*) FROM pg_locks WHERE NOT granted",
        "mariadb": "SELECT COUNT(*) FROM information_schema.processlist "
        "WHERE command = 'Query' AND info LIKE '%%penstock_offsets%%' AND info NOT LIKE '%%command%%'",
    }[db.kind]
    return db.ask(waiting) != [(0,)]


def test_a_wrong_password_is_said_without_the_password(db: DatabaseTable) -> None:
    with pytest.raises(ConfigError, match="check user, password, database") as caught:
        db.prepared("id bigint", password="wr0ng-secret")
    assert "wr0ng-secret" not in str(caught.value)


def test_a_database_that_is_not_there_is_reported(db: DatabaseTable) -> None:
    url = db.server.url.replace("/penstock", "/nowhere")
    with pytest.raises(ConfigError, match=r"nowhere"):
        db.prepared("id bigint", url=url)


def test_a_password_in_the_address_works_and_is_shown_nowhere(db: DatabaseTable) -> None:
    url = db.server.url.replace("penstock@", f"penstock:{quote(PASSWORD, safe='')}@")
    sink = DatabaseSink(url=url, table=db.table)
    db.open(sink).prepare(db.schema("id bigint"))
    shown = f"{sink!r} {sink} {sink.model_dump()} {sink.model_dump_json()} {sink.__dict__}"
    assert PASSWORD not in shown
    assert quote(PASSWORD, safe="") not in shown
    assert sink.url == db.server.url


@pytest.mark.by_turns
def test_too_many_connections_are_transient(db: DatabaseTable) -> None:
    open_ones = []
    try:
        with pytest.raises(TransientError):
            for _ in range(200):
                open_ones.append(db.server.connect())
                if len(open_ones) % 10 == 0:
                    db.prepared("id bigint")
    except Exception as error:  # the test's own connection was the one too many
        assert "connection" in str(error) or "clients" in str(error)
        with pytest.raises(TransientError):
            db.prepared("id bigint")
    finally:
        for each in open_ones:
            each.close()


def test_a_locked_file_of_sqlite_is_transient(spark: Any, unique: str, tmp_path: Path) -> None:
    db = database_table("sqlite", None, unique.replace("-", "_"), spark, tmp_path)
    writer = db.prepared("id bigint")
    holder = writer.sink.database()
    with holder.session(), pytest.raises(TransientError, match="locked"):
        writer.write(db.batch("id bigint", [(1,)]))
    writer.write(db.batch("id bigint", [(1,)]))
    assert db.ask("SELECT * FROM {t}") == [(1,)]


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda file: file.write_text("this is no database at all" * 50), "not a database"),
        (lambda file: file.mkdir(), "unable to open"),
    ],
)
def test_a_file_that_sqlite_cannot_use_is_reported(
    make: Any, reason: str, spark: Any, tmp_path: Path
) -> None:
    db = database_table("sqlite", None, "t", spark, tmp_path)
    make(tmp_path / "data.db")
    with pytest.raises(ConfigError, match=rf"data.db.*{reason}.*SQLite database"):
        db.prepared("id bigint")


def test_a_user_without_rights_is_reported(
    postgres: Any, spark: Any, unique: str, tmp_path: Path
) -> None:
    db = database_table("postgres", postgres, unique.replace("-", "_"), spark, tmp_path)
    db.ask("CREATE ROLE r_{t} LOGIN PASSWORD 'x'")
    db.ask("CREATE SCHEMA s_{t}")
    db.ask("GRANT USAGE ON SCHEMA s_{t} TO r_{t}")
    table = f"s_{db.table}.t"
    mine = postgres.url.replace("penstock@", f"r_{db.table}@")
    own = {"url": mine, "password": "x", "table": table}
    with pytest.raises(ConfigError, match=r"permission denied.*rights"):
        db.prepared("id bigint", **own)
    db.prepared("id bigint", table=table)  # a user with the rights creates the tables
    db.ask("GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA s_{t} TO r_{t}")
    db.prepared("id bigint", **own).write(db.batch("id bigint", [(1,)]))
    assert db.ask("SELECT * FROM s_{t}.t") == [(1,)]


def test_at_most_and_at_least_once_need_no_marks(db: DatabaseTable) -> None:
    writer = db.open(db.sink(), Delivery.AT_LEAST_ONCE)
    writer.prepare(db.schema("id bigint"))
    writer.write(db.batch("id bigint", [(1,)], delivery=Delivery.AT_MOST_ONCE))
    assert db.ask("SELECT * FROM {t}") == [(1,)]


def test_what_a_task_refuses_keeps_its_kind(spark: Any, tmp_path: Path) -> None:
    db = database_table("sqlite", None, "t", spark, tmp_path)
    writer = db.prepared("real double")
    with pytest.raises(RefusedError, match="the column 'real' has a NaN"):
        writer.write(db.batch("real double", [(float("nan"),)]))


def test_a_file_that_we_did_not_offer_is_not_sent_to_mariadb(
    mariadb: MariaDb, tmp_path: Path
) -> None:
    from penstock.sinks.database.mariadb.mariadb_database import MariaDB

    secret = tmp_path / "secret"
    secret.write_text("1\n")
    address = Address.read(mariadb.url, SecretStr(MARIADB_PASSWORD))
    with mariadb.connect() as other:
        other.cursor().execute("CREATE TABLE loot (line TEXT)")
    # The server asks for the file that the statement names, as one that was taken over could.
    load = "LOAD DATA LOCAL INFILE %s INTO TABLE loot"
    with (
        pytest.raises(pymysql.InternalError, match="the server asked for the file"),
        MariaDB(address).session() as session,
    ):
        session._do(load, [str(secret)])
