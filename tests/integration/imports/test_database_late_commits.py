"""Rows whose number or time is early and whose commit is late: none is missed, none comes twice."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from pydantic import SecretStr
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
_WRITERS = 6


@pytest.fixture
def table(postgres: Postgres, unique: str) -> Iterator[str]:
    name = unique.replace("-", "_")
    with postgres.connect() as session:
        session.execute(
            f"CREATE TABLE {name} (id bigserial PRIMARY KEY, at timestamptz DEFAULT now(), n text)"
        )
        session.execute(f"CREATE INDEX ON {name} (at, id)")
    yield name
    with postgres.connect() as session:
        session.execute(f"DROP TABLE {name}")


def options_of(postgres: Postgres, table: str) -> dict[str, Any]:
    return {"url": postgres.url, "password": postgres_server.PASSWORD, "tables": table}


class Writers:
    """Sessions that insert in transactions of random lengths; some take numbers first, some roll back."""

    def __init__(self, postgres: Postgres, table: str, seed: int) -> None:
        self._postgres, self._table, self._seed = postgres, table, seed
        self.committed: list[set[int]] = [set() for _ in range(_WRITERS)]
        self._threads = [threading.Thread(target=self._write, args=(at,)) for at in range(_WRITERS)]

    def __enter__(self) -> Writers:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        for thread in self._threads:
            thread.join()

    @property
    def numbers(self) -> list[int]:
        return sorted(set().union(*self.committed))

    def _write(self, at: int) -> None:
        chance = random.Random(self._seed + at)
        until = time.monotonic() + _SECONDS
        with psycopg.connect(self._postgres.dsn()) as session:
            while time.monotonic() < until:
                numbers = self._transaction(session, chance)
                if chance.random() < 0.1:
                    session.rollback()
                else:
                    session.commit()
                    self.committed[at] |= numbers

    def _transaction(self, session: psycopg.Connection[Any], chance: random.Random) -> set[int]:
        numbers = set()
        if chance.random() < 0.3:
            session.execute("SELECT pg_current_xact_id()")  # a transaction's number that is early
        for _ in range(chance.randint(1, 4)):
            if chance.random() < 0.3:
                # The number is taken in one statement, and used in a later one.
                query = f"SELECT nextval('{self._table}_id_seq')"
                (number,) = session.execute(query).fetchone() or (0,)
                time.sleep(chance.random() * 0.1)
                session.execute(f"INSERT INTO {self._table} (id, n) VALUES (%s, 'x')", [number])
            else:
                query = f"INSERT INTO {self._table} (n) VALUES ('x') RETURNING id"
                (number,) = session.execute(query).fetchone() or (0,)
            numbers.add(number)
            time.sleep(chance.random() * 0.1)
        if chance.random() < 0.05:
            time.sleep(chance.random() * 3)
        return numbers


MODES = [
    {"mode": "incrementing", "incrementing_column": "id"},
    {"mode": "timestamp", "timestamp_column": "at"},
    {"mode": "timestamp+incrementing", "timestamp_column": "at", "incrementing_column": "id"},
]


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode["mode"])
def test_writers_that_commit_out_of_order(
    postgres: Postgres, table: str, mode: dict[str, str]
) -> None:
    seed = random.randrange(1 << 30)
    with Rounds(**options_of(postgres, table), **mode) as rounds:
        with Writers(postgres, table, seed) as writers:
            while any(thread.is_alive() for thread in writers._threads):
                rounds.run()
        eventually(lambda: rounds.run() >= 0 and len(rounds.records) >= len(writers.numbers))
        assert rounds.run() == 0
        found = Counter(rounds.column("id"))
    print(f"seed {seed}, {len(writers.numbers)} rows, {rounds.transactions} takes")
    assert sorted(found) == writers.numbers
    assert max(found.values()) == 1
    if mode["mode"] == "incrementing":
        assert rounds.column("id") == writers.numbers


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
        with Writers(postgres, table, random.randrange(1 << 30)) as writers:
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
