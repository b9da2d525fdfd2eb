"""Rows whose number or time is early and whose commit is late: none is missed, none comes twice."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from pydantic import SecretStr
from tests.faults.late_commits import MODES, Writers, create_table, late
from tests.integration.imports.database_rounds import Rounds
from tests.services import mariadb as mariadb_server
from tests.services import postgres as postgres_server
from tests.services.mariadb import MariaDb
from tests.services.postgres import Postgres

import penstock
from penstock import Connection, Pipeline
from penstock.errors import ConfigError
from penstock.imports.database.postgresql_client import PostgreSQLClient
from penstock.imports.database.table_range import OrderColumn, Relation
from penstock.sinks.database.database_api import Table
from penstock.sinks.database.dialect_address import read_address
from penstock.testing import eventually, read_all

_SECONDS = 20.0


@pytest.fixture
def table(postgres: Postgres, unique: str) -> Iterator[str]:
    name = unique.replace("-", "_")
    create_table(postgres, name)
    yield name
    with postgres.connect() as session:
        session.execute(f"DROP TABLE {name}")


def options_of(postgres: Postgres, table: str) -> dict[str, Any]:
    return {"url": postgres.url, "password": postgres_server.PASSWORD, "tables": table}


@pytest.mark.by_turns
@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode["mode"])
def test_writers_that_commit_out_of_order(
    postgres: Postgres, table: str, mode: dict[str, str]
) -> None:
    outcome = late(postgres, table, mode, _SECONDS)
    assert outcome.committed > 0
    assert (outcome.missed, outcome.repeated) == ([], []), outcome
    if mode["mode"] == "incrementing":
        assert outcome.out_of_order == 0


@pytest.mark.slow
def test_writers_that_commit_out_of_order_through_kafka(
    connection: Connection, unique: str, postgres: Postgres, table: str
) -> None:
    definition = Pipeline(
        name=unique,
        connection=connection,
        source={"database": {**options_of(postgres, table), **MODES[0], "poll": 0.1}},
        sink={"kafka": unique},
    )
    with penstock.start(definition) as running:
        with Writers(postgres, table, random.randrange(1 << 30), _SECONDS) as writers:
            pass
        eventually(lambda: running.progress().rows >= len(writers.numbers), timeout=60)
    found = [int(record.key or b"") for record in read_all(connection, unique)]
    assert sorted(found) == writers.numbers


def test_a_row_of_a_running_transaction_is_waited_for(postgres: Postgres, table: str) -> None:
    with psycopg.connect(postgres.dsn()) as late, postgres.connect() as quick:
        quick.execute(f"INSERT INTO {table} (n) VALUES ('first')")
        with Rounds(**options_of(postgres, table), **MODES[0]) as rounds:
            assert rounds.run() == 1
            late.execute(f"INSERT INTO {table} (n) VALUES ('late')")
            quick.execute(f"INSERT INTO {table} (n) VALUES ('quick')")
            assert rounds.run() == 0
            quick.execute(f"INSERT INTO {table} (n) VALUES ('quick too')")
            assert rounds.run() == 0
            late.commit()
            assert rounds.run() == 3
            assert rounds.column("n") == ["first", "late", "quick", "quick too"]


def test_a_reader_does_not_hold_numbers_up_and_a_rolled_back_row_is_nothing(
    postgres: Postgres, table: str
) -> None:
    with psycopg.connect(postgres.dsn()) as reader, psycopg.connect(postgres.dsn()) as late:
        reader.execute(f"SELECT count(*) FROM {table}")
        with Rounds(**options_of(postgres, table), **MODES[0]) as rounds:
            with postgres.connect() as quick:
                quick.execute(f"INSERT INTO {table} (n) VALUES ('a')")
            assert rounds.run() == 1
            late.execute(f"INSERT INTO {table} (n) VALUES ('gone')")
            with postgres.connect() as quick:
                quick.execute(f"INSERT INTO {table} (n) VALUES ('b')")
            assert rounds.run() == 0
            late.rollback()
            assert rounds.run() == 1
            assert rounds.column("id") == [1, 3]


def test_a_transaction_that_only_took_a_number_or_was_prepared_is_seen(unique: str) -> None:
    name = unique.replace("-", "_")
    relation, column = Relation(Table(name, "public")), OrderColumn("id", "incrementing")
    with Postgres(max_prepared_transactions=5) as server:
        address = read_address(server.url, SecretStr(postgres_server.PASSWORD))
        late = psycopg.connect(server.dsn())
        with PostgreSQLClient(address) as client, server.connect() as session, late:
            session.execute(f"CREATE TABLE {name} (id bigserial, at int) PARTITION BY RANGE (at)")
            session.execute(f"CREATE TABLE {name}_1 PARTITION OF {name} FOR VALUES FROM (0) TO (9)")
            assert client.running(relation, column) == frozenset()
            late.execute(f"SELECT nextval('{name}_id_seq')")
            assert len(client.running(relation, column)) == 1
            late.rollback()
            assert client.running(relation, column) == frozenset()
            late.tpc_begin(late.xid(1, name, "x"))
            late.execute(f"INSERT INTO {name}_1 (at) VALUES (1)")
            assert len(client.running(relation, column)) == 1
            late.tpc_prepare()
            (prepared,) = client.running(relation, column)
            assert client.running(Relation(query="SELECT 1"), column) == {prepared}
            late.tpc_commit()
            assert client.running(relation, column) == frozenset()


def test_a_number_of_a_sequence_that_no_default_names_is_waited_for(
    postgres: Postgres, table: str
) -> None:
    own = f"{table}_own"
    options = options_of(postgres, own)
    with psycopg.connect(postgres.dsn()) as late, postgres.connect() as quick:
        quick.execute(f"CREATE SEQUENCE {own}_ids")
        quick.execute(f"CREATE TABLE {own} (id bigint PRIMARY KEY, n text)")
        with Rounds(**options, **MODES[0]) as rounds:
            quick.execute(f"INSERT INTO {own} VALUES (nextval('{own}_ids'), 'first')")
            assert rounds.run() == 1
            ((number,),) = late.execute(f"SELECT nextval('{own}_ids')").fetchall()
            quick.execute(f"INSERT INTO {own} VALUES (nextval('{own}_ids'), 'quick')")
            assert rounds.run() == 0
            late.execute(f"INSERT INTO {own} VALUES ({number}, 'late')")
            late.commit()
            assert rounds.run() == 2
            assert rounds.column("n") == ["first", "late", "quick"]
        quick.execute(f"DROP TABLE {own}; DROP SEQUENCE {own}_ids")


def test_numbers_that_sessions_take_in_advance_are_refused(postgres: Postgres, table: str) -> None:
    with postgres.connect() as session:
        session.execute(f"ALTER SEQUENCE {table}_id_seq CACHE 20")
    with (
        Rounds(**options_of(postgres, table), **MODES[0]) as rounds,
        pytest.raises(ConfigError, match=r"has CACHE 20: .* set its CACHE to 1, use mode 'timest"),
    ):
        rounds.run()
    with Rounds(**options_of(postgres, table), **MODES[0], delay=0) as rounds:
        assert rounds.run() == 0


def test_mariadb_leaves_new_numbers_alone_for_the_delay(mariadb: MariaDb, unique: str) -> None:
    name = unique.replace("-", "_")
    with mariadb.connect() as session:
        session.cursor().execute(
            f"CREATE TABLE {name} (id BIGINT AUTO_INCREMENT PRIMARY KEY, n INT)"
        )
        session.cursor().execute(f"INSERT INTO {name} (n) VALUES (1)")
    options = {"url": mariadb.url, "password": mariadb_server.PASSWORD, "tables": name, "delay": 2}
    with (
        Rounds(**options, **MODES[0]) as rounds,
        mariadb.connect() as late,
        mariadb.connect() as quick,
    ):
        assert rounds.run() == 1
        late.begin()
        late.cursor().execute(f"INSERT INTO {name} (n) VALUES (2)")
        quick.cursor().execute(f"INSERT INTO {name} (n) VALUES (3)")
        assert rounds.run() == 0
        late.commit()
        eventually(lambda: rounds.run() == 2)
        assert rounds.column("n") == [1, 2, 3]
