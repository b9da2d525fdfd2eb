"""Records of several formats in one batch: each is detected by its first bytes, as the client does."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.decode.kernels.json.json_kernel import JsonKernel
from penstock.decode.kernels.json.json_list_kernel import JsonListKernel
from penstock.decode.kernels.merging import merged
from penstock.decode.kernels.message_kernel import arrow_kernel, dolphindb_kernel
from penstock.decode.kernels.outcome import Decoded
from penstock.formats.detect import ARROW_START
from penstock.pipeline.schema import Schema

Decode = Callable[[pa.Array], Decoded]


class AutoKernel:
    """Decodes JSON (an object, or a list of objects), Arrow streams and DolphinDB's values.

    >>> from penstock.formats import find_format
    >>> values = [b'{"n": 1}', find_format("arrow").encode([2, 3]), b'[{"n": 4}]']
    >>> AutoKernel(Schema.parse("n bigint")).decode(pa.array(values)).rows.column("n").to_pylist()
    [1, 2, 3, 4]
    """

    def __init__(self, schema: Schema) -> None:
        self._json = JsonKernel(schema)
        self._others: list[Decode] = [
            JsonListKernel(schema).decode,
            arrow_kernel(schema).decode,
            dolphindb_kernel(schema).decode,
        ]

    def __call__(self, batch: pa.RecordBatch) -> Decoded:
        """Return the rows and failures of a batch of records."""
        return self.decode(batch.column("value"))

    def decode(self, values: pa.Array) -> Decoded:
        """Return the rows of the good records, in order, and a failure for each of the others."""
        formats = _formats(values)
        parts = []
        for number, decode in enumerate([self._decode_objects, *self._others]):
            places = pa.array(np.flatnonzero(formats == number), pa.int64())
            if len(places) == len(values):
                return decode(values)
            if len(places):
                parts.append((places, decode(values.take(places))))
        return merged(parts)

    def _decode_objects(self, values: pa.Array) -> Decoded:
        return self._json(pa.RecordBatch.from_arrays([values], ["value"]))


def _formats(values: pa.Array) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return 0 for an object of JSON, 1 for a list, 2 for Arrow, 3 for DolphinDB; no value is 0."""
    number = pa.scalar(3)
    for place, start in ((2, ARROW_START), (1, b"["), (0, b"{")):
        number = pc.if_else(pc.starts_with(values, start), place, number)
    number = pc.if_else(pc.equal(pc.binary_length(values), 0), 0, number)
    found: np.ndarray[tuple[int], np.dtype[np.int64]] = pc.fill_null(number, 0).to_numpy()
    return found
