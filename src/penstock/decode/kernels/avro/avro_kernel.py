"""Avro bodies to Arrow rows, a column at a time for all records: no Python object for each of them.

A body in which anything is wrong is only marked. Then the reader of single values, which the client uses,
reads it once more, for the error message.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.decode.kernels.arrow_kernel import arrow_schema
from penstock.decode.kernels.avro.avro_plan import Plan
from penstock.decode.kernels.avro.avro_table import avro_table_schema
from penstock.decode.kernels.avro.lanes import Batch, Mask
from penstock.decode.kernels.outcome import Failure
from penstock.formats.avro.avro_primitives import Body
from penstock.formats.avro.avro_reader import Readers
from penstock.formats.avro.avro_schema import Parsed
from penstock.formats.limits import decoded_limit

__all__ = ["AvroBodies", "avro_table_schema"]
MALFORMED = "MalformedAvro"
# What is read at a time: positions and results together take up to a hundred times the bytes.
_ROWS, _BYTES = 8192, 2**20
_ITEM = 72


class AvroBodies:
    """Decodes bodies of one schema into the columns of another one.

    >>> from penstock.formats.registry import Registry, Schema
    >>> text = '{"type": "record", "name": "T", "fields": [{"name": "id", "type": "long"}]}'
    >>> schema = Parsed(Schema(text, "AVRO"), Registry("http://registry"))
    >>> rows, failures = AvroBodies(schema, schema)(pa.array([bytes([2]), b"", bytes([4])]))
    >>> rows.to_pylist(), failures[0].index, failures[0].message
    ([{'id': 1}, {'id': 2}], 1, 'the bytes end too early')
    """

    def __init__(self, written: Parsed, wanted: Parsed) -> None:
        self._schemas = (written, wanted)
        self.schema = avro_table_schema(wanted)
        self.arrow_schema = arrow_schema(self.schema)
        self._read_one = Readers(written.names, wanted.names).make(written.root, wanted.root)
        plan = Plan(written.names, wanted.names)
        self._record = plan.record(written.root, wanted.root)
        self._most_of_a_byte = plan.cost + _ITEM

    def __reduce__(self) -> tuple[Any, ...]:
        return AvroBodies, self._schemas

    def __call__(self, bodies: pa.Array) -> tuple[pa.RecordBatch, list[Failure]]:
        """Return the rows of the good bodies, in order, and a failure for each of the others."""
        batches, failures = [], []
        for start, rows in _slices(bodies):
            part = bodies.slice(start, rows)
            batch, bad = self._decode(part)
            batches.append(batch)
            for at in np.flatnonzero(bad).tolist():
                failures.append(Failure(start + at, MALFORMED, self._reason(part[at].as_py())))
        if len(batches) == 1:
            return batches[0], failures
        none = pa.RecordBatch.from_pylist([], schema=self.arrow_schema)
        return pa.concat_batches(batches or [none]), failures

    def _decode(self, bodies: pa.Array) -> tuple[pa.RecordBatch, Mask]:
        batch = Batch(bodies)
        longest = int(np.diff(batch.ends).max()) + 1
        if longest * self._most_of_a_byte > decoded_limit():
            batch.spent = np.zeros(len(bodies), np.int64)
        lanes = batch.lanes()
        columns = self._record.columns(lanes)
        lanes.refuse(lanes.at != lanes.end)
        if batch.spent is not None:
            batch.bad |= batch.spent > decoded_limit()
        if batch.bad.any():
            good = pa.array(~batch.bad)
            columns = [column.filter(good) for column in columns]
        return pa.RecordBatch.from_arrays(columns, schema=self.arrow_schema), batch.bad

    def _reason(self, body: bytes) -> str:
        try:
            _, end = self._read_one(Body.of(body), 0)
        except Exception as error:  # damaged bytes may raise anything
            return f"{str(error) or type(error).__name__:.500}"
        if end == len(body):
            return "the columnar reader refused what the client reads; please report these bytes"
        return f"{len(body) - end} bytes follow the Avro value"


def _slices(bodies: pa.Array) -> Iterator[tuple[int, int]]:
    """Cut into as many bodies as are read at a time; of large ones fewer."""
    ends = np.frombuffer(bodies.buffers()[1], np.int32)[bodies.offset :][: len(bodies) + 1]
    start = 0
    while start < len(bodies):
        fits = int(np.searchsorted(ends, int(ends[start]) + _BYTES, "right")) - 1 - start
        rows = min(max(fits, 1), _ROWS, len(bodies) - start)
        yield start, rows
        start += rows
