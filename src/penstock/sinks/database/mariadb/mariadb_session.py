"""MariaDB: rows by LOAD DATA LOCAL, straight into the table or through a temporary one, all at once."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pymysql
from pymysql.connections import MySQLResult
from pymysql.cursors import Cursor, SSCursor
from pyspark.sql.types import BinaryType, StructField

from penstock.errors import ConfigError, RefusedError
from penstock.pipeline import LastWrite
from penstock.sinks.database.database_api import (
    GONE,
    MARKS,
    ORDER,
    STAGED,
    ColumnInfo,
    Layout,
    Put,
    Session,
    Table,
    as_last_write,
)
from penstock.sinks.database.mariadb.mariadb_types import KINDS, key_kind
from penstock.sinks.database.sql_dialect import MARKS_COLUMNS, SqlDialect
from penstock.sinks.fencing import covered_text

_SAY = SqlDialect("`")
_SETTINGS = (
    "SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION,NO_AUTO_VALUE_ON_ZERO'",
    "SET SESSION time_zone = '+00:00'",
    "SET SESSION innodb_lock_wait_timeout = 30",
    "SET SESSION lock_wait_timeout = 30",
)
_TRANSACTIONAL = ("InnoDB", "ROCKSDB")


class OwnFilesOnly(pymysql.Connection):
    """A connection that sends the one file of `sends`, whatever the server asks for.

    In MariaDB's protocol it is the server that names the file of a LOAD DATA LOCAL: one that was taken
    over could ask for any file of this machine.
    """

    sends: str | None = None
    # Set by the base class once the connection is encrypted.
    _secure: bool

    def _read_query_result(self, unbuffered: bool = False) -> Any:
        """Read the answer as the base class does, with a result that looks at the file's name."""
        self._result = None
        result = _Result(self)
        if unbuffered:
            result.init_unbuffered_query()
        else:
            result.read()
        self._result = result
        if result.server_status is not None:
            self.server_status = result.server_status
        return result.affected_rows


class _Result(MySQLResult):
    connection: Any

    def _read_load_local_packet(self, first_packet: Any) -> None:
        asked = first_packet.get_all_data()[1:].decode(errors="replace")
        if asked != self.connection.sends:
            self.connection._force_close()
            raise pymysql.InternalError(
                f"the server asked for the file {asked!r} instead of the one that is loaded; "
                "the connection was closed"
            )
        super()._read_load_local_packet(first_packet)  # type: ignore[misc]


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
            raise pymysql.OperationalError(
                1205, "another session has been creating tables for 30 seconds"
            )

    def columns(self, table: Table) -> list[ColumnInfo] | None:
        """Query the information schema, and refuse a table without transactions."""
        rows = self._do(_COLUMNS, [table.schema, table.name]).fetchall()
        engines = {engine for *_, engine in rows}
        if rows and not engines & set(_TRANSACTIONAL):
            raise ConfigError(
                f"the table {str(table)!r} is stored by {engines.pop()}, which has no transactions: "
                f"'ALTER TABLE {table} ENGINE = InnoDB', or write to another table"
            )
        return [ColumnInfo(name, kind, bool(needed)) for name, kind, needed, _ in rows] or None

    def keys(self, table: Table) -> list[set[str]]:
        """Return the columns of each unique index."""
        indexes: dict[str, set[str]] = {}
        for index, column in self._do(_KEYS, [table.schema, table.name]).fetchall():
            indexes.setdefault(index, set()).add(column)
        return list(indexes.values())

    def make(self, table: Table, fields: Sequence[StructField], key: Sequence[str]) -> None:
        """Create the table, with a primary key for upsert; texts are compared by every byte."""
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
        """Create the table of the marks next to the target."""
        marks = _SAY.table(table.sibling(MARKS))
        names = "pipeline VARCHAR(255) NOT NULL, target VARCHAR(255) NOT NULL"
        self._do(f"CREATE TABLE IF NOT EXISTS {marks} ({names}, {MARKS_COLUMNS}) {_STORED}")

    def lock_mark(self, table: Table, pipeline: str) -> LastWrite | None:
        """Lock the mark's row, inserted where it is missing, so that a zombie has to wait."""
        self._of_mark(_FIRST_MARK, table, [pipeline, table.name])
        return as_last_write(self._of_mark(_MARK, table, [pipeline, table.name]).fetchone())

    def set_mark(self, table: Table, pipeline: str, write: LastWrite) -> None:
        """Update the mark's row."""
        given = [*write.mark, covered_text(write), pipeline, table.name]
        self._of_mark(_SET_MARK, table, given)

    def _of_mark(self, text: str, table: Table, given: Sequence[Any]) -> Cursor:
        return self._do(text.format(marks=_among_values(_SAY.table(table.sibling(MARKS)))), given)

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
                if self._do(load, [file.name]).warning_count:
                    # Only warned of: a LOCAL load changes or drops rows that do not fit.
                    (_, _, said), *_ = self._do("SHOW WARNINGS LIMIT 1").fetchall()
                    raise RefusedError(str(said))

            yield put

    def _stage(self, layout: Layout) -> None:
        """Make a temporary table with the target's own types, all with nulls: a delete has only a key."""
        own = f"{_SAY.name(ORDER)} BIGINT, {_SAY.name(GONE)} BOOLEAN"
        columns = ", ".join(f"t.{_SAY.name(name)}" for name in layout.names)
        table = _SAY.table(layout.table)
        # Columns of an outer join have nulls.
        like = f"SELECT {columns} FROM (SELECT 1) AS one LEFT JOIN {table} AS t ON FALSE LIMIT 0"  # noqa: S608
        self._do(f"CREATE TEMPORARY TABLE {_SAY.name(STAGED)} ({own}) {_STORED} AS {like}")

    def settle(self, layout: Layout) -> None:
        """Let the newest row of each key take the place of the old one, or take it away."""
        table, newest = _SAY.table(layout.table), _SAY.newest(layout)
        same = _SAY.same(layout)
        if layout.deletes:  # first, so that what is gone breaks no other unique index
            gone = _SAY.name(GONE)
            self._do(f"DELETE t FROM {table} t JOIN ({newest}) n ON {same} WHERE n.{gone}")
        changed = [_SAY.name(name) for name in layout.rest or layout.key]
        if layout.updates:
            update = ", ".join(f"t.{name} = n.{name}" for name in changed)
            joined = f"UPDATE {table} t JOIN ({newest}) n ON {same}"
            self._do(f"{joined} SET {update} WHERE {_SAY.kept(layout)}")
            return
        if all(key == set(layout.key) for key in self.keys(layout.table)):
            update = ", ".join(f"{name} = VALUES({name})" for name in changed)
            self._do(f"{_SAY.upsert(layout)} ON DUPLICATE KEY UPDATE {update}")
            return
        # ON DUPLICATE KEY takes a row for its own that agrees in any unique index, not only in the key.
        update = ", ".join(f"t.{name} = n.{name}" for name in changed)
        self._do(f"UPDATE {table} t JOIN ({newest}) n ON {same} SET {update}")  # noqa: S608
        known = f"SELECT 1 FROM {table} AS t WHERE {same}"  # noqa: S608
        self._do(f"{_SAY.upsert(layout)} AND NOT EXISTS ({known})")

    def read(self, table: Table, names: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        """Return the rows as the server sends them."""
        kinds = {column.name.lower(): column.kind for column in self.columns(table) or ()}
        # The text of a FLOAT has six digits; as a DOUBLE it has all.
        wanted = ", ".join(
            _SAY.name(name) + (" + 0e0" if kinds.get(name.lower(), "").startswith("float") else "")
            for name in names
        )
        query = f"SELECT {wanted} FROM {_SAY.table(table)}"  # noqa: S608 - quoted
        with self._connection.cursor(SSCursor) as cursor:
            cursor.execute(query)
            yield from cursor

    def commit(self) -> None:
        """Keep what was done."""
        self._connection.commit()


def _column(field: StructField, key: Sequence[str] = ()) -> str:
    kind = key_kind(field.dataType) if field.name in key else KINDS.name(field.dataType)
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
_MARK = """
SELECT epoch, batch, part, ranges FROM {marks} WHERE pipeline = %s AND target = %s FOR UPDATE
"""
_FIRST_MARK = """
INSERT INTO {marks} (pipeline, target, epoch, batch, part) VALUES (%s, %s, -1, -1, -1)
ON DUPLICATE KEY UPDATE epoch = epoch
"""
_SET_MARK = """
UPDATE {marks} SET epoch = %s, batch = %s, part = %s, ranges = %s, written_at = CURRENT_TIMESTAMP
WHERE pipeline = %s AND target = %s
"""
_LOAD = """
LOAD DATA LOCAL INFILE %s INTO TABLE {into} CHARACTER SET utf8mb4
FIELDS TERMINATED BY ',' OPTIONALLY ENCLOSED BY '"' ESCAPED BY '' LINES TERMINATED BY '\\n'
({columns})"""
