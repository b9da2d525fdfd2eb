"""Any database that SQLAlchemy has a dialect for: slower, because each value is a Python object."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timezone
from decimal import Decimal
from typing import Any

import sqlalchemy as sa
from sqlalchemy import exc

from penstock.errors import ConfigError, TransientError
from penstock.imports.database.database_client import ROWS_AT_ONCE, DatabaseClient
from penstock.imports.database.sqlalchemy_types import declared_type, reading, seen_type
from penstock.imports.database.table_range import (
    TIMESTAMP,
    OrderColumn,
    Range,
    Relation,
    Rows,
    SourceColumn,
    Value,
    Values,
)
from penstock.sinks.database.address import Address
from penstock.sinks.database.database_api import Table

_LOOKED_AT = 1000


class SQLAlchemyClient(DatabaseClient):
    """A connection of a dialect; each statement is a transaction of its own."""

    default_delay = 10.0

    def __init__(self, address: Address) -> None:
        self._address = address
        self._kinds: dict[Relation, dict[str, Any]] = {}
        with self._translated():
            url = sa.make_url(address.url)
            if address.password:
                url = url.set(password=address.password.get_secret_value())
            self._engine = sa.create_engine(url, poolclass=sa.NullPool)
            self._connection = self._engine.connect()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()
        self._engine.dispose()

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (exc.NoSuchModuleError, exc.ArgumentError, ModuleNotFoundError) as error:
            raise ConfigError(
                f"SQLAlchemy cannot use {self._address.url}: {self._said(error)}; install the driver, or "
                "check 'url'"
            ) from None
        except (exc.ProgrammingError, exc.NoSuchTableError, exc.CompileError) as error:
            raise ConfigError(
                f"the database refuses the statement: {self._said(error)}; check 'tables' or 'query'"
            ) from None
        except exc.DBAPIError as error:
            # A wrong password and a server that is away are the same error in most drivers.
            raise TransientError(
                f"{self._address.url} is away or refuses: {self._said(error)}"
            ) from None

    def _said(self, error: Exception) -> str:
        cause = getattr(error, "orig", None) or error
        return self._address.masked(" ".join(str(cause).split()))

    def tables(self) -> list[Table]:
        """Ask the dialect for the tables and views of the default schema."""
        with self._translated():
            inspector = sa.inspect(self._connection)
            names = [*inspector.get_table_names(), *inspector.get_view_names()]
            self._connection.rollback()
        return [Table(name, self.default_schema()) for name in sorted(names)]

    def default_schema(self) -> str:
        """Return the dialect's default schema."""
        return self._engine.dialect.default_schema_name or "main"

    def columns(self, relation: Relation) -> list[SourceColumn]:
        """Look at the types of the first values: dialects have types that no other knows."""
        self._kinds.pop(relation, None)
        declared = self._declared(relation)
        with self._translated():
            wanted = [self._column(relation, name) for name in declared] or [sa.text("*")]
            select = self._select(relation).with_only_columns(*wanted).limit(_LOOKED_AT)
            found = self._connection.execute(select)
            names, rows = list(found.keys()), found.fetchall()
            self._connection.rollback()
        columns = []
        for at, name in enumerate(names):
            type_ = declared_type(declared.get(name)) or seen_type([row[at] for row in rows])
            columns.append(SourceColumn(name, type_, reading(type_)))
        return columns

    def _declared(self, relation: Relation) -> dict[str, Any]:
        """Return the types of a table's columns, as SQLAlchemy has them."""
        if relation.table is None:
            return {}
        if relation not in self._kinds:
            schema = self._schema(relation.table)
            with self._translated():
                described = sa.inspect(self._connection).get_columns(relation.table.name, schema)
                self._connection.rollback()
            self._kinds[relation] = {each["name"]: each["type"] for each in described}
        return self._kinds[relation]

    def _column(self, relation: Relation, name: str) -> Any:
        return sa.column(name, self._declared(relation).get(name))

    def primary_key(self, table: Table) -> tuple[str, ...]:
        """Ask the dialect."""
        with self._translated():
            found = sa.inspect(self._connection).get_pk_constraint(table.name, self._schema(table))
            self._connection.rollback()
        return tuple(found["constrained_columns"])

    def newest(
        self, relation: Relation, column: OrderColumn, upto: Value | None = None
    ) -> Value | None:
        """Ask for the greatest value."""
        return self._extreme(sa.func.max, relation, column, upto)

    def oldest(self, relation: Relation, column: OrderColumn) -> Value | None:
        """Ask for the least value."""
        return self._extreme(sa.func.min, relation, column)

    def _extreme(
        self, which: Any, relation: Relation, column: OrderColumn, upto: Value | None = None
    ) -> Value | None:
        own = self._column(relation, column.name)
        select = self._select(relation).with_only_columns(which(own))
        found = self._ask(select if upto is None else select.where(own <= _parameter(column, upto)))
        return None if found[0][0] is None else _plain(found[0][0])

    def about_rows(self, table: Table) -> int:
        """Count them."""
        counted = self._select(Relation(table)).with_only_columns(sa.func.count())
        return int(self._ask(counted)[0][0])

    def has_rows(self, relation: Relation, span: Range) -> bool:
        """Ask for one row."""
        return bool(
            self._ask(self._ranged(relation, span, [sa.literal(1)], ordered=False).limit(1))
        )

    def page_end(self, relation: Relation, span: Range, rows: int) -> Values | None:
        """Ask for one row, after as many others."""
        order = [self._column(relation, each.name) for each in span.order]
        found = self._ask(self._ranged(relation, span, order).limit(1).offset(rows - 1))
        return tuple(map(_plain, found[0])) if found else None

    def rows(
        self, relation: Relation, columns: Sequence[SourceColumn], span: Range
    ) -> Iterator[Rows]:
        """Fetch the rows of a statement many at a time."""
        wanted = [self._column(relation, each.name) for each in columns]
        places = [[each.name for each in columns].index(each.name) for each in span.order]
        with self._translated():
            streamed = self._connection.execution_options(stream_results=True)
            found = streamed.execute(self._ranged(relation, span, wanted))
            for some in found.partitions(ROWS_AT_ONCE):
                lists = [list(column) for column in zip(*some, strict=True)]
                yield Rows(lists, len(some), tuple(_plain(some[-1][at]) for at in places))
            self._connection.rollback()

    # -- statements

    def _ask(self, select: sa.Select[Any]) -> list[Any]:
        with self._translated():
            found = list(self._connection.execute(select).fetchall())
            self._connection.rollback()
        return found

    def _schema(self, table: Table) -> str | None:
        return None if table.schema == self.default_schema() else table.schema

    def _select(self, relation: Relation) -> sa.Select[Any]:
        if relation.table:
            origin: Any = sa.table(relation.table.name, schema=self._schema(relation.table))
        else:
            text = (relation.query or "").replace(":", r"\:")
            origin = sa.text(f"({text}\n) penstock_rows")
        return sa.select(sa.text("*")).select_from(origin)

    def _ranged(
        self, relation: Relation, span: Range, wanted: list[Any], *, ordered: bool = True
    ) -> sa.Select[Any]:
        select = self._select(relation).with_only_columns(*wanted)
        names = [self._column(relation, each.name) for each in span.order]
        for limit, is_after in ((span.after, True), (span.upto, False)):
            if limit is not None:
                values = [_parameter(*each) for each in zip(span.order, limit, strict=False)]
                select = select.where(_compared(names, values, is_after=is_after))
        for each in span.not_null:
            select = select.where(self._column(relation, each.name).is_not(None))
        return select.order_by(*names) if ordered else select


def _compared(names: list[Any], values: list[Any], *, is_after: bool) -> Any:
    branches = []
    for depth, value in enumerate(values):
        same = [name == each for name, each in zip(names, values[:depth], strict=False)]
        name, is_last = names[depth], depth == len(values) - 1
        compared = name > value if is_after else (name <= value if is_last else name < value)
        branches.append(sa.and_(*same, compared))
    return sa.or_(*branches)


def _plain(value: Any) -> Value:
    """Return a value as positions have it; times in UTC with all digits: texts have their order."""
    if isinstance(value, datetime):
        moment = value.astimezone(timezone.utc) if value.tzinfo else value
        return moment.isoformat(" ", "microseconds")
    if isinstance(value, Decimal) and value == int(value):
        return int(value)
    return value if isinstance(value, (int, float, str)) else str(value)


def _parameter(column: OrderColumn, value: Value) -> Any:
    if column.role != TIMESTAMP or not isinstance(value, str):
        return value
    try:
        return datetime.fromisoformat(value)
    except ValueError:
        return value
