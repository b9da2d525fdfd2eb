"""Reads a table back: row by row from the database into a file that Spark reads, in bounded memory.

Values travel as text, which every database gives and Spark casts; bytes stay bytes.
"""

from __future__ import annotations

import atexit
import json
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import functions as f
from pyspark.sql.types import BinaryType, DataType, StructType

from penstock.sinks.jdbc.kinds import NESTED

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_CHUNK = 10_000


def as_frame(
    spark: SparkSession, rows: Iterable[tuple[Any, ...]], columns: StructType
) -> DataFrame:
    """Return the rows with these columns."""
    folder = Path(tempfile.mkdtemp(prefix="penstock-read-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    file = folder / "rows.parquet"
    plain = pa.schema([(field.name, _carrier(field.dataType)) for field in columns.fields])
    with pq.ParquetWriter(file, plain) as writer:
        for chunk in _chunks(iter(rows)):
            arrays = [
                _column(values, kind) for values, kind in zip(chunk, plain.types, strict=True)
            ]
            writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=plain))
    found = spark.read.parquet(str(file))
    return found.select(*(_typed(field.name, field.dataType) for field in columns.fields))


def _chunks(rows: Iterator[tuple[Any, ...]]) -> Iterator[list[tuple[Any, ...]]]:
    while chunk := list(islice(rows, _CHUNK)):
        yield list(zip(*chunk, strict=True))


def _carrier(kind: DataType) -> pa.DataType:
    return pa.binary() if isinstance(kind, BinaryType) else pa.string()


def _column(values: tuple[Any, ...], carrier: pa.DataType) -> pa.Array:
    change = bytes if carrier == pa.binary() else _text
    return pa.array([None if value is None else change(value) for value in values], carrier)


def _text(value: Any) -> str:
    return json.dumps(value) if isinstance(value, (dict, list)) else str(value)


def _typed(name: str, kind: DataType) -> Column:
    column = f.col(f"`{name}`")
    if isinstance(kind, NESTED):
        return f.from_json(column, kind).alias(name)  # type: ignore[arg-type]
    return column.cast(kind).alias(name)
