"""Runs a Python parser over whole tables of records.

Where it fails on a table, the table is halved until the record is found that it fails on alone.
"""

from __future__ import annotations

from typing import Any, Literal

import pyarrow as pa

from penstock.decode.kernels.failure import Failure
from penstock.decode.kernels.fitting import Fitting
from penstock.decode.kernels.outcome import Decoded
from penstock.decode.kernels.parser import failure
from penstock.errors import TransientError
from penstock.pipeline.schema import Schema
from penstock.pipeline.values import Function

TableForm = Literal["pandas", "arrow"]
_NAMES = {"value": "payload", "key": "key", "topic": "topic"}


class TableParserKernel:
    """A batch of records, as one table with the columns payload, key and topic, through a parser."""

    def __init__(self, function: Function, schema: Schema, form: TableForm) -> None:
        self._parse = function.load()
        self._fitting = Fitting(schema)
        self._form = form

    def __call__(self, batch: pa.RecordBatch) -> Decoded:
        """Return the rows of the records that parse and fit, and a failure for each other record."""
        failures: list[Failure] = []
        return Decoded(self._rows(batch, 0, failures), failures)

    def _rows(self, batch: pa.RecordBatch, first: int, failures: list[Failure]) -> pa.RecordBatch:
        if not batch.num_rows:
            return self._fitting.batch([])
        try:
            return self._fitting.table(self._parse(self._as_table(batch)))
        except TransientError:
            raise
        except Exception as error:  # the parser is the user's
            if batch.num_rows == 1:
                failures.append(failure(first, error))
                return self._fitting.batch([])
        middle = batch.num_rows // 2
        halves = [
            self._rows(batch.slice(0, middle), first, failures),
            self._rows(batch.slice(middle), first + middle, failures),
        ]
        return pa.concat_batches(halves)

    def _as_table(self, batch: pa.RecordBatch) -> Any:
        columns = {new: batch.column(old).cast(pa.string()) for old, new in _NAMES.items()}
        table = pa.table(columns)
        return table.to_pandas() if self._form == "pandas" else table
