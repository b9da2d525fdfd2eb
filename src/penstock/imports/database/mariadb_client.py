"""MariaDB and MySQL: rows through a cursor that stays on the server, as texts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

import pyarrow as pa
import pymysql
from pymysql.constants import ER, FIELD_TYPE, FLAG
from pymysql.cursors import SSCursor

from penstock.errors import ConfigError, TransientError
from penstock.imports.database.database_client import (
    ROWS_AT_ONCE,
    SOURCE,
    PercentDialect,
    SqlClient,
)
from penstock.imports.database.table_range import (
    INCREMENTING,
    OrderColumn,
    Range,
    Relation,
    Rows,
    SourceColumn,
    Value,
)
from penstock.imports.database.text_columns import decimal_type, text_column
from penstock.sinks.database.address import Address
from penstock.sinks.database.database_api import Table
from penstock.sinks.database.mariadb.mariadb_database import MariaDB, translated

_BINARY = 63
_SETTINGS = (
    "SET SESSION TRANSACTION READ ONLY",
    "SET time_zone = '+00:00'",
)
_TYPES = {
    FIELD_TYPE.TINY: pa.int32(),
    FIELD_TYPE.SHORT: pa.int32(),
    FIELD_TYPE.INT24: pa.int32(),
    FIELD_TYPE.YEAR: pa.int32(),
    FIELD_TYPE.LONG: pa.int64(),
    FIELD_TYPE.LONGLONG: pa.int64(),
    FIELD_TYPE.FLOAT: pa.float32(),
    FIELD_TYPE.DOUBLE: pa.float64(),
    FIELD_TYPE.DATE: pa.date32(),
    FIELD_TYPE.DATETIME: pa.timestamp("us"),
    FIELD_TYPE.TIMESTAMP: pa.timestamp("us", "UTC"),
    FIELD_TYPE.BIT: pa.binary(),
    FIELD_TYPE.GEOMETRY: pa.binary(),
}
_TEXTS = {
    FIELD_TYPE.VAR_STRING, FIELD_TYPE.STRING, FIELD_TYPE.VARCHAR, FIELD_TYPE.BLOB,
    FIELD_TYPE.TINY_BLOB, FIELD_TYPE.MEDIUM_BLOB, FIELD_TYPE.LONG_BLOB,
}  # fmt: skip
_NOT_UNDERSTOOD = (ER.PARSE_ERROR, ER.BAD_FIELD_ERROR, ER.DUP_FIELDNAME, 4161, 1305)


class MariaDBClient(SqlClient):
    """A connection to MariaDB 10.5 or newer, or MySQL 8; each statement is a transaction of its own."""

    dialect = PercentDialect("`")
    # Only an administrator may see the transactions of others.
    default_delay = 10.0

    def __init__(self, address: Address) -> None:
        self._address = address
        with self._translated():
            self._connection = MariaDB(address).connect()
            self._connection.autocommit(True)
            # Values as texts: nothing is lost, and Arrow reads whole columns of them.
            self._connection.decoders = {}
            for setting in _SETTINGS:
                self._connection.query(setting)

    def close(self) -> None:
        """Close the connection, also in the middle of an answer."""
        if self._connection.open:
            self._connection._force_close()  # type: ignore[attr-defined]

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except pymysql.MySQLError as error:
            if error.args and error.args[0] in _NOT_UNDERSTOOD:
                said = self._address.masked(str(error.args[-1]))
                raise ConfigError(
                    f"the server refuses the statement: {said}; check 'query'"
                ) from None
            raise translated(error, self._address, SOURCE) from None

    def ask(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return all rows of a statement."""
        with self._translated(), self._connection.cursor() as cursor:
            cursor.execute(statement, list(values))
            return list(cursor.fetchall())

    def tables(self) -> list[Table]:
        """Ask the schema."""
        found = self.ask(
            "SELECT table_schema, table_name FROM information_schema.tables WHERE table_schema NOT IN "
            "('information_schema', 'mysql', 'performance_schema', 'sys') ORDER BY 1, 2"
        )
        return [Table(name, schema) for schema, name in found]

    def default_schema(self) -> str:
        """Return the database of the address."""
        return self._address.database

    def columns(self, relation: Relation) -> list[SourceColumn]:
        """Run the query without rows, and look at the description."""
        with self._translated(), self._connection.cursor() as cursor:
            cursor.execute(f"SELECT * FROM {self.origin(relation)} LIMIT 0", [])  # noqa: S608
            fields = cursor._result.fields  # type: ignore[attr-defined]
        return [_column(field) for field in fields]

    def primary_key(self, table: Table) -> tuple[str, ...]:
        """Ask the schema."""
        found = self.ask(
            "SELECT column_name FROM information_schema.key_column_usage WHERE table_schema = %s AND "
            "table_name = %s AND constraint_name = 'PRIMARY' ORDER BY ordinal_position",
            [table.schema or self._address.database, table.name],
        )
        return tuple(name for (name,) in found)

    def about_rows(self, table: Table) -> int:
        """Ask for the estimate of the storage engine."""
        found = self.ask(
            "SELECT coalesce(table_rows, 0) FROM information_schema.tables "
            "WHERE table_schema = %s AND table_name = %s",
            [table.schema or self._address.database, table.name],
        )
        return int(found[0][0]) if found else 0

    def now(self) -> datetime:
        """Ask the server."""
        ((now,),) = self.ask("SELECT UTC_TIMESTAMP(6)")
        return datetime.fromisoformat(str(now))

    def plain(self, column: OrderColumn, value: Any) -> Value:
        """Return whole numbers as such, all else as text."""
        return int(value) if column.role == INCREMENTING else str(value)

    def rows(
        self, relation: Relation, columns: Sequence[SourceColumn], span: Range
    ) -> Iterator[Rows]:
        """Fetch the rows of a statement many at a time; they wait on the server."""
        where, values = self.condition(span)
        # The text of a FLOAT has six digits; as a DOUBLE it has all.
        wanted = [
            self.dialect.name(each.name) + (" + 0e0" if pa.types.is_float32(each.type) else "")
            for each in columns
        ]
        wanted += self.shown_order(span)
        statement = (
            f"SELECT {', '.join(wanted)} FROM {self.origin(relation)}{where}{self.ordered(span)}"  # noqa: S608
        )
        done = False
        try:
            with self._translated():
                cursor = self._connection.cursor(SSCursor)
                self._execute(cursor, statement, values)
                while found := cursor.fetchmany(ROWS_AT_ONCE):
                    lists = [list(column) for column in zip(*found, strict=True)]
                    last = self.position_values(span, found[-1][len(columns) :])
                    yield Rows(lists[: len(columns)], len(found), last)
                cursor.close()
            done = True
        finally:
            if not done:  # the rest of the rows is still on its way
                self.close()

    def _execute(self, cursor: SSCursor, statement: str, values: list[Value]) -> None:
        try:
            cursor.execute(statement, values)
        except pymysql.OperationalError as error:
            if error.args[0] == ER.BAD_FIELD_ERROR:
                raise TransientError(
                    f"the columns changed before they were read: {error.args[1]}"
                ) from None
            raise


def _moments(values: list[str | None]) -> pa.Array:
    """Return times of a session in UTC, which have no zone in their texts."""
    return pa.array(values, pa.string()).cast(pa.timestamp("us")).cast(pa.timestamp("us", "UTC"))


def _column(field: Any) -> SourceColumn:
    kind, name = field.type_code, field.name
    if kind in (FIELD_TYPE.DECIMAL, FIELD_TYPE.NEWDECIMAL):
        signs = (field.scale > 0) + (not field.flags & FLAG.UNSIGNED)
        return text_column(name, decimal_type(field.length - signs, field.scale))
    if kind == FIELD_TYPE.LONGLONG and field.flags & FLAG.UNSIGNED:
        return text_column(name, pa.decimal128(20, 0))
    type_ = _TYPES.get(kind, pa.string())
    if pa.types.is_binary(type_) or (kind in _TEXTS and field.charsetnr == _BINARY):
        return SourceColumn(name, pa.binary(), partial(pa.array, type=pa.binary()))
    column = text_column(name, type_)
    if kind == FIELD_TYPE.TIMESTAMP:
        return replace(column, read=_moments)
    # Their values are ordered by number and compared by text.
    is_listed = bool(field.flags & (FLAG.ENUM | FLAG.SET))
    return replace(column, is_ordered=False) if is_listed else column
