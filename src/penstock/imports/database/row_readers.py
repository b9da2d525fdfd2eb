"""How an open table or query is read: pages of rows as records, each with the position after it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.errors import ConfigError
from penstock.imports.database.database_client import DatabaseClient
from penstock.imports.database.record_building import RecordBuilder
from penstock.imports.database.snapshot_plan import SnapshotPlan
from penstock.imports.database.table_range import (
    OrderColumn,
    Range,
    Relation,
    Rows,
    SourceColumn,
    Values,
)
from penstock.pipeline.importing import Portion, Position, Reader

SERVER = "server"
"""In a position: the server that it is of, where that can be known."""
COLUMNS = "columns"
"""In a position: the columns that its values are of."""


@dataclass(frozen=True)
class OpenRows:
    """A table or a query that is open in a task, and what makes records of its rows."""

    client: DatabaseClient
    relation: Relation
    columns: Sequence[SourceColumn]
    builder: RecordBuilder

    @property
    def key_order(self) -> tuple[OrderColumn, ...]:
        """Return the primary key as an order; nothing where its values cannot be in a position."""
        return key_order(self.client, self.relation, self.columns)

    def is_unique(self, order: Sequence[OrderColumn]) -> bool:
        """Return whether no two rows have the same values in an order: it has the whole primary key."""
        key = {column.name for column in self.key_order}
        return bool(key) and key <= {column.name for column in order}

    def portions(self, span: Range) -> Iterator[tuple[Values, Any, bool]]:
        """Yield the order's values of the last of some rows, their records, and if there are no more.

        It is a portion ahead: what comes next decides whether one is the last.
        """
        held: Rows | None = None
        for rows in self.client.rows(self.relation, self.columns, span):
            if held is not None:
                yield held.last, self.builder.records(held), False
            held = rows
        if held is not None:
            yield held.last, self.builder.records(held), True


class IncrementalReader(Reader):
    """Reads pages of rows after the position, up to the horizon."""

    def __init__(self, opened: OpenRows, rest: Range, server: str | None = None) -> None:
        self._opened = opened
        self._rest = rest
        self._is_unique = opened.is_unique(rest.order)
        self._own = columns_of(rest.order) | ({SERVER: server} if server else {})

    def take(self, most: int) -> Iterator[Portion]:
        """Yield a page; rows with the same values as its last one are in it.

        In the middle of a page reading ends only if the next row surely has other values.
        """
        rest, opened = self._rest, self._opened
        end = opened.client.page_end(opened.relation, rest, most)
        page = Range(rest.order, rest.after, end or rest.upto)
        for last, (records, bad), is_last in opened.portions(page):
            self._rest = Range(rest.order, last, rest.upto)
            names = (column.role for column in rest.order)
            position = dict(zip(names, last, strict=True)) | self._own
            yield Portion(records, position, bad, may_end=is_last or self._is_unique)


class LoadReader(Reader):
    """Reads a range to its end, in pages by its order, or else in one transaction.

    Its positions are those of one load or of one chunk (`own`), with the last values or `finished`.
    """

    def __init__(
        self,
        opened: OpenRows,
        limits: Range,
        own: Position,
        position: Position,
        *,
        larger: int = 1,
    ) -> None:
        self._opened = opened
        self._larger = larger
        self._is_unique = opened.is_unique(limits.order)
        self._own = own
        self._finished = bool(position.get("finished"))
        after = position.get("after")
        is_usable = after is not None and len(after) == len(limits.order) > 0
        first = tuple(after or ()) if is_usable else limits.after
        self._rest = Range(limits.order, first, limits.upto)

    def take(self, most: int) -> Iterator[Portion]:
        """Yield a page; the last one says that all is read. Without an order there is no other end."""
        if self._finished:
            return
        rest, opened = self._rest, self._opened
        most *= self._larger
        end = opened.client.page_end(opened.relation, rest, most) if rest.order else None
        page = Range(rest.order, rest.after, end or rest.upto)
        for last, (records, bad), is_last in opened.portions(page):
            self._rest = Range(rest.order, last, rest.upto)
            may_end = self._is_unique or (is_last and bool(rest.order))
            yield Portion(records, self._own | {"after": list(last)}, bad, may_end=may_end)
        if end is None:
            self._finished = True
            yield Portion(opened.builder.nothing(), self._own | {"finished": True})


class PlanReader(Reader):
    """Writes the plan of a table's chunks as its position, once, and reads nothing."""

    def __init__(self, plan: Position, *, is_due: bool) -> None:
        self._plan = plan
        self._is_due = is_due

    def take(self, most: int) -> Iterator[Portion]:  # noqa: ARG002
        """Yield the plan, unless a process before this one has written one."""
        if self._is_due:
            self._is_due = False
            yield Portion.of([], self._plan, [])


def key_order(
    client: DatabaseClient, relation: Relation, columns: Sequence[SourceColumn]
) -> tuple[OrderColumn, ...]:
    """Return the primary key as an order; nothing where its values cannot be in a position."""
    by_name = {column.name: column.as_order() for column in columns}
    key = client.primary_key(relation.table) if relation.table else ()
    order = [by_name.get(name) for name in key]
    return tuple(each for each in order if each) if all(order) else ()


def columns_of(order: Sequence[OrderColumn]) -> Position:
    """Return what a position says of the columns of its values."""
    return {COLUMNS: [column.name for column in order]}


def values_of(order: Sequence[OrderColumn], position: Position | None) -> Values | None:
    """Return the values of a position; those of a definition with other columns are refused.

    One that an operator has set, or an earlier release, need not name its columns.

    >>> values_of([OrderColumn("id", "incrementing")], {"incrementing": 5})
    (5,)
    """
    if position is None:
        return None
    roles = tuple(column.role for column in order)
    plan = SnapshotPlan.read(position)
    names = plan.by if plan else tuple(each for each in position if each not in (SERVER, COLUMNS))
    if set(names) != set(roles):
        wanted = ", ".join(map(repr, roles))
        raise ConfigError(
            f"the position has {', '.join(map(repr, names)) or 'nothing'}, and the mode needs "
            f"{wanted}: the mode was changed after rows were imported; reset the position, or "
            "use another name"
        )
    own = columns_of(order)[COLUMNS]
    if (given := position.get(COLUMNS, own)) != own:
        raise ConfigError(
            f"the position is of the columns {given}, and the definition names {own}: rows would be left "
            "out; reset the position, use another name, or, if the columns were only renamed, 'penstock "
            f"offsets set' the position without {COLUMNS!r}"
        )
    if plan:  # all chunks are read: what comes next is after the horizon
        return (plan.upto,) if plan.upto is not None else None
    values = tuple(position[role] for role in roles)
    if not all(isinstance(value, (int, float, str)) for value in values):
        raise ConfigError(
            f"the position {position} is not one: no row comes after a value that is no number or text; "
            "set another one, or reset it to read from the start"
        )
    return values
