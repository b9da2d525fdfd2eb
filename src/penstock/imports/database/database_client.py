"""What the import asks of a database, and the SQL that PostgreSQL, MariaDB and SQLite share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from datetime import datetime, timezone
from typing import Any

from typing_extensions import Self

from penstock.imports.database.table_range import (
    OrderColumn,
    Range,
    Relation,
    Rows,
    SourceColumn,
    Value,
    Values,
)
from penstock.sinks.database.address import DatabaseUser
from penstock.sinks.database.database_api import Table
from penstock.sinks.database.sql_dialect import SqlDialect

SOURCE = DatabaseUser("the source 'database'", "it reads the tables, and nothing else")
ROWS_AT_ONCE = 10_000
# S608: what varies in the statements is quoted names, placeholders, and the query of the definition.


class DatabaseClient(ABC):
    """One connection, that only reads. Errors are those of Penstock, without a secret."""

    # Without a delay in the definition: the seconds that a database needs which hides its transactions.
    default_delay: float | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @abstractmethod
    def close(self) -> None:
        """Close the connection."""

    @abstractmethod
    def tables(self) -> list[Table]:
        """Return all tables and views, each with its schema, without those of the database itself."""

    @abstractmethod
    def default_schema(self) -> str:
        """Return the schema of tables that are named without one."""

    @abstractmethod
    def columns(self, relation: Relation) -> list[SourceColumn]:
        """Return the columns that the rows have now."""

    @abstractmethod
    def primary_key(self, table: Table) -> tuple[str, ...]:
        """Return the columns of the primary key; nothing where there is none."""

    @abstractmethod
    def newest(
        self, relation: Relation, column: OrderColumn, upto: Value | None = None
    ) -> Value | None:
        """Return the greatest value of a column; with `upto`, of those up to it."""

    @abstractmethod
    def oldest(self, relation: Relation, column: OrderColumn) -> Value | None:
        """Return the least value of a column."""

    @abstractmethod
    def about_rows(self, table: Table) -> int:
        """Return about how many rows a table has; asked once, before it is read for the first time."""

    @abstractmethod
    def has_rows(self, relation: Relation, span: Range) -> bool:
        """Return whether there is a row in a range."""

    @abstractmethod
    def page_end(self, relation: Relation, span: Range, rows: int) -> Values | None:
        """Return the order's values of the row with this number in a range; None if it has fewer."""

    @abstractmethod
    def rows(
        self, relation: Relation, columns: Sequence[SourceColumn], span: Range
    ) -> Iterator[Rows]:
        """Return the rows of a range in their order, many at a time."""

    def now(self) -> datetime:
        """Return the time in UTC, without a zone: that of the database, where it can be asked."""
        return datetime.now(timezone.utc).replace(tzinfo=None)

    def require_order(self, relation: Relation, column: OrderColumn) -> None:  # noqa: B027
        """Raise where the values of a column are not given in order."""

    def server_id(self) -> str | None:
        """Return what distinguishes this server and database from all others, also after a failover."""
        return None

    def running(self, relation: Relation, column: OrderColumn) -> frozenset[str]:  # noqa: ARG002
        """Return the transactions that may still commit rows with values up to the newest one."""
        return frozenset()


class PercentDialect(SqlDialect):
    """Names in statements whose placeholders begin with a percent sign: one in a name is doubled.

    >>> PercentDialect('"').name("100%")
    '"100%%"'
    """

    def name(self, name: str) -> str:
        """Return one name, quoted."""
        return super().name(name).replace("%", "%%")


class SqlClient(DatabaseClient):
    """The statements, as text with placeholders."""

    dialect: SqlDialect
    mark = "%s"
    # A percent sign in a text with such placeholders is written twice.
    percent = "%%"

    @abstractmethod
    def ask(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return all rows of a statement."""

    def shown(self, value: str, role: str) -> str:  # noqa: ARG002
        """Return the expression that shows a value of the order as positions have it."""
        return value

    def shown_order(self, span: Range) -> list[str]:
        """Return the expressions for the order's columns.

        Each has a name of its own: ORDER BY would take it for the column that it shows.
        """
        names = [(self.dialect.name(column.name), column.role) for column in span.order]
        return [f"{self.shown(*each)} AS _penstock_{at}" for at, each in enumerate(names)]

    def plain(self, column: OrderColumn, value: Any) -> Value:  # noqa: ARG002
        """Return what `shown` gave, as positions have it."""
        return value  # type: ignore[no-any-return]

    def finite(self, column: OrderColumn) -> str:
        """Return the condition of values that can be a position."""
        return f"{self.dialect.name(column.name)} IS NOT NULL"

    def origin(self, relation: Relation) -> str:
        """Return what stands after FROM."""
        if relation.table:
            return self.dialect.table(relation.table)
        # A query may end with a comment.
        return f"({(relation.query or '').replace('%', self.percent)}\n) AS penstock_rows"

    def newest(
        self, relation: Relation, column: OrderColumn, upto: Value | None = None
    ) -> Value | None:
        """Ask for the greatest value: quick where an index begins with the column."""
        return self._extreme("max", relation, column, upto)

    def oldest(self, relation: Relation, column: OrderColumn) -> Value | None:
        """Ask for the least value."""
        return self._extreme("min", relation, column)

    def _extreme(
        self, which: str, relation: Relation, column: OrderColumn, upto: Value | None = None
    ) -> Value | None:
        name = self.dialect.name(column.name)
        asked = self.shown(f"{which}({name})", column.role)
        where, values = self.finite(column), []
        if upto is not None:
            where, values = f"{where} AND {name} <= {self.mark}", [upto]
        statement = f"SELECT {asked} FROM {self.origin(relation)} WHERE {where}"  # noqa: S608
        ((value,),) = self.ask(statement, values)
        return None if value is None else self.plain(column, value)

    def about_rows(self, table: Table) -> int:
        """Count them."""
        ((count,),) = self.ask(f"SELECT count(*) FROM {self.dialect.table(table)}")  # noqa: S608
        return int(count)

    def has_rows(self, relation: Relation, span: Range) -> bool:
        """Ask for one row."""
        where, values = self.condition(span)
        found = self.ask(f"SELECT 1 FROM {self.origin(relation)}{where} LIMIT 1", values)  # noqa: S608
        return bool(found)

    def page_end(self, relation: Relation, span: Range, rows: int) -> Values | None:
        """Ask for one row, after as many others."""
        where, values = self.condition(span)
        shown = ", ".join(self.shown_order(span))
        statement = (
            f"SELECT {shown} FROM {self.origin(relation)}{where}{self.ordered(span)} "  # noqa: S608
            f"LIMIT 1 OFFSET {int(rows) - 1}"
        )
        found = self.ask(statement, values)
        return self.position_values(span, found[0]) if found else None

    def position_values(self, span: Range, values: Sequence[Any]) -> Values:
        """Return the order's values of a row as positions have them."""
        return tuple(
            self.plain(column, value) for column, value in zip(span.order, values, strict=True)
        )

    def ordered(self, span: Range) -> str:
        """Return the ORDER BY of a range."""
        names = self.dialect.names(column.name for column in span.order)
        return f" ORDER BY {names}" if names else ""

    def condition(self, span: Range) -> tuple[str, list[Value]]:
        """Return the WHERE of a range, and its values.

        A row is after others by its first column that differs; the first comparison is for the index.
        """
        parts: list[str] = []
        values: list[Value] = []
        names = [self.dialect.name(column.name) for column in span.order]
        for limit, sign, last in ((span.after, ">", ">"), (span.upto, "<", "<=")):
            if limit is None:
                continue
            if len(limit) > 1:
                parts.append(f"{names[0]} {sign}= {self.mark}")
                values.append(limit[0])
            branches = []
            for depth in range(len(limit)):
                same = [f"{name} = {self.mark}" for name in names[:depth]]
                compare = last if depth == len(limit) - 1 else sign
                branches.append(" AND ".join([*same, f"{names[depth]} {compare} {self.mark}"]))
                values += limit[: depth + 1]
            parts.append("(" + " OR ".join(f"({branch})" for branch in branches) + ")")
        parts += [f"{self.dialect.name(column.name)} IS NOT NULL" for column in span.not_null]
        return (f" WHERE {' AND '.join(parts)}" if parts else ""), values
