"""A table of each kind of database that the source reads, for a test."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.integration.imports.database_rounds import Rounds
from tests.services import mariadb as mariadb_server
from tests.services import postgres as postgres_server


class Target:
    """A database, with a table of its own for the test."""

    def __init__(self, kind: str, options: dict[str, Any], connect: Any, mark: str) -> None:
        self.kind, self.options, self._connect, self._mark = kind, options, connect, mark
        self.table = "Order %s lines" if kind != "sqlalchemy" else "order lines"
        sign = "`" if kind == "mariadb" else '"'
        self.quoted = f"{sign}{self.table}{sign}"
        # Only one session writes here, one statement at a time.
        self.delay = {} if kind in ("postgresql", "sqlite") else {"delay": 0}

    def run(self, *statements: str) -> None:
        with closing(self._connect()) as session:
            cursor = session.cursor()
            for statement in statements:
                cursor.execute(self._own(statement))
            session.commit()

    def _own(self, statement: str) -> str:
        statement = statement.replace("{t}", self.quoted)
        if self.kind != "sqlalchemy":
            return statement
        # SQLite has no type of times, and SQLAlchemy writes and compares texts with all digits.
        return re.sub(r"(\d\d:\d\d:\d\d)'", r"\1.000000'", statement)

    def insert(self, *rows: tuple[int, str]) -> None:
        for number, at in rows:
            self.run(f"INSERT INTO {{t}} (id, at, name) VALUES ({number}, '{at}', 'n{number}')")

    def fill(self, first: int, last: int) -> None:
        rows = ", ".join(
            f"({n}, '2024-01-01 00:00:{n // 100:02d}', 'n')" for n in range(first, last)
        )
        self.run(f"INSERT INTO {{t}} (id, at, name) VALUES {rows}")

    def analyze(self) -> None:
        """Let the database know how many rows there are."""
        if self.kind in ("postgresql", "mariadb"):
            self.run("ANALYZE {t}" if self.kind == "postgresql" else "ANALYZE TABLE {t}")

    def rounds(self, **options: Any) -> Rounds:
        delay = {} if options.get("mode") == "bulk" else self.delay
        return Rounds(**(self.options | delay | {"tables": self.table} | options))


@pytest.fixture(params=["postgresql", "mariadb", "sqlite", "sqlalchemy"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Target]:
    kind = request.param
    if kind == "postgresql":
        server = request.getfixturevalue("postgres")
        options = {"url": server.url, "password": postgres_server.PASSWORD}
        made = Target(kind, options, server.connect, "%s")
    elif kind == "mariadb":
        server = request.getfixturevalue("mariadb")
        options = {"url": server.url, "password": mariadb_server.PASSWORD}
        made = Target(kind, options, server.connect, "%s")
    else:
        file = tmp_path / "shop.db"
        scheme = "sqlite" if kind == "sqlite" else "sqlite+pysqlite"
        options = {"url": f"{scheme}:///{file}"}
        made = Target(kind, options, lambda: sqlite3.connect(file), "?")
    made.run(
        "DROP TABLE IF EXISTS {t}",
        "CREATE TABLE {t} (id BIGINT PRIMARY KEY, at TIMESTAMP NULL, name VARCHAR(20))",
    )
    yield made
    made.run("DROP TABLE {t}")
