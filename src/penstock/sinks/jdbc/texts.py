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
