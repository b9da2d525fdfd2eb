"""Tables of this process by their names, each with its rows, and the marks of what wrote them."""

from __future__ import annotations

from collections.abc import Container
from threading import Lock
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from penstock.errors import ConfigError, missing_extra
from penstock.pipeline import LastWrite, is_repetition
from penstock.sinks.evolution import evolution
from penstock.sinks.fencing import claimed
from penstock.sinks.memory.memory_rows import Appended, Keyed

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
        self._writes: dict[str, LastWrite] = {}
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
        try:
            import duckdb  # noqa: PLC0415 - an extra
        except ModuleNotFoundError as missing:
            raise missing_extra(missing, "SQL over memory tables") from missing
        with duckdb.connect(":memory:", config={"enable_external_access": "false"}) as database:
            try:
                kinds = [statement.type for statement in database.extract_statements(select)]
                if kinds != [duckdb.StatementType.SELECT]:
                    raise ConfigError(
                        f"memory tables can only be read, with one SELECT; given: {select!r}. What fills "
                        "them is a pipeline with the sink 'memory'"
                    )
                for name, rows in _named_in(select).items():
                    database.register(name, rows)
                return database.sql(select).to_arrow_table()
            except duckdb.Error as error:
                raise ConfigError(f"the query cannot be run: {error}") from None

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def dropped(self) -> int:
        """Return how many rows were dropped because of the limit."""
        return self._rows.dropped

    def clear(self) -> None:
        """Forget all rows, columns and marks, as at the start of the process."""
        with self._lock:
            self._forget()

    # -- for the sink

    def become(self, key: tuple[str, ...], limit: int) -> None:
        """Set key and limit; raise if there are rows with another key."""
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
        """Accept rows of these columns: new ones are added, types are widened, all else is refused."""
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
        write: LastWrite,
        *,
        skip_known: bool,
    ) -> None:
        """Take rows in, together with the mark of the write; a repetition may be skipped."""
        with self._lock:
            known = self._writes.get(pipeline)
            if skip_known and known and is_repetition(known.mark, write.mark, pipeline):
                return
            self._rows.add(rows, delete_when, self.limit)
            self._writes[pipeline] = write

    def last_write(self, pipeline: str) -> LastWrite | None:
        """Return the newest write of a pipeline."""
        return self._writes.get(pipeline)

    def claim(self, pipeline: str, epoch: int, continues: Container[int] = ()) -> LastWrite | None:
        """Refuse writes of earlier epochs from here on; return the newest write before."""
        with self._lock:
            known = self._writes.get(pipeline)
            self._writes[pipeline] = claimed(known, epoch, pipeline, continues)
            return known


def _words(key: tuple[str, ...]) -> str:
    return f"the key {', '.join(key)}" if key else "no key"


_tables: dict[str, MemoryTable] = {}


def memory_table(name: str) -> MemoryTable:
    """Return the table that a memory sink of this name fills; empty before its first batch.

    >>> len(memory_table("never written"))
    0
    """
    return _tables.setdefault(name, MemoryTable(name))


def _named_in(select: str) -> dict[str, pa.Table]:
    """Return the tables whose names are in the text; only these are converted."""
    text = select.lower()
    named = {name: each.to_arrow() for name, each in [*_tables.items()] if name.lower() in text}
    return {name: rows for name, rows in named.items() if rows.num_columns}
