"""The first reading of a large table: ranges of a column, its chunks, which tasks read at the same time.

The plan is written once, as the position of the table, and each chunk has a position of its own. So a
process that is started again goes on with the chunks that are not finished, whatever has been inserted
since: all rows up to the plan's horizon belong to a chunk, and all others come after the chunks.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from penstock.imports.database.table_range import Value, Values
from penstock.pipeline.importing import Place, Position, key_of

MOST_CHUNKS = 256


@dataclass(frozen=True)
class Chunk:
    """The rows of one range: after a value of the first column of the order, up to another."""

    plan: str
    number: int
    after: Values | None
    upto: Values | None

    def place(self, table: Place) -> Place:
        """Return the place of its position."""
        return table | {"chunk": self.number}

    def own(self, position: Position | None) -> Position:
        """Return the position if it is of this plan: one of an earlier plan says nothing."""
        is_own = position is not None and position.get("snapshot") == self.plan
        return position or {} if is_own else {}


@dataclass(frozen=True)
class SnapshotPlan:
    """The chunks of one table; `by` are the roles of the order's columns, none for bulk."""

    id: str
    by: tuple[str, ...]
    cuts: Values
    # The horizon: no chunk has rows after it. None for bulk, where the last chunk has no end.
    upto: Value | None = None

    @classmethod
    def create(
        cls, by: Sequence[str], lowest: Value | None, highest: Value | None, chunks: int
    ) -> SnapshotPlan | None:
        """Return a plan for rows between two values; None where there is nothing to split."""
        if lowest is None or highest is None:
            return None
        cuts = even_cuts(lowest, highest, min(chunks, MOST_CHUNKS))
        upto = highest if by else None
        return cls(secrets.token_hex(4), tuple(by), cuts, upto) if cuts else None

    @classmethod
    def read(cls, position: Position | None) -> SnapshotPlan | None:
        """Return the plan in a table's position, if it has one."""
        given = (position or {}).get("snapshot")
        if not isinstance(given, dict):
            return None
        return cls(given["id"], tuple(given["by"]), tuple(given["cuts"]), given.get("upto"))

    @property
    def position(self) -> dict[str, Any]:
        """Return what is written as the table's position."""
        plan = {"id": self.id, "by": list(self.by), "cuts": list(self.cuts)}
        return {"snapshot": plan | ({} if self.upto is None else {"upto": self.upto})}

    @property
    def chunks(self) -> list[Chunk]:
        """Return all chunks: the first one has no beginning.

        >>> SnapshotPlan("a", ("incrementing",), (10,), 20).chunks[1]
        Chunk(plan='a', number=1, after=(10,), upto=(20,))
        """
        edges: list[Value | None] = [None, *self.cuts, self.upto]
        return [
            Chunk(self.id, number, _limit(edges[number]), _limit(edges[number + 1]))
            for number in range(len(edges) - 1)
        ]

    def unfinished(self, table: Place, positions: Mapping[str, Position]) -> list[Chunk]:
        """Return the chunks of a table that are to be read."""
        return [
            chunk
            for chunk in self.chunks
            if not chunk.own(positions.get(key_of(chunk.place(table)))).get("finished")
        ]


def _limit(value: Value | None) -> Values | None:
    return None if value is None else (value,)


def even_cuts(lowest: Value, highest: Value, chunks: int) -> Values:
    """Return the values that cut a range into as many equal parts; none where that has no sense.

    >>> even_cuts(1, 100, 4), even_cuts(1, 2, 4), even_cuts("a", "b", 2)
    ((25, 50, 75), (1,), ())
    >>> even_cuts("2024-01-01 00:00:00", "2024-01-03 00:00:00", 2)
    ('2024-01-02 00:00:00.000000',)
    """
    if isinstance(lowest, int) and isinstance(highest, int):
        step, left = divmod(highest - lowest, chunks)
        inner = (lowest + step * at + left * at // chunks for at in range(1, chunks))
        return tuple(sorted({cut for cut in inner if lowest <= cut < highest}))
    if not isinstance(lowest, str) or not isinstance(highest, str):
        return ()
    try:
        first, last = datetime.fromisoformat(lowest), datetime.fromisoformat(highest)
        micros = (last - first) // timedelta(microseconds=1)
    except (ValueError, TypeError):  # not times, or one with a zone and one without
        return ()
    moments = (first + timedelta(microseconds=int(at)) for at in even_cuts(0, micros, chunks))
    return tuple(moment.isoformat(" ", "microseconds") for moment in moments)


def chunks_of(rows: int, chunk_rows: int) -> int:
    """Return how many chunks a table of about that many rows has.

    >>> chunks_of(1_000_000, 300_000), chunks_of(300_000, 300_000)
    (4, 1)
    """
    return math.ceil(rows / chunk_rows) if chunk_rows else 1
