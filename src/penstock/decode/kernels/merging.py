"""Parts of a batch that were decoded separately, as one result in the order of the records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.decode.kernels.outcome import Decoded, Failure, Kernel

Part = tuple[pa.Array, Decoded]
"""The indexes of some records in their batch, and what became of them."""


def of_records(rows: pa.RecordBatch, failures: Sequence[Failure], records: int) -> Decoded:
    """Return what became of some records that have one row each, but for those that failed."""
    if not failures:
        return Decoded(rows, ())
    good = np.delete(np.arange(records), [failure.index for failure in failures])
    return Decoded(rows, failures, pa.array(good, pa.int64()))


def merged(parts: Sequence[Part], others: Sequence[Failure] = ()) -> Decoded:
    """Return the rows of all parts in the order of their records, and the failures, too.

    `others` are failures of records that are in no part.

    >>> rows = [pa.record_batch({"n": [0, 2]}), pa.record_batch({"n": [1]})]
    >>> parts = [(pa.array([0, 2]), Decoded(rows[0], ())), (pa.array([1]), Decoded(rows[1], ()))]
    >>> merged(parts).rows.column("n").to_pylist()
    [0, 1, 2]
    """
    rows = pa.concat_batches([decoded.rows for _, decoded in parts])
    origins = pa.concat_arrays([_origins(*part) for part in parts])
    order = pc.array_sort_indices(origins)  # stable: the rows of one record stay in order
    failures = [
        replace(failure, index=places[failure.index].as_py())
        for places, decoded in parts
        for failure in decoded.failures
    ]
    failures += others
    failures.sort(key=lambda failure: failure.index)
    return Decoded(rows.take(order), failures, origins.take(order))


@dataclass(frozen=True)
class WithTombstones:
    """A kernel that never sees a record without a value.

    The order of the records is kept: a key that is deleted and written again must end written.
    """

    kernel: Kernel

    def __call__(self, batch: pa.RecordBatch) -> Decoded:
        """Return the rows of the kernel, and one of nulls for each tombstone."""
        empty = pc.is_null(batch.column("value"))
        if not pc.any(empty).as_py():
            return self.kernel(batch)
        places = pa.array(range(batch.num_rows), pa.int64())
        full, gone = places.filter(pc.invert(empty)), places.filter(empty)
        decoded = self.kernel(batch.take(full))
        schema = decoded.rows.schema
        nulls = [pa.nulls(len(gone), field.type) for field in schema]
        tombstones = Decoded(pa.RecordBatch.from_arrays(nulls, schema=schema), ())
        return merged([(full, decoded), (gone, tombstones)])


def without(bad: Sequence[int], decoded: Decoded) -> Decoded:
    """Return the rows of the records that are not among the bad ones."""
    if not bad or decoded.origins is None:
        return decoded
    keep = pa.array(~np.isin(decoded.origins.to_numpy(), bad))
    return replace(decoded, rows=decoded.rows.filter(keep), origins=decoded.origins.filter(keep))


def _origins(places: pa.Array, decoded: Decoded) -> pa.Array:
    return places if decoded.origins is None else places.take(decoded.origins)
