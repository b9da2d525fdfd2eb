"""The three databases of the sink jdbc, as tests see them: options for the sink, and SQL to look with."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.services.mariadb import PASSWORD as MARIADB_PASSWORD
from tests.services.mariadb import MariaDb
from tests.services.postgres import PASSWORD, Postgres

from penstock.pipeline import Batch, Delivery, Opening
from penstock.sinks.jdbc.sink import JdbcSink

EXACT = Delivery.EXACTLY_ONCE


@dataclass
class Place:
    """One database, and a table name of the test's own in it."""

    kind: str
    server: Any
    table: str
    spark: Any
    options: dict[str, Any] = field(default_factory=dict)

    def ask(self, text: str) -> list[tuple[Any, ...]]:
        """Run a statement with `{t}` for the table; return its rows, and keep what it did."""
        with closing(self._connect()) as session:
            cursor = session.cursor()
            cursor.execute(text.format(t=self.table))
            rows = cursor.fetchall() if cursor.description else []
            return [tuple(row) for row in rows]

    def _connect(self) -> Any:
        if self.kind == "sqlite":
            return sqlite3.connect(self.server, isolation_level=None)
        return self.server.connect()

    def sink(self, **more: Any) -> JdbcSink:
        """Return the sink for this table."""
        return JdbcSink(**{**self.options, "table": self.table, **more})

    def prepared(self, schema: str, **more: Any) -> JdbcSink:
        """Return the sink after its prepare."""
        sink = self.sink(**more)
        sink.prepare(self.opening(schema))
        return sink

    def opening(self, schema: str, pipeline: str = "p") -> Opening:
        """Return what a sink is told before the first record."""
        rows = self.spark.createDataFrame([], schema)
        return Opening(self.spark, rows.schema, pipeline, None, EXACT)  # type: ignore[arg-type]

    def batch(self, schema: str, rows: list[Any], batch_id: int = 0, **more: Any) -> Batch:
        """Return rows as a hand-over."""
        frame = self.spark.createDataFrame(rows, schema).coalesce(1)
        return self.of(frame, batch_id, **more)

    def of(self, rows: Any, batch_id: int = 0, **more: Any) -> Batch:
        """Return a DataFrame as a hand-over."""
        given = {"pipeline": "p", "epoch": 0, "delivery": EXACT, "connection": None, **more}
        return Batch(rows=rows, id=batch_id, **given)


def place(kind: str, server: Any, table: str, spark: Any, folder: Path) -> Place:
    """Return the database of this kind."""
    if isinstance(server, Postgres):
        options = {"url": server.url, "password": PASSWORD}
    elif isinstance(server, MariaDb):
        options = {"url": server.url, "password": MARIADB_PASSWORD}
    else:
        server = str(folder / "data.db")
        options = {"url": f"sqlite:///{server}?timeout=0.5"}
    return Place(kind, server, table, spark, options)
