"""Tables of this process by their names, each with its rows, and the marks of what wrote them."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from penstock.errors import ConfigError
from penstock.pipeline import Mark
from penstock.sinks.evolution import evolution
from penstock.sinks.memory.query import query
from penstock.sinks.memory.rows import Appended, Keyed

if TYPE_CHECKING:
    import pandas as pd

DEFAULT_LIMIT = 1_000_000


class MemoryTable:
    """A table in this process that keeps at most `limit` rows: all of them, or one for each key.

    Examples
    --------
    ::

        trades = penstock.memory_table("trades")
        trades.to_pandas()
        trades.sql("SELECT symbol, avg(price) FROM trades GROUP BY symbol").to_pandas()
    """

    def __init__(self, name: str = "", limit: int = DEFAULT_LIMIT) -> None:
        self.name = name
        self.limit = limit
        self.key: tuple[str, ...] = ()
        self._lock = Lock()
        self._forget()

    def _forget(self) -> None:
        self._columns = StructType()
        self._marks: dict[str, Mark] = {}
        self._rows: Appended | Keyed = Keyed(self.key) if self.key else Appended()

    def to_arrow(self) -> pa.Table:
        """Return the rows, the last written at the end; without columns before there are any."""
        with self._lock:
            return self._rows.snapshot()

    def to_pandas(self) -> pd.DataFrame:
        """Return the rows as a pandas DataFrame."""
        return self.to_arrow().to_pandas()

    def sql(self, select: str) -> pa.Table:
        """Return what a SELECT gives, over all memory tables of the process by their names.

        DuckDB runs it on a snapshot; it can change neither a table nor a file.
        """
        return query(select, dict(_tables))

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def dropped(self) -> int:
        """How many rows fell out because of the limit."""
        return self._rows.dropped

    def clear(self) -> None:
        """Forget all rows, columns and marks, as at the start of the process."""
        with self._lock:
            self._forget()

    # -- for the sink

    def become(self, key: tuple[str, ...], limit: int) -> None:
        """Be a table with this key and limit; rows that are there with another key are in the way."""
        with self._lock:
            self.limit = limit
            if key == self.key:
                return
            if len(self._rows):
                raise ConfigError(
                    f"the memory table {self.name!r} has rows and {_words(self.key)}, and is now to "
                    f"have {_words(key)}: choose another table, or empty it with "
                    f"penstock.memory_table({self.name!r}).clear()"
                )
            self.key = key
            self._forget()

    def open(self, columns: StructType) -> None:
        """Have room for rows of these columns: new ones are added, types grow, all else is refused."""
        with self._lock:
            change = evolution(self._columns, columns, f"the memory table {self.name!r}")
            if change:
                self._columns = change.applied(self._columns)
                self._rows.reshape(to_arrow_schema(self._columns))

    def take(
        self,
        rows: pa.Table,
        delete_when: str | None,
        pipeline: str,
        mark: Mark,
        *,
        skip_known: bool,
    ) -> None:
        """Take rows in, together with the mark of the write; one that is known may be skipped."""
        with self._lock:
            known = self._marks.get(pipeline)
            if skip_known and known is not None and known >= mark:
                return
            self._rows.add(rows, delete_when, self.limit)
            self._marks[pipeline] = mark


def _words(key: tuple[str, ...]) -> str:
    return f"the key {', '.join(key)}" if key else "no key"


_tables: dict[str, MemoryTable] = {}


def memory_table(name: str) -> MemoryTable:
    """Return the table that a memory sink of this name fills; empty before its first batch.

    >>> len(memory_table("nobody writes here"))
    0
    """
    return _tables.setdefault(name, MemoryTable(name))
