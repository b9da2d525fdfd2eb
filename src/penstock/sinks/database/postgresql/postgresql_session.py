"""PostgreSQL: rows by COPY, straight into the table or through a temporary one, in one transaction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg import sql
from psycopg.sql import Composable
from pyspark.sql.types import StructField

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
from penstock.sinks.database.postgresql.binary import HEADER, TRAILER
from penstock.sinks.database.postgresql.postgresql_types import KINDS, native
from penstock.sinks.fencing import covered_text

# Held while tables are made or changed: two pipelines may start at the same moment.
_LOCK = 0x70656E73746F636B


class PostgreSQLSession(Session):
    """One transaction on one connection."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection

    def alone(self) -> None:
        """Take a lock that ends with the transaction."""
        self._connection.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])

    def columns(self, table: Table) -> list[ColumnInfo] | None:
        """Ask the catalog."""
        name = _name(table).as_string(self._connection)
        if self._connection.execute("SELECT to_regclass(%s)", [name]).fetchone() == (None,):
            return None
        rows = self._connection.execute(_COLUMNS, [name]).fetchall()
        return [ColumnInfo(*row) for row in rows]

    def keys(self, table: Table) -> list[set[str]]:
        """Return the columns of each whole, immediate unique index."""
        name = _name(table).as_string(self._connection)
        return [set(columns) for (columns,) in self._connection.execute(_KEYS, [name])]

    def make(self, table: Table, fields: Sequence[StructField], key: Sequence[str]) -> None:
        """Create the table, with a primary key for upsert."""
        parts = [_column(field) for field in fields]
        if key:
            parts.append(sql.SQL("PRIMARY KEY ({})").format(_list(key)))
        self._do("CREATE TABLE {} ({})", _name(table), sql.SQL(", ").join(parts))

    def add(self, table: Table, field: StructField) -> None:
        """Add the column."""
        self._do("ALTER TABLE {} ADD COLUMN {}", _name(table), _column(field))

    def widen(self, table: Table, field: StructField) -> None:
        """Change the column's type; PostgreSQL rewrites the table if it must."""
        kind = sql.SQL(KINDS.name(field.dataType))
        column = sql.Identifier(field.name)
        self._do("ALTER TABLE {} ALTER COLUMN {} TYPE {}", _name(table), column, kind)

    def make_marks(self, table: Table) -> None:
        """Create the table of the marks next to the target."""
        self._do(_MAKE_MARKS, _name(table.sibling(MARKS)))

    def lock_mark(self, table: Table, pipeline: str) -> LastWrite | None:
        """Lock the mark's row, inserted where it is missing, so that a zombie has to wait."""
        marks, given = _name(table.sibling(MARKS)), [pipeline, table.name]
        if (row := self._do(_MARK, marks, given=given).fetchone()) is None:
            self._do(_FIRST_MARK, marks, given=given)
            row = self._do(_MARK, marks, given=given).fetchone()
        return as_last_write(row)

    def set_mark(self, table: Table, pipeline: str, write: LastWrite) -> None:
        """Update the mark's row."""
        given = [*write.mark, covered_text(write), pipeline, table.name]
        self._do(_SET_MARK, _name(table.sibling(MARKS)), given=given)

    @contextmanager
    def loading(self, layout: Layout) -> Iterator[Put]:
        """Take the rows by COPY."""
        if layout.staged:
            self._stage(layout)
        table = sql.Identifier(STAGED) if layout.staged else _name(layout.table)
        coded = native(layout)
        how = sql.SQL("binary" if coded else "csv")
        copy = sql.SQL(_COPY).format(table, _list(layout.sent), how)
        with self._connection.cursor().copy(copy) as rows:
            if coded:
                rows.write(HEADER)
            yield rows.write
            if coded:
                rows.write(TRAILER)

    def _stage(self, layout: Layout) -> None:
        """Make a temporary table with the target's own types."""
        staged, table = sql.Identifier(STAGED), _name(layout.table)
        order, gone = sql.Identifier(ORDER), sql.Identifier(GONE)
        self._do(_STAGE, staged, _list(layout.names), order, gone, table)

    def settle(self, layout: Layout) -> None:
        """Let the newest row of each key take the place of the old one, or take it away."""
        self._connection.execute("SET LOCAL work_mem = '64MB'")
        newest = sql.SQL(_NEWEST).format(
            _list(layout.key), sql.Identifier(STAGED), _list(layout.key), sql.Identifier(ORDER)
        )
        kept = (
            sql.SQL("NOT n.{}").format(sql.Identifier(GONE)) if layout.deletes else sql.SQL("true")
        )
        table, names = _name(layout.table), _list(layout.names)
        same = sql.SQL(" AND ").join(
            sql.SQL("t.{0} = n.{0}").format(sql.Identifier(name)) for name in layout.key
        )
        if layout.deletes:  # first, so that what is gone breaks no other unique index
            self._do(_DELETE, table, newest, sql.Identifier(GONE), same)
        if layout.updates:
            self._update(layout, newest, same, kept)
            return
        changes = [
            sql.SQL("{0} = EXCLUDED.{0}").format(sql.Identifier(name)) for name in layout.rest
        ]
        update = sql.SQL("UPDATE SET {}").format(sql.SQL(", ").join(changes))
        doing = update if changes else sql.SQL("NOTHING")
        self._do(_UPSERT, table, names, names, newest, kept, _list(layout.key), doing)

    def _update(self, layout: Layout, newest: Composable, *conditions: Composable) -> None:
        changes = [sql.SQL("{0} = n.{0}").format(sql.Identifier(name)) for name in layout.rest]
        if changes:
            changed = sql.SQL(", ").join(changes)
            where = sql.SQL(" AND ").join(conditions)
            self._do(_UPDATE, _name(layout.table), changed, newest, where)

    def read(self, table: Table, names: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        """Return the rows by a cursor on the server, which sends some at a time."""
        query = sql.SQL("SELECT {} FROM {}").format(_list(names), _name(table))
        with self._connection.cursor(name="penstock_read") as cursor:
            cursor.itersize = 10_000
            yield from cursor.execute(query)

    def commit(self) -> None:
        """Keep what was done."""
        self._connection.commit()

    def _do(
        self, text: str, *parts: sql.Composable, given: Sequence[Any] | None = None
    ) -> psycopg.Cursor[Any]:
        # The texts are the constants of this file; what varies is quoted by the driver.
        return self._connection.execute(sql.SQL(text).format(*parts), given)


def _name(table: Table) -> sql.Identifier:
    return sql.Identifier(*([table.schema] if table.schema else []), table.name)


def _list(names: Sequence[str]) -> sql.Composed:
    return sql.SQL(", ").join(map(sql.Identifier, names))


def _column(field: StructField) -> sql.Composed:
    kind = sql.SQL(KINDS.name(field.dataType))
    return sql.SQL("{} {}").format(sql.Identifier(field.name), kind)


_COLUMNS = """
SELECT attname, CASE WHEN t.typtype = 'e' THEN 'enum' ELSE format_type(atttypid, atttypmod) END,
       attnotnull AND NOT atthasdef AND attidentity = ''
FROM pg_attribute JOIN pg_type t ON t.oid = atttypid
WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped
ORDER BY attnum
"""
_KEYS = """
SELECT array_agg(a.attname::text)
FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid
     AND a.attnum = ANY ((i.indkey::int2[])[0:i.indnkeyatts - 1])
WHERE i.indrelid = to_regclass(%s) AND i.indisunique AND i.indimmediate AND i.indisvalid
      AND i.indpred IS NULL AND i.indexprs IS NULL
GROUP BY i.indexrelid
"""
_MAKE_MARKS = """
CREATE TABLE {} (
  pipeline text, target text, epoch bigint NOT NULL, batch bigint NOT NULL, part bigint NOT NULL,
  ranges text, written_at timestamp with time zone NOT NULL DEFAULT now(), PRIMARY KEY (pipeline, target))
"""
_MARK = "SELECT epoch, batch, part, ranges FROM {} WHERE pipeline = %s AND target = %s FOR UPDATE"
_FIRST_MARK = """
INSERT INTO {} (pipeline, target, epoch, batch, part) VALUES (%s, %s, -1, -1, -1)
ON CONFLICT DO NOTHING
"""
_SET_MARK = """
UPDATE {} SET epoch = %s, batch = %s, part = %s, ranges = %s, written_at = now()
WHERE pipeline = %s AND target = %s
"""
_COPY = "COPY {} ({}) FROM STDIN (FORMAT {})"
_STAGE = """
CREATE TEMPORARY TABLE {} ON COMMIT DROP AS
SELECT {}, 0::bigint AS {}, false AS {} FROM {} WITH NO DATA
"""
_NEWEST = "SELECT DISTINCT ON ({}) * FROM {} ORDER BY {}, {} DESC"
_UPSERT = "INSERT INTO {} ({}) SELECT {} FROM ({}) n WHERE {} ON CONFLICT ({}) DO {}"
_UPDATE = "UPDATE {} t SET {} FROM ({}) n WHERE {}"
_DELETE = "DELETE FROM {} t USING ({}) n WHERE n.{} AND {}"
