"""Payloads of JsonConverter to a column: JSON texts of values that one schema describes."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from penstock.decode.kernels.connect.aligned import Aligned, converted, moved, scattered
from penstock.decode.kernels.connect.conforming import conformed
from penstock.decode.kernels.connect.wire_types import Convert, How, has_reals, is_required, wire_of
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
        self._written = written
        self._wanted = wanted or written
        self._empty = pa.nulls(0, arrow_type(self._wanted))
        self._usual = self._way(How(replace_null))
        # Made when a record does not fit the usual one.
        self._with_words = (
            partial(self._way, How(replace_null, quoted_reals=True)) if has_reals(written) else None
        )

    def _way(self, how: How) -> _Way:
        wire = wire_of(self._written, how)
        field = columns.Field(PAYLOAD, wire.type, is_required(self._written, how))
        return _Way(JsonKernel(Columns((field,)), closed=True), wire.convert)

    def __call__(self, payloads: pa.Array) -> Aligned:
        """Return the values of payloads, texts of JSON."""
        return self.documents(joined(_BEGIN, payloads, b"}"))

    def documents(self, documents: pa.Array) -> Aligned:
        """Return the values of objects that have a payload and nothing else."""
        read = self._read(self._usual, documents)
        if not read.failures or self._with_words is None:
            return read
        again = [failure.index for failure in read.failures]
        second = self._read(self._with_words(), documents.take(pa.array(again)))
        places = np.arange(len(documents))
        places[again] = len(documents) + np.arange(len(again))
        values = pa.concat_arrays([read.values, second.values]).take(pa.array(places))
        return Aligned(values, moved(second.failures, again))

    def _read(self, way: _Way, documents: pa.Array) -> Aligned:
        rows, failures = way.kernel.decode(documents)
        bad = {failure.index for failure in failures}
        places = [at for at in range(len(documents)) if at not in bad]
        read = converted(
            rows.column(PAYLOAD),
            lambda each: conformed(way.convert(each), self._wanted),
            self._empty,
        )
        return Aligned(
            scattered(read.values, places, len(documents)),
            [*failures, *moved(read.failures, places)],
        )


class _Way(NamedTuple):
    kernel: JsonKernel
    convert: Convert
