"""Rows as text for databases that read CSV: whole Arrow batches at a time."""

from __future__ import annotations

import io

import pyarrow as pa
from pyarrow.csv import WriteOptions, write_csv


def csv(batch: pa.RecordBatch, null: str) -> memoryview:
    """Return the batch as CSV: texts stand in quotes, a null is `null` without quotes.

    >>> bytes(csv(pa.RecordBatch.from_pydict({"a": ["x,", "", None], "n": [1, None, 3]}), null=""))
    b'"x,",1\\n"",\\n,3\\n'
    """
    written = io.BytesIO()
    write_csv(batch, written, WriteOptions(include_header=False, null_string=null))
    return written.getbuffer()


def csv_in_utc(batch: pa.RecordBatch) -> memoryview:
    """Return the batch as CSV with NULL for a null, and moments in UTC without saying so.

    >>> moments = pa.array([0, None], pa.timestamp("us", "Europe/Rome"))
    >>> bytes(csv_in_utc(pa.RecordBatch.from_pydict({"at": moments})))
    b'1970-01-01 00:00:00.000000\\nNULL\\n'
    """
    columns = [
        column.cast(pa.timestamp("us")) if pa.types.is_timestamp(column.type) else column
        for column in batch.columns
    ]
    return csv(pa.RecordBatch.from_arrays(columns, batch.schema.names), null="NULL")
