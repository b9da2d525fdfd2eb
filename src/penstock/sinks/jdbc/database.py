"""The one door behind which every database stands: what the sink asks of a database, and no more."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import DataType, StructField, StructType

from penstock.errors import PenstockError
from penstock.pipeline import Mark

if TYPE_CHECKING:
    from pyspark.sql import Column

    from penstock.sinks.jdbc.tasks import Encode

MARKS = "penstock_offsets"
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

    def beside(self, name: str) -> Table:
        """Return another table of the same schema."""
        return Table(name, self.schema)

    def __str__(self) -> str:
        return f"{self.schema}.{self.name}" if self.schema else self.name


@dataclass(frozen=True)
class Found:
    """A column that the database already has; `kind` is the type in the database's own words."""

    name: str
    kind: str
    needed: bool = False


@dataclass(frozen=True)
class Layout:
    """How the rows of one write lie: the columns as the table has them, and what makes rows one."""

    table: Table
    fields: tuple[StructField, ...]
    kinds: tuple[str, ...] = ()
    key: tuple[str, ...] = ()
    deletes: bool = False

    @property
    def names(self) -> list[str]:
        """The table's columns, in the order in which the rows bring them."""
        return [field.name for field in self.fields]

    @property
    def rest(self) -> list[str]:
        """The columns that are not part of the key."""
        return [name for name in self.names if name not in self.key]

    @property
    def staged(self) -> bool:
        """Whether the rows go through a staging table: each replaces or deletes another."""
        return bool(self.key)

    @property
    def sent(self) -> list[str]:
        """The columns that the tasks send."""
        extra = [ORDER, *([GONE] if self.deletes else [])] if self.staged else []
        return [*self.names, *extra]


Put = Callable[[bytes], None]
Plain = Callable[["Column", DataType], "Column"]


class Session(ABC):
    """One transaction. Everything that is done in it is kept together, or not at all."""

    @abstractmethod
    def columns(self, table: Table) -> list[Found] | None:
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
        """Create the table of the marks beside the target."""

    @abstractmethod
    def claim(self, table: Table, pipeline: str, mark: Mark) -> bool:
        """Write the mark, and hold it against every other session; False where it is there already."""

    @abstractmethod
    def loading(self, layout: Layout) -> AbstractContextManager[Put]:
        """Return what takes the encoded rows; at its end they are in the table or the staging table."""

    @abstractmethod
    def settle(self, layout: Layout) -> None:
        """Bring the staged rows into the table: the newest of each key replaces or deletes."""

    @abstractmethod
    def read(self, table: Table, names: Sequence[str]) -> Iterable[tuple[Any, ...]]:
        """Return the rows of a table one after the other, with these columns."""

    @abstractmethod
    def commit(self) -> None:
        """Keep what was done."""


class Database(ABC):
    """One kind of database at one address."""

    @abstractmethod
    def session(self) -> AbstractContextManager[Session]:
        """Open a session: ended on every path, and what was not committed is rolled back.

        What the database raises comes out as the error that the engine knows: see `told`.
        """

    @abstractmethod
    def told(self, error: Exception) -> PenstockError | None:
        """Return the database's error as one of ours; None where it says nothing about us."""

    @abstractmethod
    def known(self, kind: str, wanted: DataType) -> DataType | None:
        """Return a column's type as Spark has it: `wanted` itself where every value of it fits."""

    @abstractmethod
    def form(self, layout: Layout) -> Form:
        """Return the form in which `loading` takes the rows."""


@dataclass(frozen=True)
class Form:
    """How rows travel: first Spark makes each column plain, then tasks encode whole batches."""

    plain: Plain
    encode: Encode


def known_table(database: Database, found: Sequence[Found], rows: StructType) -> StructType:
    """Return the columns that the table and the rows have in common, as Spark has them."""
    wanted = {field.name.lower(): field.dataType for field in rows.fields}
    fields = []
    for column in found:
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
