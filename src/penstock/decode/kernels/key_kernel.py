"""The keys of records, decoded with their values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from penstock.decode.kernels.merging import WithTombstones
from penstock.decode.kernels.outcome import Decoded, Failure, Kernel


def with_keys(value: Callable[[], Kernel], key: Callable[[], Kernel], prefix: str) -> WithKeys:
    """Make the kernel of values and keys, in the worker that runs it."""
    return WithKeys(value(), WithTombstones(key()), prefix)


@dataclass(frozen=True)
class WithKeys:
    """A kernel whose rows have the columns of the record's key, too.

    A record whose key does not decode, or is not one row, is a failure, as one whose value does not.
    """

    value: Kernel
    key: Kernel
    prefix: str

    def __call__(self, batch: pa.RecordBatch) -> Decoded:
        """Return the rows with the columns of both."""
        rows = self.value(batch)
        keys = self.key(pa.RecordBatch.from_arrays([batch.column("key")], ["value"]))
        key_of, bad_keys = _one_each(keys, batch.num_rows)
        origins = _origins(rows)
        known = {failure.index for failure in rows.failures}
        failures = [*rows.failures, *(each for each in bad_keys if each.index not in known)]
        values = rows.rows
        if bad_keys:
            has_key = key_of[origins] >= 0
            values, origins = values.filter(pa.array(has_key)), origins[has_key]
        columns = [*values.columns, *keys.rows.take(pa.array(key_of[origins])).columns]
        names = [*values.schema.names, *(f"{self.prefix}{n}" for n in keys.rows.schema.names)]
        failures.sort(key=lambda failure: failure.index)
        one_each = rows.origins is None and not failures
        return Decoded(
            pa.RecordBatch.from_arrays(columns, names),
            failures,
            None if one_each else pa.array(origins, pa.int64()),
        )


def _origins(decoded: Decoded) -> np.ndarray:
    if decoded.origins is None:
        return np.arange(decoded.rows.num_rows)
    return np.asarray(decoded.origins.to_numpy(zero_copy_only=False))


def _one_each(keys: Decoded, records: int) -> tuple[np.ndarray, list[Failure]]:
    """Return the row of each record's key, -1 where it has none, and a failure for each of those."""
    origins = _origins(keys)
    failures = [replace(each, message=f"key: {each.message}") for each in keys.failures]
    counts = np.bincount(origins, minlength=records)
    counts[[each.index for each in failures]] = 1
    for at in np.flatnonzero(counts != 1).tolist():
        failures.append(
            Failure(at, "NotOneRow", f"key: it decodes to {counts[at]} rows, and a key has one")
        )
    key_of = np.full(records, -1)
    key_of[origins] = np.arange(len(origins))
    key_of[[each.index for each in failures]] = -1
    return key_of, failures
