"""PostgreSQL: rows by COPY into Arrow columns, and its transactions as the horizon."""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, cast

import psycopg
import pyarrow as pa
import pyarrow.csv as pacsv
from psycopg import errors as pgerrors

from penstock.errors import ConfigError, TransientError
from penstock.imports.database import postgresql_catalog as catalog
from penstock.imports.database.database_client import SOURCE, PercentDialect, SqlClient
from penstock.imports.database.postgresql_copy import copied
from penstock.imports.database.postgresql_types import KNOWN, declared, expression
from penstock.imports.database.table_range import (
    INCREMENTING,
    KEY,
    TIMESTAMP,
    OrderColumn,
    Range,
    Relation,
    Rows,
    SourceColumn,
    Value,
)
from penstock.imports.database.text_columns import text_column
from penstock.sinks.database.address import Address
from penstock.sinks.database.database_api import Table
from penstock.sinks.database.postgresql.postgresql_database import PostgreSQL, translated
from penstock.sinks.database.sql_dialect import SqlDialect

# A table that is not there, and one that the user may not read; other errors of this kind are of SQL.
_OF_SETTINGS = ("42P01", "42501")
_SETTINGS = (
    "SET default_transaction_read_only = on",
    "SET timezone = 'UTC'",
    "SET datestyle = 'ISO, YMD'",
    "SET intervalstyle = 'iso_8601'",
    "SET extra_float_digits = 1",
    "SET bytea_output = 'hex'",
)
# Names as values of a statement.
_NAMES = SqlDialect('"')
_PARSE = pacsv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False)


class PostgreSQLClient(SqlClient):
    """A connection to PostgreSQL 12 or newer; each statement is a transaction of its own."""

    dialect = PercentDialect('"')

    def __init__(self, address: Address) -> None:
        self._address = address
        with self._translated():
            self._connection = PostgreSQL(address).connect()
            self._connection.commit()
            self._connection.autocommit = True
            # The plan of a table whose columns change would be refused.
            self._connection.prepare_threshold = None
            for setting in _SETTINGS:
                self._connection.execute(setting)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except psycopg.Error as error:
            state = error.sqlstate or ""
            if not state.startswith("42") or state in _OF_SETTINGS:
                raise translated(error, self._address, SOURCE) from None
            said = self._address.masked(error.diag.message_primary or "")
            raise ConfigError(f"PostgreSQL refuses the statement: {said}; check 'query'") from None

    def ask(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return all rows of a statement."""
        with self._translated():
            return self._connection.execute(cast(Any, statement), list(values)).fetchall()

    # -- what there is

    def tables(self) -> list[Table]:
        """Ask the catalog."""
        return [Table(name, schema) for schema, name in self.ask(catalog.TABLES)]

    def default_schema(self) -> str:
        """Return the first schema of the search path that exists."""
        ((schema,),) = self.ask("SELECT coalesce(current_schema(), 'public')")
        return str(schema)

    def columns(self, relation: Relation) -> list[SourceColumn]:
        """Run the query without rows, and look at its description."""
        statement = f"SELECT * FROM {self.origin(relation)} LIMIT 0"  # noqa: S608
        with self._translated():
            cursor = self._connection.execute(cast(Any, statement), ())
            described = cursor.description or []
        others = {column.type_code for column in described} - KNOWN
        arrays = dict(self.ask(catalog.ARRAYS, [sorted(others)])) if others else {}
        return [text_column(column.name, declared(column, arrays)) for column in described]

    def primary_key(self, table: Table) -> tuple[str, ...]:
        """Ask the catalog."""
        found = self.ask(catalog.PRIMARY_KEY, [_NAMES.table(table)])
        return tuple(column for (column,) in found)

    def about_rows(self, table: Table) -> int:
        """Ask the catalog, where the last ANALYZE or VACUUM noted it; otherwise by the table's size."""
        ((rows,),) = self.ask(catalog.ABOUT_ROWS, [_NAMES.table(table)])
        return int(rows)

    def server_id(self) -> str | None:
        """Return the identifier that a server shares with its standbys, and the database."""
        try:
            found = self.ask(catalog.SERVER)
        except ConfigError:  # a service that lets no one ask
            return None
        return f"{found[0][0]}/{found[0][1]}"

    # -- the order

    def now(self) -> datetime:
        """Ask the server."""
        ((now,),) = self.ask("SELECT now() AT TIME ZONE 'UTC'")
        return cast(datetime, now)

    def shown(self, value: str, role: str) -> str:
        """Return times with all digits, so that their texts have their order."""
        if role == TIMESTAMP:
            return f"to_char({value}, 'YYYY-MM-DD HH24:MI:SS.US')"
        return f"({value})::text" if role == KEY else value

    def plain(self, column: OrderColumn, value: Any) -> Value:
        """Return whole numbers as such, all else as text."""
        return int(value) if column.role == INCREMENTING else str(value)

    def finite(self, column: OrderColumn) -> str:
        """Leave infinite times out: nothing would come after them."""
        name = self.dialect.name(column.name)
        return f"{name} < 'infinity'" if column.role == TIMESTAMP else f"{name} IS NOT NULL"

    def require_order(self, relation: Relation, column: OrderColumn) -> None:
        """Refuse a standby, and sequences of which sessions take numbers in advance."""
        ((standby,),) = self.ask("SELECT pg_is_in_recovery()")
        if standby:
            raise ConfigError(
                f"{self._address.url} is a standby, which does not know the transactions that run on its "
                "primary: give 'delay', longer than a transaction and the replication take, or read the "
                "primary"
            )
        if column.role != INCREMENTING or relation.table is None:
            return
        for name, cache in self.ask(catalog.CACHES, [_NAMES.table(relation.table)]):
            raise ConfigError(
                f"the sequence {name!r} of {relation} has CACHE {cache}: each session takes as many "
                "numbers in advance, and rows come in another order; set its CACHE to 1, use mode "
                "'timestamp', or give 'delay' where every session uses its numbers up within it"
            )

    def running(self, relation: Relation, column: OrderColumn) -> frozenset[str]:
        """Return transactions that write the table or have taken a number; for times and queries, all.

        A statement that inserts holds a lock on its table before it takes a number from a sequence, and
        taking one locks the sequence; both last until the transaction is visible or rolled back. The time
        now() is that of a transaction's start, when it holds no lock of a table yet.
        """
        if column.role == INCREMENTING and relation.table:
            found = self.ask(catalog.WRITERS, [_NAMES.table(relation.table)])
            if found != [(None,)]:
                return frozenset(name for (name,) in found)
        return frozenset(name for (name,) in self.ask(catalog.TRANSACTIONS))

    # -- the rows

    def rows(
        self, relation: Relation, columns: Sequence[SourceColumn], span: Range
    ) -> Iterator[Rows]:
        """Copy the rows out as CSV, which Arrow reads into columns."""
        where, values = self.condition(span)
        wanted = [expression(self.dialect.name(each.name), each.type) for each in columns]
        # A whole number is its own text: the column of the rows is enough.
        read = {each.name: at for at, each in enumerate(columns) if pa.types.is_integer(each.type)}
        shown = zip(span.order, self.shown_order(span), strict=True)
        places = []
        for each, text in shown:
            places.append(read.get(each.name, len(wanted)))
            wanted += [] if each.name in read else [text]
        select = (
            f"SELECT {', '.join(wanted)} FROM {self.origin(relation)}{where}{self.ordered(span)}"  # noqa: S608
        )
        names = [f"c{at}" for at in range(len(wanted))]
        done = False
        try:
            with self._translated():
                for part in self._parts(f"COPY ({select}) TO STDOUT (FORMAT csv)", values):
                    table = _parsed(part, names)
                    arrays = [column.combine_chunks() for column in table.columns]
                    last = [arrays[at][-1].as_py() for at in places]
                    found = self.position_values(span, last)
                    yield Rows(arrays[: len(columns)], table.num_rows, found)
            done = True
        finally:
            if not done:  # the rest of the rows is still on its way
                self.close()

    def _parts(self, statement: str, values: Sequence[Value]) -> Iterator[bytes]:
        try:
            yield from copied(self._connection, statement, values)
        except pgerrors.UndefinedColumn as error:
            # They were asked for a moment ago.
            said = error.diag.message_primary
            raise TransientError(f"the columns changed before they were read: {said}") from None


def _parsed(chunk: bytes, names: list[str]) -> pa.Table:
    """Return columns of texts; what is empty without quotes is a null.

    >>> _parsed("\\ufeffa,\\n".encode(), ["b", "c"]).to_pylist()
    [{'b': '\\ufeffa', 'c': None}]
    """
    if chunk.startswith(BOM_UTF8):  # of the first value: Arrow would leave it out
        chunk = BOM_UTF8 + chunk
    return pacsv.read_csv(
        pa.BufferReader(chunk),
        pacsv.ReadOptions(use_threads=False, block_size=len(chunk) + 1, column_names=names),
        _PARSE,
        pacsv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()),
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )
