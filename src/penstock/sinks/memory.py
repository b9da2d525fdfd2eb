"""Rows kept in this process, for tests, notebooks and small tables."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING

import pyarrow as pa
from pydantic import Field

from penstock.pipeline import Batch, Sink

if TYPE_CHECKING:
    import pandas as pd


class MemoryTable:
    """An append-only table in this process that keeps the newest `limit` rows.

    >>> table = MemoryTable(limit=2)
    >>> table.append(pa.table({"n": [1, 2, 3]}))
    >>> table.to_arrow().to_pylist(), table.dropped
    ([{'n': 2}, {'n': 3}], 1)
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.dropped = 0
        self._rows: pa.Table | None = None
        self._lock = Lock()

    def append(self, rows: pa.Table) -> None:
        """Add rows at the end; the oldest fall out once the limit is passed."""
        with self._lock:
            joined = rows if self._rows is None else pa.concat_tables([self._rows, rows])
            over = max(0, joined.num_rows - self.limit)
            self.dropped += over
            self._rows = joined.slice(over)

    def to_arrow(self) -> pa.Table:
        """Return the rows; an empty table before the first batch."""
        return self._rows if self._rows is not None else pa.table({})

    def to_pandas(self) -> pd.DataFrame:
        """Return the rows as a pandas DataFrame."""
        return self.to_arrow().to_pandas()

    def __len__(self) -> int:
        return int(self.to_arrow().num_rows)


_DEFAULT_LIMIT = 1_000_000
_tables: dict[str, MemoryTable] = {}


def memory_table(name: str) -> MemoryTable:
    """Return the table that a memory sink of this name fills; empty before its first batch."""
    return _tables.setdefault(name, MemoryTable(_DEFAULT_LIMIT))


class MemorySink(Sink):
    """Rows in a table of this process: `penstock.memory_table(name)`.

    The table ends with the process. At-least-once: a batch that is repeated is in it twice.
    """

    name = "memory"
    main_option = "table"

    table: str = Field(min_length=1, description="The table's name.")
    limit: int = Field(
        default=_DEFAULT_LIMIT, ge=1, description="The most rows to keep; the oldest fall out."
    )

    def write(self, batch: Batch) -> None:
        """Append the rows to the table."""
        table = memory_table(self.table)
        table.limit = self.limit
        table.append(batch.rows.toArrow())
