"""Ids of messages that stay the same when a batch is written again: the place of the row's record."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from penstock.pipeline import ORIGIN


class RecordIds:
    """Gives each row the id `topic-partition-offset`; further rows of one record get a number, too.

    For the rows of one task, in their order.
    """

    def __init__(self) -> None:
        self._last: str | None = None
        self._count = 0

    def of(self, rows: pa.RecordBatch) -> pa.Array | None:
        """Return the ids; None where it is not known which record a row was made of.

        >>> rows = {"_penstock_topic": ["t", "t"], "_penstock_partition": [0, 0],
        ...         "_penstock_offset": [7, 7]}
        >>> RecordIds().of(pa.RecordBatch.from_pydict(rows)).to_pylist()
        ['t-0-7', 't-0-7.1']
        """
        if ORIGIN[0] not in rows.schema.names:
            return None
        texts = [rows.column(name).cast(pa.string()) for name in ORIGIN]
        places = pc.binary_join_element_wise(*texts, "-")
        before = pa.concat_arrays(
            [pa.array([self._last], pa.string()), places.slice(0, len(places) - 1)]
        )
        repeated = pc.fill_null(pc.equal(places, before), False)
        if pc.any(repeated).as_py():
            places = self._numbered(places, repeated)
        else:
            self._count = 0
        self._last = _place(rows, rows.num_rows - 1)
        return places

    def _numbered(self, places: pa.Array, repeated: pa.Array) -> pa.Array:
        ids = []
        for place, again in zip(places.to_pylist(), repeated.to_pylist(), strict=True):
            self._count = self._count + 1 if again else 0
            ids.append(f"{place}.{self._count}" if self._count else place)
        return pa.array(ids, pa.string())


def _place(rows: pa.RecordBatch, row: int) -> str:
    return "-".join(str(rows.column(name)[row].as_py()) for name in ORIGIN)
