"""The sink database at the end of a whole pipeline: exactly once, and a refused row goes away alone."""

from __future__ import annotations

from typing import Any

from tests.services.postgres import PASSWORD

from penstock import Connection, start
from penstock.testing import fill, read_all


def test_a_row_that_the_database_refuses_goes_to_the_dead_letters_alone(
    connection: Connection, topic: Any, pipeline: Any, postgres: Any, unique: str
) -> None:
    table = unique.replace("-", "_")
    with postgres.connect() as session:
        session.execute(f"CREATE TABLE {table} (n bigint CHECK (n <> 13))")
    fill(connection, topic(), [{"n": number} for number in range(40)], partitions=2)
    definition = pipeline(
        source={"kafka": topic()},
        decode={"json": {"schema": "n bigint"}},
        sink={"database": {"url": postgres.url, "password": PASSWORD, "table": table}},
        delivery="exactly-once",
    )

    with start(definition, once=True) as running:
        running.wait(200)
        progress = running.progress()

    assert sorted(postgres.values(table, "n")) == [n for n in range(40) if n != 13]
    assert (progress.rows, progress.failed) == (39, 1)
    (dead,) = read_all(connection, f"{unique}.dead-letters")
    assert dead.value == b'{"n":13}'
    headers = dict(dead.headers)
    assert headers["penstock.stage"] == b"write"
    assert b"violates check constraint" in headers["penstock.error"]
