"""SQLite: a file on the driver's machine, written in one transaction of the one writer it allows."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

import pyarrow as pa
from pyspark.sql.types import BooleanType, DataType, LongType, StructField

from penstock.errors import ConfigError, RefusedError, TransientError
from penstock.pipeline import LastWrite
from penstock.sinks.database.database_api import (
    GONE,
    MARKS,
    ORDER,
    STAGED,
    ColumnInfo,
    Database,
    Form,
    Layout,
    Put,
    Session,
    Table,
    as_last_write,
)
from penstock.sinks.database.sql_dialect import MARKS_COLUMNS, SqlDialect
from penstock.sinks.database.sqlite.sqlite_values import KINDS, known, values
from penstock.sinks.database.type_map import textual
from penstock.sinks.fencing import covered_text

_SAY = SqlDialect('"')
_PATIENCE = 30.0
# SQLite's primary codes: busy, locked, I/O error, full, schema changed. Python 3.10 gives no codes.
_AWAY_CODES = {5, 6, 10, 13, 17}
_AWAY = (
    "database is locked",
    "database table is locked",
    "database schema is locked",
    "disk I/O error",
    "database or disk is full",
    "database schema has changed",
)


class SQLite(Database):
    """A database in a file."""

    @contextmanager
    def session(self) -> Iterator[SQLiteSession]:
        """Open the file and take its one right to write; closed on every path."""
        try:
            with closing(self._connect()) as connection:
                connection.execute("BEGIN IMMEDIATE")
                yield SQLiteSession(connection)
        except sqlite3.Error as error:
            raise self._translated(error) from None

    def _connect(self) -> sqlite3.Connection:
        file = self.address.database
        # Transactions are begun by hand; rows come from the relay's threads, one at a time.
        patience = float(self.address.options.get("timeout", _PATIENCE))
        connection = sqlite3.connect(
            file, timeout=patience, isolation_level=None, check_same_thread=False
        )
        connection.execute("PRAGMA journal_mode = WAL")
        # Rows that were reported as written must outlive a power cut, or they are gone for good.
        connection.execute("PRAGMA synchronous = FULL")
        return connection

    def _translated(self, error: sqlite3.Error) -> Exception:
        """Sort the error by its class and code."""
        said = str(error)
        if isinstance(error, (sqlite3.IntegrityError, sqlite3.DataError)):
            return RefusedError(said)
        if isinstance(error, sqlite3.OperationalError) and is_away(error):
            return TransientError(f"{self.address.url} is busy: {said}")
        if isinstance(error, sqlite3.DatabaseError):
            return ConfigError(
                f"the sink 'database' cannot work with {self.address.url}: {said}; the file must be a "
                "SQLite database, or not be there yet, in a folder that this user may write"
            )
        return error

    def known(self, kind: str, wanted: DataType) -> DataType | None:
        """Return the column's type as Spark has it, by SQLite's rules of affinity."""
        return known(kind, wanted)

    def form(self, _layout: Layout) -> Form:
        """Return Arrow's own form, with nested values as JSON and values that SQLite has."""
        return Form(textual, values)


class SQLiteSession(Session):
    """One transaction on one connection."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def alone(self) -> None:
        """Do nothing: a session of SQLite is the only one that writes."""

    def columns(self, table: Table) -> list[ColumnInfo] | None:
        """Ask the schema."""
        rows = self._info("table_info", table.name, table.schema)
        columns = [
            ColumnInfo(name, kind, bool(needed) and default is None and not key)
            for _, name, kind, needed, default, key in rows
        ]
        return columns or None

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
        """Create the table of the marks next to the target."""
        marks = _SAY.table(table.sibling(MARKS))
        columns = f"pipeline TEXT NOT NULL, target TEXT NOT NULL, {MARKS_COLUMNS}"
        self._connection.execute(f"CREATE TABLE IF NOT EXISTS {marks} ({columns})")

    def lock_mark(self, table: Table, pipeline: str) -> LastWrite | None:
        """Read the mark: a session of SQLite is the only one that writes."""
        asked = _MARK.format(marks=_SAY.table(table.sibling(MARKS)))
        return as_last_write(self._connection.execute(asked, [pipeline, table.name]).fetchone())

    def set_mark(self, table: Table, pipeline: str, write: LastWrite) -> None:
        """Insert or update the mark's row."""
        noted = _SET_MARK.format(marks=_SAY.table(table.sibling(MARKS)))
        given = [pipeline, table.name, *write.mark, covered_text(write)]
        self._connection.execute(noted, given)

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
        if layout.deletes:  # first, so that what is gone breaks no other unique index
            gone = f"SELECT {key} FROM ({_SAY.newest(layout)}) WHERE {_SAY.name(GONE)}"  # noqa: S608
            table = _SAY.table(layout.table)
            self._connection.execute(f"DELETE FROM {table} WHERE ({key}) IN ({gone})")  # noqa: S608
        if layout.updates:
            self._update(layout)
            return
        self._connection.execute(f"{_SAY.upsert(layout)} ON CONFLICT ({key}) DO {doing}")

    def _update(self, layout: Layout) -> None:
        changes = ", ".join(f"{_SAY.name(name)} = n.{_SAY.name(name)}" for name in layout.rest)
        if changes:
            self._connection.execute(
                f"UPDATE {_SAY.table(layout.table)} AS t SET {changes} "  # noqa: S608
                f"FROM ({_SAY.newest(layout)}) AS n WHERE {_SAY.same(layout)} AND {_SAY.kept(layout)}"
            )

    def read(self, table: Table, names: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        """Return the rows as SQLite steps through them."""
        query = f"SELECT {_SAY.names(names)} FROM {_SAY.table(table)}"  # noqa: S608 - quoted
        yield from self._connection.execute(query)

    def commit(self) -> None:
        """Keep what was done."""
        self._connection.execute("COMMIT")


def is_away(error: sqlite3.OperationalError) -> bool:
    """Return whether the file is locked or cannot be read now, and may be later."""
    code = getattr(error, "sqlite_errorcode", None)
    return str(error).startswith(_AWAY) if code is None else code & 0xFF in _AWAY_CODES


def _column(field: StructField) -> str:
    return f"{_SAY.name(field.name)} {KINDS.get(type(field.dataType), 'TEXT')}"


_MARK = "SELECT epoch, batch, part, ranges FROM {marks} WHERE pipeline = ? AND target = ?"
_SET_MARK = """
INSERT INTO {marks} (pipeline, target, epoch, batch, part, ranges) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (pipeline, target) DO UPDATE
SET epoch = excluded.epoch, batch = excluded.batch, part = excluded.part, ranges = excluded.ranges,
    written_at = CURRENT_TIMESTAMP
"""
