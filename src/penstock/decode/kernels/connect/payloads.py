"""Payloads of JsonConverter to a column: JSON texts of values that one schema describes."""

from __future__ import annotations

import pyarrow as pa

from penstock.decode.kernels.connect.aligned import Aligned, converted, moved, scattered
from penstock.decode.kernels.connect.conforming import conformed
from penstock.decode.kernels.connect.wire_types import is_required, wire_of
from penstock.decode.kernels.json.json_kernel import JsonKernel
from penstock.encode.column_bytes import joined
from penstock.formats.connect.arrow_types import arrow_type
from penstock.formats.connect.schema import Schema
from penstock.pipeline import columns
from penstock.pipeline.schema import Schema as Columns

PAYLOAD = "payload"
_BEGIN = b'{"payload":'


class PayloadReader:
    """Reads payloads that were written with one schema, into a column of another one.

    >>> from penstock.formats.connect import decimal
    >>> reader = PayloadReader(decimal(2), True)
    >>> read = reader(pa.array([b'"AN8="', b"1.5", b"true"]))
    >>> read.values.to_pylist(), read.failures[0].index, read.failures[0].message
    ([Decimal('2.23'), Decimal('1.50'), None], 2, 'a decimal is a number, or base64 of its digits')
    """

    def __init__(self, written: Schema, replace_null: bool, wanted: Schema | None = None) -> None:
        wire = wire_of(written, replace_null)
        field = columns.Field(PAYLOAD, wire.type, is_required(written, replace_null))
        self._kernel = JsonKernel(Columns((field,)), closed=True)
        self._convert = wire.convert
        self._wanted = wanted or written
        self._empty = pa.nulls(0, arrow_type(self._wanted))

    def __call__(self, payloads: pa.Array) -> Aligned:
        """Return the values of payloads, texts of JSON."""
        return self.documents(joined(_BEGIN, payloads, b"}"))

    def documents(self, documents: pa.Array) -> Aligned:
        """Return the values of objects that have a payload and nothing else."""
        rows, failures = self._kernel.decode(documents)
        bad = {failure.index for failure in failures}
        places = [at for at in range(len(documents)) if at not in bad]
        read = converted(rows.column(PAYLOAD), self._conform, self._empty)
        return Aligned(
            scattered(read.values, places, len(documents)),
            [*failures, *moved(read.failures, places)],
        )

    def _conform(self, column: pa.Array) -> pa.Array:
        return conformed(self._convert(column), self._wanted)
