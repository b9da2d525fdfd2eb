"""Decoding in Python workers over whole Arrow batches: what json and python share.

A kernel turns a batch of records into rows and failures. It runs twice at most: for the rows of every
batch, and, only for a batch in which something failed, once more for the failed records themselves.
"""

from __future__ import annotations

import zlib
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Literal

import pyarrow as pa
from pydantic import Field
from pyspark.sql import functions as f
from pyspark.sql.types import LongType, StringType, StructField, StructType

from penstock.decode.kernels.failure import Failure
from penstock.decode.kernels.outcome import Decoded, Kernel
from penstock.decode.kernels.tombstones import WithTombstones
from penstock.pipeline import FAILED, ORIGIN, Decode

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TOMBSTONE = "tombstone"
Metadata = Literal["topic", "partition", "offset", "timestamp", "key", "headers", "tombstone"]


class ArrowDecode(Decode):
    """Base of the decodes whose work is done in Python."""

    metadata: list[Metadata] = Field(
        default_factory=list,
        description="Facts about the record to keep as columns `kafka_topic`, `kafka_offset`, ... "
        "With `tombstone` a record without a value is no error but a row of nulls, in which "
        "`kafka_tombstone` is true.",
    )

    @abstractmethod
    def columns(self) -> list[str]:
        """Return the record columns that the kernel looks at; `value` is one of them."""

    @abstractmethod
    def kernel(self) -> Callable[[], Kernel]:
        """Return what makes the kernel, in the worker that runs it."""

    @abstractmethod
    def row_schema(self) -> StructType:
        """Return the schema of the rows."""

    def decode(self, records: DataFrame) -> DataFrame:
        """Return the rows, the metadata asked for and FAILED."""
        make, kept = self._kernel(), list(self.metadata)
        wanted = [*self.columns(), *(name for name in kept if name not in self.columns())]
        if TOMBSTONE in kept:
            records = records.withColumn(TOMBSTONE, f.col("value").isNull())
        needed = records.select(*wanted)

        def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            kernel = make()
            for batch in batches:
                yield from _rows(kernel(batch), batch, kept)

        return needed.mapInArrow(run, self._output(records))

    def failures(self, records: DataFrame) -> DataFrame:
        """Return the failed records, whole, with their errors."""
        make = self._kernel()
        schema = StructType(
            [
                *records.schema.fields,
                StructField("error_type", StringType()),
                StructField("error", StringType()),
                StructField(FAILED, LongType()),
            ]
        )

        def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            kernel = make()
            for batch in batches:
                yield _failed(kernel(batch).failures, batch)

        return records.mapInArrow(run, schema)

    def traced(self, records: DataFrame) -> DataFrame:
        """Return the rows with their origin: metadata under another name."""
        places: list[Metadata] = ["topic", "partition", "offset"]
        added = [name for name in places if name not in self.metadata]
        rows = self.model_copy(update={"metadata": [*self.metadata, *added]}).decode(records)
        origin = {new: f.col(f"kafka_{name}") for new, name in zip(ORIGIN, places, strict=True)}
        return rows.withColumns(origin).drop(*(f"kafka_{name}" for name in added))

    def _kernel(self) -> Callable[[], Kernel]:
        make = self.kernel()
        return (lambda: WithTombstones(make())) if TOMBSTONE in self.metadata else make

    def _output(self, records: DataFrame) -> StructType:
        """Everything may be null: a failed record is a row with nothing but FAILED."""
        rows = [StructField(field.name, field.dataType) for field in self.row_schema()]
        kept = [
            StructField(f"kafka_{name}", records.schema[name].dataType) for name in self.metadata
        ]
        return StructType([*rows, *kept, StructField(FAILED, LongType())])


def _rows(decoded: Decoded, batch: pa.RecordBatch, kept: Sequence[str]) -> Iterator[pa.RecordBatch]:
    columns = list(decoded.rows.columns)
    names = [*decoded.rows.schema.names, *(f"kafka_{name}" for name in kept), FAILED]
    for name in kept:
        column = batch.column(name)
        columns.append(column if decoded.origins is None else column.take(decoded.origins))
    columns.append(pa.nulls(decoded.rows.num_rows, pa.int64()))
    yield pa.RecordBatch.from_arrays(columns, names)
    if decoded.failures:
        empty = [pa.nulls(len(decoded.failures), column.type) for column in columns[:-1]]
        marks = _fingerprints(decoded.failures, batch)
        yield pa.RecordBatch.from_arrays([*empty, marks], names)


def _failed(failures: Sequence[Failure], batch: pa.RecordBatch) -> pa.RecordBatch:
    taken = batch.take(pa.array([failure.index for failure in failures], pa.int64()))
    errors = [
        pa.array([failure.error_type for failure in failures], pa.string()),
        pa.array([failure.message for failure in failures], pa.string()),
        _fingerprints(failures, batch),
    ]
    names = [*batch.schema.names, "error_type", "error", FAILED]
    return pa.RecordBatch.from_arrays([*taken.columns, *errors], names)


def _fingerprints(failures: Sequence[Failure], batch: pa.RecordBatch) -> pa.Array:
    """A checksum of each failed record's bytes: both passes must fail on the same ones."""
    values = batch.column("value")
    marks = [zlib.crc32(values[failure.index].as_py() or b"") for failure in failures]
    return pa.array(marks, pa.int64())


def with_origin(records: DataFrame) -> DataFrame:
    """Return the records with the columns of their origin."""
    places = ("topic", "partition", "offset")
    return records.withColumns({new: f.col(name) for new, name in zip(ORIGIN, places, strict=True)})


def never_fails(records: DataFrame) -> DataFrame:
    """Return no record, in the shape of `failures`: for a decode that cannot fail."""
    none = records.where(f.lit(False))
    return none.withColumns(
        {
            "error_type": f.lit(None).cast("string"),
            "error": f.lit(None).cast("string"),
            FAILED: f.lit(None).cast("long"),
        }
    )
