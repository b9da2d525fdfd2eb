"""The one door behind which every database stands: what the sink asks of a database, and no more."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column
from pyspark.sql.types import DataType, StructField, StructType

from penstock.pipeline import LastWrite, Mark
from penstock.sinks.database.address import Address
from penstock.sinks.database.tasks import Encode
from penstock.sinks.fencing import write_of

MARKS = "penstock_offsets"
RANGES = "ranges"
STAGED = "penstock_staged"
# Columns of the staging table alone: which row of a key is the newest, and which ones say "delete".
ORDER = "_penstock_order"
GONE = "_penstock_gone"


@dataclass(frozen=True)
class Table:
    """A table's name, with its schema where one is given.

    >>> Table.read("shop.orders"), str(Table.read("orders"))
    (Table(name='orders', schema='shop'), 'orders')
    """

    name: str
    schema: str | None = None

    @classmethod
    def read(cls, text: str) -> Table:
        """Read `table` or `schema.table`."""
        schema, _, name = text.rpartition(".")
        return cls(name, schema or None)

    def sibling(self, name: str) -> Table:
        """Return another table of the same schema."""
        return Table(name, self.schema)

    def __str__(self) -> str:
        return f"{self.schema}.{self.name}" if self.schema else self.name


@dataclass(frozen=True)
class ColumnInfo:
    """A column that the table already has; `kind` is the database's name of its type."""

    name: str
    kind: str
    needed: bool = False


@dataclass(frozen=True)
class Layout:
    """The layout of the rows of one write: the table's columns, and the key that identifies a row."""

    table: Table
    fields: tuple[StructField, ...]
    kinds: tuple[str, ...] = ()
    key: tuple[str, ...] = ()
    deletes: bool = False
    # Whether rows without a row of their key in the table are left out, instead of inserted.
    updates: bool = False

    @property
    def names(self) -> list[str]:
        """Return the table's columns, in the order of the rows."""
        return [field.name for field in self.fields]

    @property
    def rest(self) -> list[str]:
        """Return the columns that are not part of the key."""
        return [name for name in self.names if name not in self.key]

    @property
    def staged(self) -> bool:
        """Return whether the rows go through a staging table: each replaces or deletes another."""
        return bool(self.key)

    @property
    def sent(self) -> list[str]:
        """Return the columns that the tasks send."""
        extra = [ORDER, *([GONE] if self.deletes else [])] if self.staged else []
        return [*self.names, *extra]


def as_last_write(row: Sequence[Any] | None) -> LastWrite | None:
    """Read a row of the marks table: epoch, batch, part, ranges.

    A row that was inserted only to be locked has the epoch -1: there is no write.

    >>> as_last_write((7, 3, 0, None)), as_last_write((-1, -1, -1, None))
    (LastWrite(mark=Mark(epoch=7, batch=3, part=0), ranges={}, topics={}), None)
    """
    if row is None or row[0] < 0:
        return None
    return write_of(Mark(*row[:3]), row[3])


Put = Callable[[bytes], None]
Plain = Callable[[Column, DataType], Column]


class Session(ABC):
    """One transaction. Everything that is done in it is kept together, or not at all."""

    @abstractmethod
    def columns(self, table: Table) -> list[ColumnInfo] | None:
        """Return the columns that the table has; None where there is no such table."""

    @abstractmethod
    def keys(self, table: Table) -> list[set[str]]:
        """Return the sets of columns of which the table holds each value at most once."""

    @abstractmethod
    def alone(self) -> None:
        """Hold off every other session that makes or changes tables, to the end of this one."""

    @abstractmethod
    def make(self, table: Table, fields: Sequence[StructField], key: Sequence[str]) -> None:
        """Create the table."""

    @abstractmethod
    def add(self, table: Table, field: StructField) -> None:
        """Add a column."""

    @abstractmethod
    def widen(self, table: Table, field: StructField) -> None:
        """Give a column a wider type."""

    @abstractmethod
    def make_marks(self, table: Table) -> None:
        """Create the table of the marks next to the target."""

    @abstractmethod
    def lock_mark(self, table: Table, pipeline: str) -> LastWrite | None:
        """Lock the pipeline's mark until this session ends, and return its newest write.

        Another session that wants to write waits here, and then sees what this one committed.
        """

    @abstractmethod
    def set_mark(self, table: Table, pipeline: str, write: LastWrite) -> None:
        """Store the mark, which is locked, with the ranges of offsets that the write covers."""

    @abstractmethod
    def loading(self, layout: Layout) -> AbstractContextManager[Put]:
        """Return what takes the encoded rows; at its end they are in the table or the staging table."""

    @abstractmethod
    def settle(self, layout: Layout) -> None:
        """Apply the staged rows to the table: the newest of each key replaces or deletes."""

    @abstractmethod
    def read(self, table: Table, names: Sequence[str]) -> Iterable[tuple[Any, ...]]:
        """Return the rows of a table one after the other, with these columns."""

    @abstractmethod
    def commit(self) -> None:
        """Keep what was done."""


class Database(ABC):
    """One kind of database at one address."""

    def __init__(self, address: Address) -> None:
        self.address = address

    @abstractmethod
    def session(self) -> AbstractContextManager[Session]:
        """Open a session: ended on every path, and what was not committed is rolled back.

        Errors of the database are raised as errors that the engine knows, without a secret.
        """

    @abstractmethod
    def known(self, kind: str, wanted: DataType) -> DataType | None:
        """Return a column's type as Spark has it: `wanted` itself where every value of it fits."""

    @abstractmethod
    def form(self, layout: Layout) -> Form:
        """Return the format in which `loading` accepts the rows."""


@dataclass(frozen=True)
class Form:
    """How rows are sent: first Spark makes each column plain, then tasks encode whole batches."""

    plain: Plain
    encode: Encode


def known_table(database: Database, columns: Sequence[ColumnInfo], rows: StructType) -> StructType:
    """Return the columns that the table and the rows have in common, as Spark has them."""
    wanted = {field.name.lower(): field.dataType for field in rows.fields}
    fields = []
    for column in columns:
        if (kind := wanted.get(column.name.lower())) is not None:
            known = database.known(column.kind, kind) or Foreign(column.kind)
            fields.append(StructField(column.name, known))
    return StructType(fields)


class Foreign(DataType):
    """A type of the database that no type of Spark stands for."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def simpleString(self) -> str:  # noqa: N802 - Spark's name
        """Return the type in the database's words."""
        return self.kind
