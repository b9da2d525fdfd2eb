"""SQLite: a file that is opened for reading. One writer at a time: its commits are in order."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock.errors import ConfigError, TransientError
from penstock.imports.database.database_client import ROWS_AT_ONCE, SqlClient
from penstock.imports.database.table_range import (
    OrderColumn,
    Range,
    Relation,
    Rows,
    SourceColumn,
    Value,
)
from penstock.sinks.database.address import Address
from penstock.sinks.database.database_api import Table
from penstock.sinks.database.sql_dialect import SqlDialect
from penstock.sinks.database.sqlite.sqlite_database import is_away

_PATIENCE = 30.0
_LOOKED_AT = 1000
_KINDS = {
    frozenset({"integer"}): pa.int64(),
    frozenset({"real"}): pa.float64(),
    frozenset({"blob"}): pa.binary(),
}
# In SQLite's order: the first word that is part of the declared type decides.
_AFFINITIES = (
    ("INT", pa.int64()), ("CHAR", pa.string()), ("CLOB", pa.string()), ("TEXT", pa.string()),
    ("BLOB", pa.binary()), ("REAL", pa.float64()), ("FLOA", pa.float64()), ("DOUB", pa.float64()),
    ("BOOL", pa.bool_()),
)  # fmt: skip


class SQLiteClient(SqlClient):
    """A connection to a file, which must be reachable wherever tasks run."""

    # In double quotes, a name that no column has (any more) would be a text.
    dialect = SqlDialect("`")
    mark = "?"
    percent = "%"
    default_delay = 0.0

    def __init__(self, address: Address) -> None:
        self._address = address
        file = Path(address.database).absolute()
        if not file.exists():
            raise ConfigError(
                f"there is no file {str(file)!r} for {address.url}; give the path of a SQLite database"
            )
        patience = float(address.options.get("timeout", _PATIENCE))
        with self._translated():
            self._connection = sqlite3.connect(
                f"{file.as_uri()}?mode=ro",
                uri=True,
                timeout=patience,
                isolation_level=None,
                check_same_thread=False,
            )
        self._connection.text_factory = _text

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            if is_away(error):
                raise TransientError(f"{self._address.url} is busy: {error}") from None
            raise ConfigError(
                f"SQLite refuses the statement on {self._address.url}: {error}; check 'tables' or 'query'"
            ) from None
        except sqlite3.DatabaseError as error:
            raise ConfigError(
                f"the source 'database' cannot work with {self._address.url}: {error}; the file must be "
                "a SQLite database that this user may read"
            ) from None

    def ask(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return all rows of a statement."""
        with self._translated():
            return self._connection.execute(statement, list(values)).fetchall()

    def plain(self, column: OrderColumn, value: Any) -> Value:
        """Return numbers and texts as they are; others have no form in a position."""
        if isinstance(value, bytes):
            raise ConfigError(
                f"the column {column.name!r}, which orders the rows, has a value of {self._address.url} "
                "that is neither a number nor a text in UTF-8; change it, or leave its row out by a query"
            )
        return value  # type: ignore[no-any-return]

    def tables(self) -> list[Table]:
        """Ask the schema."""
        found = self.ask(
            "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') "
            "AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY 1"
        )
        return [Table(name, "main") for (name,) in found]

    def default_schema(self) -> str:
        """Return the schema of the file."""
        return "main"

    def columns(self, relation: Relation) -> list[SourceColumn]:
        """Ask for the declared types; a column without one has that of its first values."""
        with self._translated():
            cursor = self._connection.execute(f"SELECT * FROM {self.origin(relation)} LIMIT 0")  # noqa: S608
            names = [column[0] for column in cursor.description]
        kinds, unordered = {}, set()
        if relation.table:
            info = self.ask(
                'SELECT name, type, pk AND NOT "notnull" FROM pragma_table_info(?)',
                [relation.table.name],
            )
            kinds = {name: declared_type(kind) for name, kind, _ in info}
            unordered = {name for name, _, free in info if free and self._has_null(relation, name)}
        types = {name: kinds.get(name) or self._seen_type(relation, name) for name in names}
        columns = [SourceColumn(name, type_, _reading(type_)) for name, type_ in types.items()]
        return [replace(each, is_ordered=each.name not in unordered) for each in columns]

    def _has_null(self, relation: Relation, name: str) -> bool:
        """Return whether a column of the primary key has a null, which SQLite allows."""
        where = f"{self.dialect.name(name)} IS NULL"
        return bool(self.ask(f"SELECT 1 FROM {self.origin(relation)} WHERE {where} LIMIT 1"))  # noqa: S608

    def _seen_type(self, relation: Relation, name: str) -> pa.DataType:
        column = self.dialect.name(name)
        seen = self.ask(
            f"SELECT DISTINCT typeof({column}) FROM "  # noqa: S608
            f"(SELECT {column} FROM {self.origin(relation)} LIMIT {_LOOKED_AT})"
        )
        return _KINDS.get(frozenset(kind for (kind,) in seen) - {"null"}, pa.string())

    def primary_key(self, table: Table) -> tuple[str, ...]:
        """Ask the schema."""
        found = self.ask(
            "SELECT name FROM pragma_table_info(?) WHERE pk > 0 ORDER BY pk", [table.name]
        )
        return tuple(name for (name,) in found)

    def rows(
        self, relation: Relation, columns: Sequence[SourceColumn], span: Range
    ) -> Iterator[Rows]:
        """Fetch the rows of a statement many at a time."""
        where, values = self.condition(span)
        wanted = [self.dialect.name(each.name) for each in columns]
        wanted += self.shown_order(span)
        statement = (
            f"SELECT {', '.join(wanted)} FROM {self.origin(relation)}{where}{self.ordered(span)}"  # noqa: S608
        )
        with self._translated(), closing(self._connection.cursor()) as cursor:
            self._execute(cursor, statement, values)
            while found := cursor.fetchmany(ROWS_AT_ONCE):
                lists = [list(column) for column in zip(*found, strict=True)]
                last = self.position_values(span, found[-1][len(columns) :])
                yield Rows(lists[: len(columns)], len(found), last)

    def _execute(self, cursor: sqlite3.Cursor, statement: str, values: Sequence[Any]) -> None:
        try:
            cursor.execute(statement, values)
        except sqlite3.OperationalError as error:
            if "no such column" in str(error):  # they were asked for a moment ago
                raise TransientError(
                    f"the columns changed before they were read: {error}"
                ) from None
            raise


def declared_type(declared: str) -> pa.DataType | None:
    """Return the type for a declared one, by SQLite's rules of affinity; None where it has none.

    Numbers that are declared with digits are texts: SQLite may store them as it likes.

    >>> declared_type("VARCHAR(20)"), declared_type("BIGINT"), declared_type("DECIMAL(10, 2)")
    (DataType(string), DataType(int64), DataType(string))
    """
    kind = declared.upper()
    if not kind:
        return None
    return next((type_ for word, type_ in _AFFINITIES if word in kind), pa.string())


def _text(data: bytes) -> str | bytes:
    """Return a text; one that is not UTF-8 as bytes, which no column of texts takes: a bad row."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


def _reading(type_: pa.DataType) -> Any:
    if pa.types.is_string(type_):
        return _texts
    if pa.types.is_boolean(type_):
        return _truths
    return partial(pa.array, type=type_)


def _texts(values: Sequence[Any]) -> pa.Array:
    plain = [v if v is None or isinstance(v, (str, bytes)) else str(v) for v in values]
    return pa.array(plain, pa.string())


def _truths(values: Sequence[Any]) -> pa.Array:
    if any(value not in (None, 0, 1) for value in values):
        raise ValueError("a value of a column of truths is neither 0 nor 1")
    return pa.array([None if value is None else bool(value) for value in values], pa.bool_())
