"""Reads a table back: row by row from the database into a file that Spark reads, in bounded memory.

Values travel as text, which every database gives and Spark casts; bytes stay bytes.
"""

from __future__ import annotations

import atexit
import json
import shutil
import tempfile
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import BinaryType, DataType, StructType

from penstock.pipeline.names import quoted
from penstock.sinks.database.type_map import NESTED

_CHUNK = 10_000


def as_frame(
    spark: SparkSession, rows: Iterable[tuple[Any, ...]], columns: StructType
) -> DataFrame:
    """Return the rows with these columns."""
    folder = Path(tempfile.mkdtemp(prefix="penstock-read-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    file = folder / "rows.parquet"
    binary = {field.name for field in columns.fields if isinstance(field.dataType, BinaryType)}
    plain = pa.schema([(n, pa.binary() if n in binary else pa.string()) for n in columns.names])
    remaining = iter(rows)
    with pq.ParquetWriter(file, plain) as writer:
        while chunk := list(islice(remaining, _CHUNK)):
            by_column = zip(*chunk, strict=True)
            arrays = [
                _array(cells, kind) for cells, kind in zip(by_column, plain.types, strict=True)
            ]
            writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=plain))
    frame = spark.read.parquet(str(file))
    return frame.select(*(_typed(field.name, field.dataType) for field in columns.fields))


def _array(cells: tuple[Any, ...], kind: pa.DataType) -> pa.Array:
    change = bytes if kind == pa.binary() else _text
    return pa.array([None if cell is None else change(cell) for cell in cells], kind)


def _text(value: Any) -> str:
    return json.dumps(value) if isinstance(value, (dict, list)) else str(value)


def _typed(name: str, kind: DataType) -> Column:
    column = f.col(quoted(name))
    if isinstance(kind, NESTED):
        return f.from_json(column, kind).alias(name)  # type: ignore[arg-type]
    return column.cast(kind).alias(name)
