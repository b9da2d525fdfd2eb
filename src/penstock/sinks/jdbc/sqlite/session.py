"""SQLite: a file on the driver's machine, written in one transaction of the one writer it allows."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
from pyspark.sql.types import BooleanType, LongType, StructField

from penstock.errors import ConfigError
from penstock.pipeline import Mark
from penstock.sinks.jdbc.database import (
    GONE,
    MARKS,
    ORDER,
    STAGED,
    Found,
    Layout,
    Put,
    Session,
    Table,
)
from penstock.sinks.jdbc.phrases import MARKS_COLUMNS, Phrases
from penstock.sinks.jdbc.sqlite.values import KINDS

_SAY = Phrases('"')


class SQLiteSession(Session):
    """One transaction on one connection."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def alone(self) -> None:
        """Do nothing: a session of SQLite is the only one that writes."""

    def columns(self, table: Table) -> list[Found] | None:
        """Ask the schema."""
        rows = self._info("table_info", table.name, table.schema)
        found = [
            Found(name, kind, bool(needed) and default is None and not key)
            for _, name, kind, needed, default, key in rows
        ]
        return found or None

    def keys(self, table: Table) -> list[set[str]]:
        """Return the primary key's columns, and those of each whole unique index."""
        primary = {row[1] for row in self._info("table_info", table.name, table.schema) if row[5]}
        indexes = self._info("index_list", table.name, table.schema)
        unique = [index[1] for index in indexes if index[2] and not index[4]]
        return [
            primary,
            *({row[2] for row in self._info("index_info", name, table.schema)} for name in unique),
        ]

    def _info(self, what: str, name: str, schema: str | None) -> list[Any]:
        asked = f"SELECT * FROM pragma_{what}(?, ?)"  # noqa: S608 - a constant of this file
        return self._connection.execute(asked, [name, schema or "main"]).fetchall()

    def make(self, table: Table, fields: Sequence[StructField], key: Sequence[str]) -> None:
        """Create the table, with a primary key for upsert."""
        parts = [_column(field) + (" NOT NULL" if field.name in key else "") for field in fields]
        if key:
            parts.append(f"PRIMARY KEY ({_SAY.names(key)})")
        self._connection.execute(f"CREATE TABLE {_SAY.table(table)} ({', '.join(parts)})")

    def add(self, table: Table, field: StructField) -> None:
        """Add the column."""
        self._connection.execute(f"ALTER TABLE {_SAY.table(table)} ADD COLUMN {_column(field)}")

    def widen(self, table: Table, field: StructField) -> None:
        """Refuse: SQLite's types have no width, so whatever comes here does not fit."""
        raise ConfigError(
            f"SQLite cannot change the type of {field.name!r} in the table {str(table)!r}: "
            "cast it in a step, or write to another table"
        )

    def make_marks(self, table: Table) -> None:
        """Create the table of the marks beside the target."""
        marks = _SAY.table(table.beside(MARKS))
        columns = f"pipeline TEXT NOT NULL, target TEXT NOT NULL, {MARKS_COLUMNS}"
        self._connection.execute(f"CREATE TABLE IF NOT EXISTS {marks} ({columns})")

    def claim(self, table: Table, pipeline: str, mark: Mark) -> bool:
        """Write the mark, if it is greater than the one that is there."""
        marks = _SAY.table(table.beside(MARKS))
        claim = _CLAIM.format(marks=marks)
        return self._connection.execute(claim, [pipeline, table.name, *mark]).rowcount == 1

    @contextmanager
    def loading(self, layout: Layout) -> Iterator[Put]:
        """Insert the rows of each frame with one prepared statement."""
        if layout.staged:
            self._stage(layout)
        table = _SAY.name(STAGED) if layout.staged else _SAY.table(layout.table)
        marks = ", ".join("?" for _ in layout.sent)
        insert = f"INSERT INTO {table} ({_SAY.names(layout.sent)}) VALUES ({marks})"  # noqa: S608

        def put(frame: bytes) -> None:
            batch = pa.ipc.open_stream(frame).read_next_batch()
            columns = [column.to_pylist() for column in batch.columns]
            self._connection.executemany(insert, zip(*columns, strict=True))

        yield put

    def _stage(self, layout: Layout) -> None:
        fields = [*layout.fields, StructField(ORDER, LongType()), StructField(GONE, BooleanType())]
        columns = ", ".join(map(_column, fields))
        self._connection.execute(f"CREATE TEMPORARY TABLE {_SAY.name(STAGED)} ({columns})")

    def settle(self, layout: Layout) -> None:
        """Let the newest row of each key take the place of the old one, or take it away."""
        key, rest = _SAY.names(layout.key), [_SAY.name(name) for name in layout.rest]
        update = ", ".join(f"{name} = excluded.{name}" for name in rest)
        doing = f"UPDATE SET {update}" if rest else "NOTHING"
        self._connection.execute(f"{_SAY.upsert(layout)} ON CONFLICT ({key}) DO {doing}")
        if layout.deletes:
            gone = f"SELECT {key} FROM ({_SAY.newest(layout)}) WHERE {_SAY.name(GONE)}"  # noqa: S608
            table = _SAY.table(layout.table)
            self._connection.execute(f"DELETE FROM {table} WHERE ({key}) IN ({gone})")  # noqa: S608

    def read(self, table: Table, names: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        """Return the rows as SQLite steps through them."""
        query = f"SELECT {_SAY.names(names)} FROM {_SAY.table(table)}"  # noqa: S608 - quoted
        yield from self._connection.execute(query)

    def commit(self) -> None:
        """Keep what was done."""
        self._connection.execute("COMMIT")


def _column(field: StructField) -> str:
    return f"{_SAY.name(field.name)} {KINDS.get(type(field.dataType), 'TEXT')}"


_CLAIM = """
INSERT INTO {marks} (pipeline, target, epoch, batch, part) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (pipeline, target) DO UPDATE
SET epoch = excluded.epoch, batch = excluded.batch, part = excluded.part, written_at = CURRENT_TIMESTAMP
WHERE (epoch, batch, part) < (excluded.epoch, excluded.batch, excluded.part)
"""
