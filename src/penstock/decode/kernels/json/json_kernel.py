"""JSON records to Arrow rows under a declared schema: strict, in bulk, without cost for valid records.

A batch is parsed by msgspec into typed records and turned into columns. Only when something does
not fit are records checked one by one, and only bad records pay for their error message.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from penstock.decode.kernels.arrow_kernel import arrow_schema
from penstock.decode.kernels.json.build import UNFIT, columns_of, record_class
from penstock.decode.kernels.json.strict import (
    MAX_DEPTH,
    ReferenceDecoder,
    refuse_deep,
    refuse_large,
)
from penstock.decode.kernels.outcome import Decoded, Failure, MisfitError
from penstock.pipeline.columns import Array, Map, Struct
from penstock.pipeline.schema import Schema

Misfits = dict[int, MisfitError]
# Records alive as Python objects at a time: enough to spread the cost of a call, few enough
# for the processor's cache. Measured: decision 001.
_FLAT_ROWS, _NESTED_ROWS = 8192, 2048
# The text of those records: as objects it takes many times as much.
_MOST_BYTES = 16 * 2**20
# A column that does not fit is split into parts, and those again, until few values are left
# and the reference decoder reads each of them.
_PARTS, _FEW = 8, 64


class JsonKernel:
    """Decodes JSON objects into the columns of a declared schema.

    Members that are not declared are ignored; with `closed` one at the top is that record's error.

    >>> kernel = JsonKernel(Schema.parse("symbol string not null, price double"))
    >>> batch, failures = kernel.decode(pa.array([b'{"symbol": "A", "price": 1}', b"{}"]))
    >>> batch.to_pylist(), failures[0].index, failures[0].message
    ([{'symbol': 'A', 'price': 1.0}], 1, 'symbol: found nothing, declared string not null')
    """

    def __init__(self, schema: Schema, *, closed: bool = False) -> None:
        self.schema = schema
        self.arrow_schema = arrow_schema(schema)
        self._closed = closed
        self._reference = ReferenceDecoder(schema, closed=closed)
        record = record_class(schema.struct, closed=closed)
        self._parser = msgspec.json.Decoder(record, float_hook=str)
        self._columns = columns_of(schema.struct)
        nested = any(isinstance(field.type, Array | Map | Struct) for field in schema.fields)
        self._rows = _NESTED_ROWS if nested else _FLAT_ROWS

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(JsonKernel, closed=self._closed), (self.schema,)

    def __call__(self, batch: pa.RecordBatch) -> Decoded:
        """Return the rows and failures of a batch of records."""
        rows, failures = self.decode(batch.column("value"))
        if not failures:
            return Decoded(rows, failures)
        bad = {failure.index for failure in failures}
        good = [index for index in range(batch.num_rows) if index not in bad]
        return Decoded(rows, failures, pa.array(good, pa.int64()))

    def decode(self, values: pa.Array) -> tuple[pa.RecordBatch, list[Failure]]:
        """Return the rows of the good records, in order, and a failure for each of the others."""
        with no_collection():
            return self._decode(values)

    def _decode(self, values: pa.Array) -> tuple[pa.RecordBatch, list[Failure]]:
        batches, failures = [], []
        for start, rows in self._slices(values):
            batch, misfits = self._decode_few(values.slice(start, rows))
            batches.append(batch)
            for at in sorted(misfits):
                failures.append(Failure(start + at, misfits[at].error_type, str(misfits[at])))
        if len(batches) == 1:
            return batches[0], failures
        none = pa.RecordBatch.from_pylist([], schema=self.arrow_schema)
        return pa.concat_batches(batches or [none]), failures

    def _slices(self, values: pa.Array) -> Iterator[tuple[int, int]]:
        """Cut into as many records as may be alive at a time; of large ones fewer."""
        start = 0
        while start < len(values):
            rows = self._rows
            while rows > 1 and _bytes_of(values.slice(start, rows)) > _MOST_BYTES:
                rows //= 2
            yield start, rows
            start += rows

    def _decode_few(self, values: pa.Array) -> tuple[pa.RecordBatch, Misfits]:
        records = self._parse_all(values)
        if records is not None:
            return self._to_batch(records, values)
        records, misfits = self._parse_each(values)
        kept = [at for at in range(len(values)) if at not in misfits]
        batch, more = self._to_batch(records, values.take(pa.array(kept, pa.int64())))
        return batch, misfits | {kept[at]: misfit for at, misfit in more.items()}

    def _parse_all(self, values: pa.Array) -> list[Any] | None:
        """Parse all records in one call; None when one may be bad."""
        if not _may_be_lines(values):
            return None
        try:
            _refuse_deep_ones(values)
            lines = memoryview(_lines(values))
            str(lines, "utf-8")
            records = self._parser.decode_lines(lines)
        except (msgspec.MsgspecError, RecursionError, MisfitError, *UNFIT):
            return None
        # Each value starts and ends as an object, and no object can go on past "}\n{": so each
        # value holds at least one document, and as many documents as values means one each.
        return records if len(records) == len(values) else None

    def _parse_each(self, values: pa.Array) -> tuple[list[Any], Misfits]:
        records, misfits = [], {}
        for at, value in enumerate(values.to_pylist()):
            try:
                records.append(self._parse_one(value))
            except MisfitError as misfit:
                misfits[at] = misfit
        return records, misfits

    def _parse_one(self, value: bytes | None) -> Any:
        try:
            refuse_large(value or b"")
            refuse_deep(value or b"")
            str(value or b"", "utf-8")
            return self._parser.decode(value or b"")
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            self._reference.decode(value)
            # Only a field that is given twice gets here: the last one counts, but each must fit.
            raise MisfitError("WrongType", str(error)) from None

    def _to_batch(self, records: list[Any], values: pa.Array) -> tuple[pa.RecordBatch, Misfits]:
        misfits: Misfits = {}
        arrays = [
            self._column(place, get(records), values, 0, misfits)
            for place, (get, _) in enumerate(self._columns)
        ]
        batch = pa.RecordBatch.from_arrays(arrays, schema=self.arrow_schema)
        if misfits:
            batch = batch.filter(pa.array([at not in misfits for at in range(len(records))]))
        return batch, misfits

    def _column(
        self, place: int, column: Sequence[Any], values: pa.Array, start: int, misfits: Misfits
    ) -> pa.Array:
        try:
            return self._columns[place][1](column)
        except UNFIT:
            if len(column) <= _FEW:
                return self._exact(place, values, start, misfits)
        size = max(_FEW, len(column) // _PARTS)
        parts = [
            self._column(place, column[at : at + size], values.slice(at, size), start + at, misfits)
            for at in range(0, len(column), size)
        ]
        return pa.concat_arrays(parts)

    def _exact(self, place: int, values: pa.Array, start: int, misfits: Misfits) -> pa.Array:
        cells: list[Any] = []
        for at, value in enumerate(values.to_pylist(), start):
            try:
                cells.append(self._reference.cell(value, place))
            except MisfitError as misfit:
                misfits.setdefault(at, misfit)
                cells.append(None)
        return pa.array(cells, self.arrow_schema.field(place).type)


@contextmanager
def no_collection() -> Iterator[None]:
    """Pause Python's garbage collection: records have no cycles, and it would visit all their lists."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _bytes_of(values: pa.Array) -> int:
    return pc.sum(pc.binary_length(values)).as_py() or 0


def _may_be_lines(values: pa.Array) -> bool:
    opened = pc.all(pc.starts_with(values, "{"), skip_nulls=False, min_count=1).as_py()
    closed = pc.all(pc.ends_with(values, "}"), skip_nulls=False, min_count=1).as_py()
    return opened is True and closed is True


def _refuse_deep_ones(values: pa.Array) -> None:
    # A record of this depth has as many closing brackets as opening ones: short ones are safe.
    sizes = pc.binary_length(values)
    if pc.max(sizes).as_py() > 2 * MAX_DEPTH:
        for value in values.filter(pc.greater(sizes, 2 * MAX_DEPTH)).to_pylist():
            refuse_large(value)
            refuse_deep(value)


def _lines(values: pa.Array) -> pa.Buffer:
    ends = pa.array([0, len(values)], pa.int32())
    newline = pa.scalar(b"\n", values.type)
    joined = pc.binary_join(pa.ListArray.from_arrays(ends, values), newline)
    return joined.buffers()[2]
