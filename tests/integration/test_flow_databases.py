"""Databases of flows on servers: what a query may take, its values, and rows that are published."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from tests.services.mariadb import PASSWORD as MARIADB_PASSWORD
from tests.services.postgres import PASSWORD

from penstock.flows import CompiledFlow, Flow, Message
from penstock.flows.error_codes import Fault
from penstock.flows.live.databases import Databases
from penstock.flows.live.live_systems import LiveSystems
from penstock.flows.publish.operations import DatabasePublish
from penstock.flows.running.systems import PublishRequest


def options(server: Any, password: str, timeout: float) -> SimpleNamespace:
    secret = SimpleNamespace(get_secret_value=lambda: password)
    return SimpleNamespace(database=server.url, password=secret, most=10, timeout=timeout)


def check(server: Any, password: str, sleep: str, numbers: str) -> None:
    databases = Databases()
    try:
        with pytest.raises(Fault) as late:
            databases.query("step", options(server, password, 0.2), sleep, {})
        (row,) = databases.query("step", options(server, password, 60), numbers, {"a": 7})
    finally:
        databases.close()
    assert late.value.code == "CORE:TIMEOUT"
    assert row == {"t": "at :b 100%", "n": 1.5, "a": 7, "d": "2024-05-01"}


def test_postgresql_ends_a_query_and_gives_values_of_json(postgres: Any) -> None:
    numbers = (
        "SELECT 'at :b 100%' AS t, 1.50::numeric AS n, CAST(:a AS integer) AS a, "
        "DATE '2024-05-01' AS d"
    )
    check(postgres, PASSWORD, "SELECT pg_sleep(60)", numbers)


def published(server: Any, password: str) -> None:
    """Publish rows to a database, with a value that would be a statement of its own."""
    evil = "Ann'); DROP TABLE flow_orders; --"
    place = {"url": server.url, "password": password}
    columns = {"id": "payload.id", "customer": "payload.name", "at": "now()", "größe": "1.5"}
    update = {
        "statement": "UPDATE flow_orders SET customer = :to WHERE id = :id",
        "parameters": {"to": "'Bob :id'", "id": "payload.id"},
    }
    create = (
        "CREATE TABLE flow_orders (id integer PRIMARY KEY, customer text, at timestamp, größe real)"
    )
    nowhere = {**place, "table": "no_such_table", "columns": {"id": "1"}}
    steps = [
        {
            "id": "insert",
            "publish": {"database": {**place, "table": "flow_orders", "columns": columns}},
        },
        {"filter": "payload.id = 1"},
        {"id": "update", "publish": {"database": {**place, **update}}},
        {"id": "none", "publish": {"database": nowhere}},
    ]
    live = LiveSystems()
    databases = Databases()
    try:
        databases.publish(DatabasePublish(**place, statement=create), [PublishRequest({})])
        messages = [
            Message({"id": n, "name": name}) for n, name in ((1, evil), (2, evil), (2, "x"))
        ]
        flow = Flow(name="t", trigger={"kafka": "a"}, steps=steps)
        result = CompiledFlow(flow).run(messages, live.systems())
        rows = databases.query(
            "step",
            options(server, password, 60),
            "SELECT id, customer, größe FROM flow_orders ORDER BY id",
            {},
        )
    finally:
        databases.publish(
            DatabasePublish(**place, statement="DROP TABLE flow_orders"), [PublishRequest({})]
        )
        live.close()
        databases.close()
    assert rows == [
        {"id": 1, "customer": "Bob :id", "größe": 1.5},
        {"id": 2, "customer": evil, "größe": 1.5},
    ]
    assert {(letter.from_step, letter.error["Code"]) for letter in result.dead_letters} == {
        ("insert", "DATABASE:REFUSED"),
        ("none", "DATABASE:REFUSED"),
    }
    assert result.dead_letters[0].message.attribute == {"rows": 1}


def test_a_statement_that_waits_for_a_lock_ends_in_time(postgres: Any) -> None:
    place = {"url": postgres.url, "password": PASSWORD}
    databases = Databases()

    def run(statement: str, timeout: float) -> Any:
        operation = DatabasePublish(**place, statement=statement, timeout=timeout)
        (receipt,) = databases.publish(operation, [PublishRequest({})])
        return receipt

    try:
        run("CREATE TABLE flow_locked (id integer)", 30)
        with postgres.connect() as other, other.transaction():
            other.execute("LOCK TABLE flow_locked")
            late = run("INSERT INTO flow_locked VALUES (1)", 0.3)
        done = run("INSERT INTO flow_locked VALUES (2)", 30)
    finally:
        run("DROP TABLE flow_locked", 30)
        databases.close()

    assert (late.code, done) == ("CORE:TIMEOUT", {"rows": 1})


def test_rows_are_published_to_postgresql(postgres: Any) -> None:
    published(postgres, PASSWORD)


def test_rows_are_published_to_mariadb(mariadb: Any) -> None:
    published(mariadb, MARIADB_PASSWORD)
