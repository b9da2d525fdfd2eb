"""The source database as pipelines run it: into topics and behind them, servers that go away."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from tests.services import mariadb as mariadb_server
from tests.services import postgres as postgres_server
from tests.services.mariadb import MariaDb
from tests.services.outage import stay_away
from tests.services.postgres import Postgres

import penstock
from penstock import Connection, Pipeline, State, memory_table
from penstock.errors import ConfigError, TransientError
from penstock.imports.database.database_import import DatabaseImport
from penstock.testing import eventually, read_all

INCREMENTING = {"mode": "incrementing", "incrementing_column": "id"}


def rows_of(connection: Connection, topic: str) -> list[dict[str, Any]]:
    return [json.loads(record.value or b"") for record in read_all(connection, topic)]


def definition(connection: Connection, name: str, **options: Any) -> Pipeline:
    source = {"database": {"poll": 0.2} | INCREMENTING | options}
    return Pipeline(name=name, connection=connection, source=source, sink={"kafka": name})


def test_tables_by_pattern_each_into_its_topic_new_ones_and_altered_ones(
    connection: Connection, unique: str, postgres: Postgres
) -> None:
    schema = unique.replace("-", "_")
    pipeline = definition(
        connection,
        unique,
        url=postgres.url,
        password=postgres_server.PASSWORD,
        tables=f"{schema}.or*",
        topic=f"{unique}.{{schema}}.{{table}}",
    )
    topic = f"{unique}.{schema}"
    with postgres.connect() as session:
        session.execute(f"CREATE SCHEMA {schema}")
        for table in ("orders", "items"):
            session.execute(f"CREATE TABLE {schema}.{table} (id serial PRIMARY KEY, n int)")
            session.execute(f"INSERT INTO {schema}.{table} (n) VALUES (1), (2)")
        with penstock.start(pipeline) as running:
            eventually(lambda: running.progress().rows == 2)
            session.execute(f"CREATE TABLE {schema}.origins (id serial, t text)")
            session.execute(f"INSERT INTO {schema}.origins (t) VALUES ('a')")
            eventually(lambda: running.progress().rows == 3)
            session.execute(f"ALTER TABLE {schema}.orders ADD COLUMN extra numeric, DROP COLUMN n")
            session.execute(f"INSERT INTO {schema}.orders (extra) VALUES (1.50)")
            eventually(lambda: running.progress().rows == 4)
            session.execute(f"ALTER TABLE {schema}.orders ALTER COLUMN extra TYPE numeric(5, 3)")
            session.execute(f"INSERT INTO {schema}.orders (extra) VALUES (1.5)")
            eventually(lambda: running.progress().rows == 5)
            assert running.progress().state is State.RUNNING
        session.execute(f"DROP SCHEMA {schema} CASCADE")
    assert rows_of(connection, f"{topic}.orders") == [
        {"id": 1, "n": 1},
        {"id": 2, "n": 2},
        {"id": 3, "extra": "1.50"},
        {"id": 4, "extra": "1.500"},
    ]
    assert rows_of(connection, f"{topic}.origins") == [{"id": 1, "t": "a"}]


def test_a_server_that_goes_away_is_waited_for(connection: Connection, unique: str) -> None:
    with Postgres() as server:
        with server.connect() as session:
            session.execute("CREATE TABLE orders (id serial PRIMARY KEY)")
            session.execute("INSERT INTO orders SELECT n FROM generate_series(1, 500) n")
        options = {"url": server.url, "password": postgres_server.PASSWORD, "tables": "orders"}
        with penstock.start(definition(connection, unique, **options)) as running:
            eventually(lambda: running.progress().rows == 500)
            server.kill()
            eventually(lambda: running.progress().state is State.RETRYING)
            assert "away or busy" in str(running.progress().last_error)
            assert postgres_server.PASSWORD not in str(running.progress().last_error)
            stay_away()
            server.start()
            with server.connect() as session:
                session.execute("INSERT INTO orders SELECT n FROM generate_series(501, 900) n")
            eventually(lambda: running.progress().rows == 900, timeout=60)
            assert running.progress().state is State.RUNNING
    assert [row["id"] for row in rows_of(connection, unique)] == list(range(1, 901))


def test_mariadb_that_goes_away_is_waited_for(connection: Connection, unique: str) -> None:
    with MariaDb() as server:
        with server.connect() as session:
            session.cursor().execute(
                "CREATE TABLE orders (id INT AUTO_INCREMENT PRIMARY KEY, n INT)"
            )
            session.cursor().execute("INSERT INTO orders (n) SELECT seq FROM seq_1_to_300")
        options = {"url": server.url, "password": mariadb_server.PASSWORD, "tables": "orders"}
        with penstock.start(definition(connection, unique, **options, delay=0)) as running:
            eventually(lambda: running.progress().rows == 300)
            server.kill()
            eventually(lambda: running.progress().state is State.RETRYING)
            stay_away()
            server.start()
            with server.connect() as session:
                session.cursor().execute("INSERT INTO orders (n) SELECT seq FROM seq_301_to_400")
            eventually(lambda: running.progress().rows == 400, timeout=60)
    assert [row["n"] for row in rows_of(connection, unique)] == list(range(1, 401))


@pytest.mark.usefixtures("no_memory_tables")
def test_steps_and_a_sink_behind_the_rows(
    connection: Connection, unique: str, tmp_path: Path
) -> None:
    file = tmp_path / "shop.db"
    with sqlite3.connect(file) as session:
        session.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, price TEXT)")
        session.executemany("INSERT INTO orders VALUES (?, ?)", [(n, f"{n}.5") for n in range(100)])
    session.close()
    pipeline = Pipeline(
        name=unique,
        connection=connection,
        source={"jdbc": {"url": f"sqlite:///{file}", "tables": "orders", **INCREMENTING}},
        decode={"json": {"schema": "id int, price decimal(9, 2)"}},
        steps=[{"sql": "SELECT id, price * 2 AS twice FROM rows WHERE id < 50"}],
        sink={"memory": unique},
        state=str(tmp_path / "state"),
    )
    with penstock.start(pipeline, once=True) as running:
        assert running.wait(120)
    found = memory_table(unique).to_pandas()
    assert sorted(found["id"]) == list(range(50))
    assert float(found["twice"].sum()) == sum(2 * (n + 0.5) for n in range(50))


def pending(**options: Any) -> None:
    source = DatabaseImport.model_validate(
        INCREMENTING | {"tables": "orders", "topic": "t"} | options
    )
    with source.system() as system:
        system.pending({})


def test_what_cannot_work_is_said_without_the_password(
    postgres: Postgres, mariadb: MariaDb, unique: str, tmp_path: Path
) -> None:
    of_postgres = {"url": postgres.url, "password": postgres_server.PASSWORD}
    of_mariadb = {"url": mariadb.url, "password": mariadb_server.PASSWORD}
    table = unique.replace("-", "_")
    with postgres.connect() as session:
        session.execute(f"CREATE TABLE {table} (id uuid, day date, n numeric(8, 2))")
    (tmp_path / "no.db").write_text("not a database" * 100)
    by_time = {"mode": "timestamp", "incrementing_column": None}
    wrong: list[tuple[dict[str, Any], type[Exception], str]] = [
        (of_postgres | {"password": "wr0ngwr0ng"}, ConfigError, "password authentication failed"),
        (of_postgres | {"url": postgres.url + "x"}, ConfigError, "does not exist; check user, password"),
        (of_postgres | {"tables": table + "x"}, ConfigError, f"no table '{table}x' in the database; did"),
        (of_postgres | {"tables": table}, ConfigError,
         f"'incrementing_column' is 'id', which is string in the table 'public.{table}'; allowed: a "
         "column of whole numbers"),
        (of_postgres | {"tables": table, "incrementing_column": "n"}, ConfigError, "is decimal128(8, 2)"),
        (of_postgres | {"tables": table, "incrementing_column": "idd"}, ConfigError,
         f"is 'idd', which the table 'public.{table}' does not have; did you mean 'id'?"),
        (of_postgres | by_time | {"tables": table, "timestamp_column": "day"}, ConfigError,
         "'timestamp_column' is 'day', which is date32[day]"),
        (of_postgres | {"tables": [], "query": "SELECT nope FROM x"}, ConfigError, 'relation "x" does'),
        (of_postgres | {"tables": [], "query": "SELECT FROM WHERE"}, ConfigError,
         "PostgreSQL refuses the statement: syntax error at or near"),
        (of_mariadb | {"password": "wr0ngwr0ng"}, ConfigError, "Access denied for user 'penstock'"),
        (of_mariadb | {"tables": "nope"}, ConfigError, "no table 'nope' in the database"),
        (of_mariadb | {"tables": [], "query": "SELECT FROM"}, ConfigError, "refuses the statement"),
        ({"url": "postgresql://app@127.0.0.1:1/shop"}, TransientError, "is away or busy"),
        ({"url": "mariadb://app@127.0.0.1:1/shop"}, TransientError, "is away or busy"),
        ({"url": f"sqlite:///{tmp_path}/gone.db"}, ConfigError, "there is no file"),
        ({"url": f"sqlite:///{tmp_path}/no.db"}, ConfigError, "must be a SQLite database"),
        ({"url": "nodialect://app@host/shop"}, ConfigError, "SQLAlchemy cannot use nodialect://app@host"),
    ]  # fmt: skip
    for options, kind, message in wrong:
        with pytest.raises(kind) as refused:
            pending(**options)
        assert message in str(refused.value)
        assert "wr0ngwr0ng" not in str(refused.value)


def test_a_query_cannot_write(postgres: Postgres, unique: str) -> None:
    table = unique.replace("-", "_")
    with postgres.connect() as session:
        session.execute(f"CREATE TABLE {table} (id int)")
        session.execute(f"CREATE FUNCTION {table}_f() RETURNS int LANGUAGE sql AS "
                        f"'INSERT INTO {table} VALUES (1) RETURNING id'")  # fmt: skip
        query = {"tables": [], "query": f"SELECT {table}_f() AS id FROM generate_series(1, 2)"}
        with pytest.raises(ConfigError, match="read-only transaction"):
            pending(url=postgres.url, password=postgres_server.PASSWORD, **query)
        assert session.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,)
