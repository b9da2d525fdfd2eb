"""Protobuf bodies to Arrow rows: whole batches at once, and a failure for each bad body.

Plain bodies are decoded in bulk from the bytes of the batch. The others are read one by one by protobuf's
own parser, which decides whether they are bad. Decision 026 has the measurements.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa
from google.protobuf.descriptor import Descriptor

from penstock.decode.kernels.arrow_kernel import arrow_schema
from penstock.decode.kernels.outcome import Failure
from penstock.decode.kernels.protobuf import protobuf_scan
from penstock.decode.kernels.protobuf.protobuf_arrays import MessageArrays
from penstock.decode.kernels.protobuf.protobuf_evolution import check_evolution
from penstock.decode.kernels.protobuf.protobuf_reading import ProtobufReference
from penstock.decode.kernels.protobuf.protobuf_scan import Cells, OddBodiesError
from penstock.decode.kernels.protobuf.protobuf_types import message_columns, protobuf_table_schema
from penstock.decode.kernels.protobuf.protobuf_wire import Window
from penstock.decode.kernels.varint_words import Ints
from penstock.errors import FormatError
from penstock.formats.limits import decoded_limit
from penstock.formats.protobuf.protobuf_size import PACKED

__all__ = ["ProtobufBodies", "protobuf_table_schema"]

# Few enough for the processor's cache.
_ROWS = 8192
# Reading packed numbers takes about 40 times their size for a moment.
_MOST_BYTES = 4 * 2**20
# Each attempt leaves out the bodies that were found odd; then the parser reads all of the slice.
_ATTEMPTS = 4


class ProtobufBodies:
    """Decodes bodies of the message `written` into the columns of the message `wanted`.

    Examples
    --------
    >>> from google.protobuf.wrappers_pb2 import Int32Value, Int64Value
    >>> decode = ProtobufBodies(Int32Value.DESCRIPTOR, Int64Value.DESCRIPTOR)
    >>> rows, failures = decode(pa.array([Int32Value(value=5).SerializeToString(), b"?"]))
    >>> rows.to_pylist(), [(failure.index, failure.error_type) for failure in failures]
    ([{'value': 5}], [(1, 'MalformedProtobuf')])
    """

    def __init__(self, written: Descriptor, wanted: Descriptor) -> None:
        check_evolution(written, wanted)
        self.schema = protobuf_table_schema(wanted)
        self.arrow_schema = arrow_schema(self.schema)
        columns = message_columns(wanted)
        self._arrays = MessageArrays(wanted, columns)
        self._reference = ProtobufReference(wanted, columns, self.arrow_schema)

    def __call__(self, bodies: pa.Array) -> tuple[pa.RecordBatch, list[Failure]]:
        """Return the rows of the good bodies, in order, and a failure for each of the others."""
        batches, failures = [pa.RecordBatch.from_pylist([], schema=self.arrow_schema)], []
        for start, rows in self._slices(bodies):
            batch, bad = self._decode_few(bodies.slice(start, rows))
            batches.append(batch)
            failures += [replace(failure, index=start + failure.index) for failure in bad]
        return pa.concat_batches(batches[1:] if len(batches) > 1 else batches), failures

    def _slices(self, bodies: pa.Array) -> Iterator[tuple[int, int]]:
        """Cut into as many bodies as may be decoded at a time, by their number and their size."""
        limit = _most_bytes()
        sizes = np.concatenate([[0], np.cumsum(_sizes(bodies))])
        start = 0
        while start < len(bodies):
            fitting = int(np.searchsorted(sizes, sizes[start] + limit, "right")) - 1 - start
            rows = max(1, min(_ROWS, fitting, len(bodies) - start))
            yield start, rows
            start += rows

    def _decode_few(self, bodies: pa.Array) -> tuple[pa.RecordBatch, list[Failure]]:
        if len(bodies) < max(1, protobuf_scan.FEW) or _sizes(bodies).sum() > _most_bytes():
            return self._reference(bodies)
        try:
            return self._plain_and_odd(bodies)
        except FormatError:  # together they take too much memory
            if len(bodies) == 1:
                return self._reference(bodies)
        half = len(bodies) // 2
        (first, bad), (second, others) = (
            self._decode_few(each) for each in (bodies[:half], bodies[half:])
        )
        bad += [replace(failure, index=half + failure.index) for failure in others]
        return pa.concat_batches([first, second]), bad

    def _plain_and_odd(self, bodies: pa.Array) -> tuple[pa.RecordBatch, list[Failure]]:
        plain, odd = np.arange(len(bodies)), np.zeros(0, np.int64)
        for _ in range(_ATTEMPTS):
            try:
                rows = self._in_bulk(bodies if len(odd) == 0 else bodies.take(pa.array(plain)))
            except OddBodiesError as error:
                odd = np.concatenate([odd, plain[error.records]])
                plain = np.delete(plain, error.records)
            else:
                return (rows, []) if len(odd) == 0 else self._merged(bodies, rows, plain, odd)
        return self._reference(bodies)

    def _in_bulk(self, bodies: pa.Array) -> pa.RecordBatch:
        window = Window(bodies)
        cells = Cells(np.arange(len(bodies)), window.starts, window.ends)
        return pa.RecordBatch.from_arrays(self._arrays(window, cells), schema=self.arrow_schema)

    def _merged(
        self, bodies: pa.Array, rows: pa.RecordBatch, plain: Ints, odd: Ints
    ) -> tuple[pa.RecordBatch, list[Failure]]:
        odd = np.sort(odd)
        others, failures = self._reference(bodies.take(pa.array(odd)))
        failures = [replace(each, index=int(odd[each.index])) for each in failures]
        good = np.setdiff1d(odd, [each.index for each in failures], assume_unique=True)
        order = np.argsort(np.concatenate([plain, good]), kind="stable")
        return pa.concat_batches([rows, others]).take(pa.array(order)), failures


def _most_bytes() -> int:
    return min(_MOST_BYTES, decoded_limit() // (2 * PACKED))


def _sizes(bodies: pa.Array) -> Ints:
    offsets = np.frombuffer(bodies.buffers()[1], np.int32)
    ends: Ints = offsets[bodies.offset : bodies.offset + len(bodies) + 1].astype(np.int64)
    return ends[1:] - ends[:-1]
