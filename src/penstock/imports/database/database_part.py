"""A table or a query as a task reads it: pages of rows as records, each with its position."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from penstock.encode.format_options import FormatChoice
from penstock.errors import ConfigError, missing_extra, nearest
from penstock.imports.database.database_client import DatabaseClient
from penstock.imports.database.record_building import RecordBuilder
from penstock.imports.database.table_range import (
    OrderColumn,
    Range,
    Relation,
    SourceColumn,
    Value,
    Values,
)
from penstock.pipeline.importing import Part, Place, Portion, Position, Reader
from penstock.sinks.database.address import Address

_CLIENTS = {
    "postgresql": "PostgreSQLClient",
    "mariadb": "MariaDBClient",
    "sqlite": "SQLiteClient",
    "sqlalchemy": "SQLAlchemyClient",
}


def open_client(address: Address) -> DatabaseClient:
    """Connect to a database."""
    try:  # the drivers are extras: each is loaded only when it is needed
        module = import_module(f"{__package__}.{address.kind}_client")
    except ModuleNotFoundError as missing:
        raise missing_extra(missing, f"the source 'database' with {address.kind}") from None
    client: DatabaseClient = getattr(module, _CLIENTS[address.kind])(address)
    return client


@dataclass(frozen=True)
class Reading:
    """How rows become records: the same for all parts of an import."""

    address: Address
    # The columns of the order in the incremental modes; none for bulk.
    order: tuple[OrderColumn, ...]
    # None: the primary key.
    key: tuple[str, ...] | None
    value_format: FormatChoice
    key_format: FormatChoice


@dataclass(frozen=True)
class DatabasePart(Part):
    """One table, or the query; `upto` is the safe value of the order's first column."""

    relation: Relation
    reading: Reading
    topic: str
    upto: Value | None = None
    # For bulk: which load of the table it is.
    load: int = 0

    @property
    def place(self) -> Place:
        """Return the table; the one query of a definition may be changed, and goes on."""
        return place_of(self.relation)

    @property
    def names(self) -> Mapping[str, str]:
        """Return the table and its schema."""
        table = self.relation.table
        return {"table": table.name, "schema": table.schema or ""} if table else {}

    @contextmanager
    def open(self, position: Position | None) -> Iterator[Reader]:
        """Connect, and ask for the columns: they may have changed."""
        with open_client(self.reading.address) as client:
            columns = client.columns(self.relation)
            key = record_key_of(client, self.relation, self.reading)
            formats = {"value": self.reading.value_format, "key": self.reading.key_format}
            builder = RecordBuilder(columns, key, formats, self.topic)
            if self.reading.order:
                require_columns(self.relation, self.reading.order, columns)
                yield IncrementalReader(self, client, columns, builder, position=position)
            else:
                yield BulkReader(self, client, columns, builder, position=position)


def place_of(relation: Relation) -> Place:
    """Return the place of a relation, as positions are known by it."""
    if relation.table is None:
        return {"query": "query"}
    return {"schema": relation.table.schema, "table": relation.table.name}


def record_key_of(client: DatabaseClient, relation: Relation, reading: Reading) -> tuple[str, ...]:
    """Return the columns of the records' key."""
    if reading.key is not None:
        return reading.key
    return client.primary_key(relation.table) if relation.table else ()


def require_columns(
    relation: Relation, order: Sequence[OrderColumn], columns: Sequence[SourceColumn]
) -> None:
    """Raise where a column of the order is not there."""
    names = [column.name for column in columns]
    for each in order:
        if each.name not in names:
            raise ConfigError(
                f"'{each.role}_column' is {each.name!r}, which {relation} does not have; "
                f"{nearest(each.name, names)}"
            )


class RowsReader(Reader):
    """A table or a query that is open, and what makes records of its rows."""

    def __init__(
        self,
        part: DatabasePart,
        client: DatabaseClient,
        columns: Sequence[SourceColumn],
        builder: RecordBuilder,
    ) -> None:
        self._part = part
        self._client = client
        self._columns = columns
        self._builder = builder


class IncrementalReader(RowsReader):
    """Reads pages of rows after the position, up to the horizon."""

    def __init__(self, *opened: Any, position: Position | None) -> None:
        super().__init__(*opened)
        self._order = self._part.reading.order
        self._after = values_of(self._order, position)

    def take(self, most: int) -> Iterator[Portion]:
        """Yield a page; rows with the same values as its last one are in it."""
        if self._part.upto is None:
            return
        relation = self._part.relation
        rest = Range(self._order, self._after, (self._part.upto,))
        end = self._client.page_end(relation, rest, most)
        page = Range(self._order, self._after, end or rest.upto)
        for rows in self._client.rows(relation, self._columns, page):
            records, bad = self._builder.records(rows)
            self._after = rows.last
            names = (column.role for column in self._order)
            yield Portion(records, dict(zip(names, rows.last, strict=True)), bad)


class BulkReader(RowsReader):
    """Reads a whole table: in pages by its primary key, or else in one transaction."""

    def __init__(self, *opened: Any, position: Position | None) -> None:
        super().__init__(*opened)
        part = self._part
        self._order = self._page_order()
        current = position if position and position.get("load") == part.load else {}
        self._finished = (
            bool(current.get("finished")) or (position or {}).get("load", 0) > part.load
        )
        after = current.get("after")
        is_own = after is not None and len(after) == len(self._order) > 0
        self._after: Values | None = tuple(after or ()) if is_own else None

    def _page_order(self) -> tuple[OrderColumn, ...]:
        table = self._part.relation.table
        by_name = {column.name: column.as_order() for column in self._columns}
        key = self._client.primary_key(table) if table else ()
        order = [by_name.get(name) for name in key]
        return tuple(each for each in order if each) if all(order) else ()

    def take(self, most: int) -> Iterator[Portion]:
        """Yield a page; the last one says that the load is finished."""
        if self._finished:
            return
        relation = self._part.relation
        rest = Range(self._order, self._after)
        end = self._client.page_end(relation, rest, most) if self._order else None
        for rows in self._client.rows(
            relation, self._columns, Range(self._order, self._after, end)
        ):
            records, bad = self._builder.records(rows)
            self._after = rows.last
            yield Portion(records, {"load": self._part.load, "after": list(rows.last)}, bad)
        if end is None:
            self._finished = True
            yield Portion(self._builder.nothing(), {"load": self._part.load, "finished": True})


def values_of(order: Sequence[OrderColumn], position: Position | None) -> Values | None:
    """Return the values of a position; those of a definition with other columns are refused.

    >>> values_of([OrderColumn("id", "incrementing")], {"incrementing": 5})
    (5,)
    """
    if position is None:
        return None
    if set(position) != {column.role for column in order}:
        wanted = ", ".join(repr(column.role) for column in order)
        raise ConfigError(
            f"the position has {', '.join(map(repr, position)) or 'nothing'}, and the mode needs "
            f"{wanted}: the mode was changed after rows were imported; reset the position, or "
            "use another name"
        )
    return tuple(position[column.role] for column in order)
