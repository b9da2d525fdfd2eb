"""Records without a value, as rows: nothing but their metadata, in their place among the others."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from penstock.decode.kernels.outcome import Decoded, Kernel


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
        full = places.filter(pc.invert(empty))
        decoded = self.kernel(batch.take(full))
        origins = full if decoded.origins is None else full.take(decoded.origins)
        failures = [replace(f, index=full[f.index].as_py()) for f in decoded.failures]
        gone = places.filter(empty)
        rows = pa.concat_batches([decoded.rows, _nulls(decoded.rows.schema, len(gone))])
        unsorted = pa.concat_arrays([origins, gone])
        order = pc.array_sort_indices(unsorted)  # stable: the rows of one record stay in order
        return Decoded(rows.take(order), failures, unsorted.take(order))


def _nulls(schema: pa.Schema, count: int) -> pa.RecordBatch:
    columns = [pa.nulls(count, field.type) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
