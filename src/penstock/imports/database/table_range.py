"""What is read of a database: a table or a query, the columns that order it, and a range of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from penstock.sinks.database.database_api import Table

Value = int | float | str
"""A value of a column that orders rows, as positions have it."""
Values = tuple[Value, ...]

INCREMENTING, TIMESTAMP, KEY = "incrementing", "timestamp", "key"


@dataclass(frozen=True)
class Relation:
    """A table, or the rows of a query."""

    table: Table | None = None
    query: str | None = None

    def __str__(self) -> str:
        return f"the table {str(self.table)!r}" if self.table else "the query"


@dataclass(frozen=True)
class OrderColumn:
    """A column by which rows are ordered; its role decides the form of its values."""

    name: str
    role: str


@dataclass(frozen=True)
class Range:
    """The rows after some values of the order's columns, up to others; None: without a limit.

    `upto` may have fewer values than the order has columns: all rows with the last of them are included.
    """

    order: tuple[OrderColumn, ...] = ()
    after: Values | None = None
    upto: Values | None = None

    @property
    def not_null(self) -> tuple[OrderColumn, ...]:
        """Return the columns whose nulls are to be left out; those of the first one are not in a range.

        Rows without a number after their time have no position. A primary key has no nulls.
        """
        is_by_time = bool(self.order) and self.order[0].role == TIMESTAMP
        return self.order[1:] if is_by_time else ()


@dataclass(frozen=True)
class SourceColumn:
    """A column of the rows: its Arrow type, and how the driver's values become that type.

    `read` raises ValueError (as Arrow's errors are) where a value has no form in the type.
    """

    name: str
    type: pa.DataType
    read: Callable[[Any], pa.Array]
    # Whether the database compares values as it orders them: not where some are null.
    is_ordered: bool = True

    def as_order(self) -> OrderColumn | None:
        """Return this column as one of an order; None where its values cannot be in a position."""
        if not self.is_ordered:
            return None
        if pa.types.is_integer(self.type):
            return OrderColumn(self.name, INCREMENTING)
        exact = (pa.types.is_string, pa.types.is_date, pa.types.is_timestamp)
        return OrderColumn(self.name, KEY) if any(suits(self.type) for suits in exact) else None


@dataclass(frozen=True)
class Rows:
    """Some rows as the driver gives them, by column, and the order's values of the last one.

    A column is a list or an Arrow array: what can be sliced.
    """

    columns: Sequence[Any]
    count: int
    last: Values = ()

    def slice(self, start: int, end: int) -> Rows:
        """Return some of the rows."""
        return Rows([column[start:end] for column in self.columns], end - start)

    def values(self, at: int) -> list[Any]:
        """Return one row as plain values."""
        cells = (column[at] for column in self.columns)
        return [cell.as_py() if isinstance(cell, pa.Scalar) else cell for cell in cells]
