"""The rows of a memory table: added at the end, or one for each key, without a Python loop over them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import compress, islice, repeat
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

# Every batch adds a piece, and each piece costs whoever reads: so many are joined into one.
_PIECES = 500
# Removed rows stay in memory until there are as many of them as of the others.
_DEAD = 10_000


class Appended:
    """Rows in the order in which they came; the oldest fall out.

    >>> rows = Appended()
    >>> rows.add(pa.table({"n": [1, 2, 3]}), None, limit=2)
    >>> rows.snapshot().to_pylist(), rows.dropped
    ([{'n': 2}, {'n': 3}], 1)
    """

    def __init__(self) -> None:
        self.dropped = 0
        self._rows = pa.table({})

    def __len__(self) -> int:
        return int(self._rows.num_rows)

    def snapshot(self) -> pa.Table:
        """Return the rows."""
        return self._rows

    def reshape(self, schema: pa.Schema) -> None:
        """Change to these columns; older rows have nulls in new ones."""
        self._rows = fitted(self._rows, schema)

    def add(self, rows: pa.Table, _delete_when: str | None, limit: int) -> None:
        """Add rows at the end."""
        joined = joined_by(self._rows, rows)
        over = max(0, joined.num_rows - limit)
        self.dropped += over
        self._rows = in_few_pieces(joined.slice(over))


class Keyed:
    """The newest row of each key, in the order of writing; the keys that rested longest fall out.

    Rows are only ever added; `_place` knows where the newest one of each key is, and `_alive` which
    rows are such. A dict keeps the order in which its keys came, so places rise from first to last.

    >>> rows = Keyed(("id",))
    >>> rows.add(pa.table({"id": [1, 2, 1], "n": [1, 2, 3], "gone": [False] * 3}), "gone", limit=9)
    >>> rows.add(pa.table({"id": [2, 3], "n": [0, 4], "gone": [True, False]}), "gone", limit=9)
    >>> rows.snapshot().to_pylist()
    [{'id': 1, 'n': 3}, {'id': 3, 'n': 4}]
    """

    def __init__(self, key: Sequence[str]) -> None:
        self.key = tuple(key)
        self.dropped = 0
        self._rows = pa.table({})
        self._alive = np.zeros(0, bool)
        self._place: dict[Hashable, int] = {}
        self._seen: pa.Table | None = None

    def __len__(self) -> int:
        return len(self._place)

    def snapshot(self) -> pa.Table:
        """Return the rows; made once after each change."""
        if self._seen is None:
            whole = len(self._place) == len(self._alive)
            self._seen = self._rows if whole else self._rows.filter(pa.array(self._alive))
        return self._seen

    def reshape(self, schema: pa.Schema) -> None:
        """Change to these columns; older rows have nulls in new ones."""
        self._rows = fitted(self._rows, schema)
        self._seen = None

    def add(self, rows: pa.Table, delete_when: str | None, limit: int) -> None:
        """Put each row in the place of the one with its key, or take that one away."""
        keys, newest = self._newest(rows)
        self._take_away(keys)
        if delete_when is not None:
            gone = pc.fill_null(newest.column(delete_when), False)
            if pc.any(gone).as_py():
                stays = pc.invert(gone)
                keys, newest = list(compress(keys, stays.to_pylist())), newest.filter(stays)
            newest = newest.drop_columns([delete_when])
        first = self._rows.num_rows
        self._rows = joined_by(self._rows, newest)
        self._alive = np.concatenate([self._alive, np.ones(newest.num_rows, bool)])
        self._place.update(zip(keys, range(first, first + len(keys)), strict=True))
        if (over := len(self._place) - limit) > 0:
            self._take_away(list(islice(self._place, over)))
            self.dropped += over
        self._tidy()
        self._seen = None

    def _newest(self, rows: pa.Table) -> tuple[list[Hashable], pa.Table]:
        columns = [_plain(rows.column(name)).to_pylist() for name in self.key]
        keys = columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))
        last = dict(zip(keys, range(len(keys)), strict=True))
        if len(last) == len(keys):
            return keys, rows
        at = np.sort(np.fromiter(last.values(), np.int64, len(last)))
        return [keys[each] for each in at], rows.take(pa.array(at))

    def _take_away(self, keys: Sequence[Hashable]) -> None:
        gone = np.fromiter(map(self._place.pop, keys, repeat(-1)), np.int64, len(keys))
        self._alive[gone[gone >= 0]] = False

    def _tidy(self) -> None:
        """Leave the dead rows behind where there are many, and join the pieces."""
        if len(self._alive) - len(self._place) > max(_DEAD, len(self._place)):
            self._rows = self._rows.filter(pa.array(self._alive)).combine_chunks()
            self._alive = np.ones(len(self._place), bool)
            self._place = dict(zip(self._place, range(len(self._place)), strict=True))
        self._rows = in_few_pieces(self._rows)


def _plain(column: Any) -> Any:
    """Return times as numbers: as Python's objects they cost ten times as much."""
    if not pa.types.is_temporal(column.type):
        return column
    return column.cast(pa.int32() if column.type.bit_width == 32 else pa.int64())


def joined_by(rows: pa.Table, more: pa.Table) -> pa.Table:
    """Return both, in the columns of the first, which is as wide as the second at least."""
    if not rows.num_columns:
        return more
    return pa.concat_tables([rows, fitted(more, rows.schema)])


def fitted(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return the rows with these columns: wider types, and nulls where a column is new.

    >>> fitted(pa.table({"A": [1]}), pa.schema({"a": pa.int64(), "b": pa.string()})).to_pylist()
    [{'a': 1, 'b': None}]
    """
    by_name = {name.lower(): rows.column(name) for name in rows.schema.names}
    columns = [
        by_name[field.name.lower()].cast(field.type)
        if field.name.lower() in by_name
        else pa.nulls(rows.num_rows, field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def in_few_pieces(rows: pa.Table) -> pa.Table:
    """Return the rows in one piece where there are many of them."""
    many = rows.num_columns and rows.column(0).num_chunks > _PIECES
    return rows.combine_chunks() if many else rows
