"""The databases of the sink database, as tests see them: options of the sink, and SQL to look with."""

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
from penstock.sinks.database.database_sink import DatabaseSink

EXACT = Delivery.EXACTLY_ONCE


@dataclass
class DatabaseTable:
    """One database, and a table name of the test's own in it."""

    kind: str
    server: Any
    table: str
    spark: Any
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def delivery(self) -> Delivery:
        """Return the strongest delivery of the database."""
        return Delivery.AT_LEAST_ONCE if self.kind == "dialect" else EXACT

    def ask(self, text: str) -> list[tuple[Any, ...]]:
        """Run a statement with `{t}` for the table; return its rows, and keep what it did."""
        with closing(self._connect()) as session:
            cursor = session.cursor()
            cursor.execute(text.format(t=self.table))
            rows = cursor.fetchall() if cursor.description else []
            return [tuple(row) for row in rows]

    def _connect(self) -> Any:
        if self.kind in ("sqlite", "dialect"):
            return sqlite3.connect(self.server, isolation_level=None)
        return self.server.connect()

    def sink(self, **more: Any) -> DatabaseSink:
        """Return the sink for this table."""
        return DatabaseSink(**{**self.options, "table": self.table, **more})

    def prepared(self, schema: str, **more: Any) -> Any:
        """Return the writer after its prepare."""
        writer = self.open(self.sink(**more), self.delivery)
        writer.prepare(self.schema(schema))
        return writer

    def open(self, sink: DatabaseSink, delivery: Delivery = EXACT) -> Any:
        """Return the writer of a sink."""
        return sink.open(Opening(self.spark, "p", None, delivery))  # type: ignore[arg-type]

    def schema(self, columns: str) -> Any:
        """Return columns as Spark has them."""
        return self.spark.createDataFrame([], columns).schema

    def batch(self, schema: str, rows: list[Any], batch_id: int = 0, **more: Any) -> Batch:
        """Return rows as a batch."""
        frame = self.spark.createDataFrame(rows, schema).coalesce(1)
        return self.of(frame, batch_id, **more)

    def of(self, rows: Any, batch_id: int = 0, **more: Any) -> Batch:
        """Return a DataFrame as a batch."""
        given = {"pipeline": "p", "epoch": 0, "delivery": self.delivery, "connection": None, **more}
        return Batch(rows=rows, id=batch_id, **given)


def database_table(kind: str, server: Any, table: str, spark: Any, folder: Path) -> DatabaseTable:
    """Return the database of this kind."""
    if isinstance(server, Postgres):
        options = {"url": server.url, "password": PASSWORD}
    elif isinstance(server, MariaDb):
        options = {"url": server.url, "password": MARIADB_PASSWORD}
    elif kind == "dialect":
        server = str(folder / "data.db")
        options = {"url": f"sqlite+pysqlite:///{server}"}
    else:
        server = str(folder / "data.db")
        options = {"url": f"sqlite:///{server}?timeout=0.5"}
    return DatabaseTable(kind, server, table, spark, options)
