"""MariaDB: rows by LOAD DATA LOCAL, straight into the table or through a temporary one, all at once."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pymysql
from pymysql.cursors import Cursor, SSCursor
from pyspark.sql.types import BinaryType, StructField

from penstock.errors import ConfigError, RefusedError
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
from penstock.sinks.jdbc.mariadb.files import OwnFilesOnly
from penstock.sinks.jdbc.mariadb.kinds import key_kind, name_of
from penstock.sinks.jdbc.phrases import MARKS_COLUMNS, Phrases

_SAY = Phrases("`")
_SETTINGS = (
    "SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION,NO_AUTO_VALUE_ON_ZERO'",
    "SET SESSION time_zone = '+00:00'",
    "SET SESSION innodb_lock_wait_timeout = 30",
    "SET SESSION lock_wait_timeout = 30",
)
_TRANSACTIONAL = ("InnoDB", "ROCKSDB")


class MariaDBSession(Session):
    """One transaction on one connection."""

    def __init__(self, connection: OwnFilesOnly) -> None:
        self._connection = connection
        for setting in _SETTINGS:
            self._do(setting)

    def _do(self, text: str, given: Sequence[Any] | None = None) -> Cursor:
        cursor = self._connection.cursor()
        cursor.execute(text, given)
        return cursor

    def alone(self) -> None:
        """Take a lock that ends with the connection."""
        if self._do("SELECT GET_LOCK('penstock', 30)").fetchone() != (1,):
            raise pymysql.OperationalError(1205, "another session makes tables since 30 seconds")

    def columns(self, table: Table) -> list[Found] | None:
        """Ask the information schema, and refuse a table that knows no transactions."""
        rows = self._do(_COLUMNS, [table.schema, table.name]).fetchall()
        engines = {engine for *_, engine in rows}
        if rows and not engines & set(_TRANSACTIONAL):
            raise ConfigError(
                f"the table {str(table)!r} is stored by {engines.pop()}, which has no transactions: "
                f"'ALTER TABLE {table} ENGINE = InnoDB', or write to another table"
            )
        return [Found(name, kind, bool(needed)) for name, kind, needed, _ in rows] or None

    def keys(self, table: Table) -> list[set[str]]:
        """Return the columns of each unique index."""
        found: dict[str, set[str]] = {}
        for index, column in self._do(_KEYS, [table.schema, table.name]).fetchall():
            found.setdefault(index, set()).add(column)
        return list(found.values())

    def make(self, table: Table, fields: Sequence[StructField], key: Sequence[str]) -> None:
        """Create the table, with a primary key for upsert; texts are told apart by every byte."""
        parts = [_column(field, key) for field in fields]
        if key:
            parts.append(f"PRIMARY KEY ({_SAY.names(key)})")
        self._do(f"CREATE TABLE {_SAY.table(table)} ({', '.join(parts)}) {_STORED}")

    def add(self, table: Table, field: StructField) -> None:
        """Add the column."""
        self._do(f"ALTER TABLE {_SAY.table(table)} ADD COLUMN {_column(field)}")

    def widen(self, table: Table, field: StructField) -> None:
        """Change the column's type."""
        self._do(f"ALTER TABLE {_SAY.table(table)} MODIFY COLUMN {_column(field)}")

    def make_marks(self, table: Table) -> None:
        """Create the table of the marks beside the target."""
        marks = _SAY.table(table.beside(MARKS))
        names = "pipeline VARCHAR(255) NOT NULL, target VARCHAR(255) NOT NULL"
        self._do(f"CREATE TABLE IF NOT EXISTS {marks} ({names}, {MARKS_COLUMNS}) {_STORED}")

    def claim(self, table: Table, pipeline: str, mark: Mark) -> bool:
        """Write the mark first: its row is locked from here on, so that a zombie has to wait."""
        marks = _among_values(_SAY.table(table.beside(MARKS)))
        self._do(_FIRST_CLAIM.format(marks=marks), [pipeline, table.name])
        claimed = self._do(_CLAIM.format(marks=marks), [*mark, pipeline, table.name, *mark])
        return claimed.rowcount == 1

    @contextmanager
    def loading(self, layout: Layout) -> Iterator[Put]:
        """Load each frame from a file: the driver reads nothing else."""
        if layout.staged:
            self._stage(layout)
        load = _load(layout)
        with tempfile.NamedTemporaryFile(prefix="penstock-", suffix=".csv") as file:
            self._connection.sends = file.name

            def put(frame: bytes) -> None:
                file.seek(0)
                file.truncate()
                file.write(frame)
                file.flush()
                self._all_taken(self._do(load, [file.name]))

            yield put

    def _all_taken(self, loaded: Cursor) -> None:
        """Refuse what was only warned of: a LOCAL load changes or drops rows that do not fit."""
        if loaded.warning_count:
            (_, _, said), *_ = self._do("SHOW WARNINGS LIMIT 1").fetchall()
            raise RefusedError(str(said))

    def _stage(self, layout: Layout) -> None:
        """Make a temporary table with the target's own types."""
        own = f"{_SAY.name(ORDER)} BIGINT, {_SAY.name(GONE)} BOOLEAN"
        columns, table = _SAY.names(layout.names), _SAY.table(layout.table)
        like = f"SELECT {columns} FROM {table} LIMIT 0"  # noqa: S608
        self._do(f"CREATE TEMPORARY TABLE {_SAY.name(STAGED)} ({own}) {_STORED} AS {like}")

    def settle(self, layout: Layout) -> None:
        """Let the newest row of each key take the place of the old one, or take it away."""
        changed = [_SAY.name(name) for name in layout.rest or layout.key]
        update = ", ".join(f"{name} = VALUES({name})" for name in changed)
        self._do(f"{_SAY.upsert(layout)} ON DUPLICATE KEY UPDATE {update}")
        if layout.deletes:
            same = " AND ".join(f"t.{_SAY.name(name)} = n.{_SAY.name(name)}" for name in layout.key)
            table, gone = _SAY.table(layout.table), _SAY.name(GONE)
            newest = _SAY.newest(layout)
            self._do(f"DELETE t FROM {table} t JOIN ({newest}) n ON {same} WHERE n.{gone}")

    def read(self, table: Table, names: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        """Return the rows as the server sends them."""
        query = f"SELECT {_SAY.names(names)} FROM {_SAY.table(table)}"  # noqa: S608 - quoted
        with self._connection.cursor(SSCursor) as cursor:
            cursor.execute(query)
            yield from cursor

    def commit(self) -> None:
        """Keep what was done."""
        self._connection.commit()


def _column(field: StructField, key: Sequence[str] = ()) -> str:
    kind = key_kind(field.dataType) if field.name in key else name_of(field.dataType)
    return f"{_SAY.name(field.name)} {kind}"


def _load(layout: Layout) -> str:
    """Return the statement; bytes come in hexadecimal and go through a variable."""
    coded = {field.name for field in layout.fields if isinstance(field.dataType, BinaryType)}
    targets, sets = [], []
    for at, name in enumerate(layout.sent):
        targets.append(f"@v{at}" if name in coded else _SAY.name(name))
        if name in coded:
            sets.append(f"{_SAY.name(name)} = UNHEX(@v{at})")
    into = _SAY.name(STAGED) if layout.staged else _SAY.table(layout.table)
    tail = f" SET {', '.join(sets)}" if sets else ""
    names = _among_values(", ".join(targets))
    return _LOAD.format(into=_among_values(into), columns=names) + _among_values(tail)


def _among_values(text: str) -> str:
    """Return a text for a statement with values, in which a per cent sign is a value's place."""
    return text.replace("%", "%%")


_STORED = "ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin"
_COLUMNS = """
SELECT c.column_name, c.column_type,
       c.is_nullable = 'NO' AND c.column_default IS NULL AND c.extra NOT LIKE '%%auto_increment%%',
       t.engine
FROM information_schema.columns c JOIN information_schema.tables t USING (table_schema, table_name)
WHERE table_schema = COALESCE(%s, DATABASE()) AND table_name = %s
ORDER BY c.ordinal_position
"""
_KEYS = """
SELECT index_name, column_name FROM information_schema.statistics
WHERE table_schema = COALESCE(%s, DATABASE()) AND table_name = %s AND NOT non_unique
"""
_FIRST_CLAIM = """
INSERT INTO {marks} (pipeline, target, epoch, batch, part) VALUES (%s, %s, -1, -1, -1)
ON DUPLICATE KEY UPDATE epoch = epoch
"""
_CLAIM = """
UPDATE {marks} SET epoch = %s, batch = %s, part = %s, written_at = CURRENT_TIMESTAMP
WHERE pipeline = %s AND target = %s AND (epoch, batch, part) < (%s, %s, %s)
"""
_LOAD = """
LOAD DATA LOCAL INFILE %s INTO TABLE {into} CHARACTER SET utf8mb4
FIELDS TERMINATED BY ',' OPTIONALLY ENCLOSED BY '"' ESCAPED BY '' LINES TERMINATED BY '\\n'
({columns})"""
