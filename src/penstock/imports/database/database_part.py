"""A table or a query as a task reads it: pages of rows as records, each with its position."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from penstock.encode.format_options import FormatChoice
from penstock.errors import ConfigError, TransientError, missing_extra, nearest
from penstock.imports.database.database_client import DatabaseClient
from penstock.imports.database.number_types import Numbers, fitted
from penstock.imports.database.record_building import RecordBuilder
from penstock.imports.database.row_readers import (
    SERVER,
    IncrementalReader,
    LoadReader,
    OpenRows,
    PlanReader,
    columns_of,
    values_of,
)
from penstock.imports.database.snapshot_plan import Chunk, SnapshotPlan
from penstock.imports.database.table_range import OrderColumn, Range, Relation, SourceColumn, Value
from penstock.pipeline.importing import Part, Place, Position, Reader
from penstock.sinks.database.address import Address

_CLIENTS = {
    "postgresql": "PostgreSQLClient",
    "mariadb": "MariaDBClient",
    "sqlite": "SQLiteClient",
    "sqlalchemy": "SQLAlchemyClient",
}


# A transaction of a chunk has this many times the records of others: no one waits for the first of them.
_LARGER = 5
# The default of transaction.max.timeout.ms of brokers.
_LONGEST_MS = 900_000


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
    numbers: Numbers = "exact"


@dataclass(frozen=True)
class DatabasePart(Part):
    """One table, or the query; `upto` is the safe value of the order's first column."""

    relation: Relation
    reading: Reading
    topic: str
    upto: Value | None = None
    # For bulk: which load of the table it is.
    load: int = 0
    # The server that the driver is connected to, where that can be known.
    server: str | None = None

    @property
    def place(self) -> Place:
        """Return the table; the one query of a definition may be changed, and goes on."""
        return place_of(self.relation)

    @property
    def names(self) -> Mapping[str, str]:
        """Return the table and its schema."""
        table = self.relation.table
        return {"table": table.name, "schema": table.schema or ""} if table else {}

    @property
    def producer(self) -> Mapping[str, Any]:
        """Return the longest time that brokers allow: rows of the same time are in one transaction."""
        return {"transaction.timeout.ms": _LONGEST_MS}

    @contextmanager
    def open(self, position: Position | None) -> Iterator[Reader]:
        """Connect, and ask for the columns: they may have changed."""
        with open_client(self.reading.address) as client:
            self._require_server(client)
            columns = client.columns(self.relation)
            key = record_key_of(client, self.relation, self.reading)
            formats = {"value": self.reading.value_format, "key": self.reading.key_format}
            made = [fitted(column, self.reading.numbers) for column in columns]
            builder = RecordBuilder(made, key, formats, self.topic)
            require_columns(self.relation, self.reading.order, columns)
            yield self._reader(OpenRows(client, self.relation, columns, builder), position)

    def _reader(self, opened: OpenRows, position: Position | None) -> Reader:
        if order := self.reading.order:
            upto = None if self.upto is None else (self.upto,)
            rest = Range(order, values_of(order, position), upto)
            return IncrementalReader(opened, rest, self.server)
        own = {"load": self.load}
        load = (position or {}).get("load", 0)
        known = {"finished": True} if load > self.load else position or {}
        known = known if load >= self.load else {}
        return LoadReader(opened, Range(opened.key_order), own, known)

    def _require_server(self, client: DatabaseClient) -> None:
        """Raise where an address has become that of another server after the driver connected."""
        server = client.server_id()
        if server != self.server:
            raise TransientError(
                f"{self.reading.address.url} is another server ({server}) than a moment ago "
                f"({self.server})"
            )


@dataclass(frozen=True, kw_only=True)
class ChunkPart(DatabasePart):
    """One chunk of the first reading of a table, or of a bulk load."""

    chunk: Chunk

    @property
    def place(self) -> Place:
        """Return the table with the number of the chunk."""
        return self.chunk.place(super().place)

    def _reader(self, opened: OpenRows, position: Position | None) -> Reader:
        limits = Range(self.reading.order or opened.key_order, self.chunk.after, self.chunk.upto)
        own = {"snapshot": self.chunk.plan}
        return LoadReader(opened, limits, own, self.chunk.own(position), larger=_LARGER)


@dataclass(frozen=True, kw_only=True)
class PlanPart(DatabasePart):
    """The plan of a table's chunks, which becomes its position."""

    plan: SnapshotPlan

    @contextmanager
    def open(self, position: Position | None) -> Iterator[Reader]:
        """Connect to nothing: there is a plan, which another process may have written before."""
        is_due = (position or {}).get("load", 0) < self.load if self.load else position is None
        own = {"load": self.load} if self.load else columns_of(self.reading.order)
        written = self.plan.position | own
        yield PlanReader(written | ({SERVER: self.server} if self.server else {}), is_due=is_due)


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
