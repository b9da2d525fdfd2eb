"""Decoding in Python workers over whole Arrow batches: what json and python share.

A kernel turns a batch of records into rows and failures. It runs twice at most: for the rows of every
batch, and, only for a batch in which something failed, once more for the failed records themselves.
"""

from __future__ import annotations

import zlib
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Literal

import pyarrow as pa
from pydantic import Field, field_validator
from pyspark.sql import functions as f
from pyspark.sql.types import LongType, StringType, StructField, StructType

from penstock.decode.kernels.key_kernel import with_keys
from penstock.decode.kernels.merging import WithTombstones
from penstock.decode.kernels.outcome import Decoded, Failure, Kernel, in_parts
from penstock.error_frame import in_worker
from penstock.errors import ConfigError
from penstock.pipeline import FAILED, ORIGIN, Decode
from penstock.pipeline.header_column import with_empty_headers, with_null_headers
from penstock.pipeline.registry import AnyKeyDecode

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TOMBSTONE = "tombstone"
# Bytes of an error and its type: they are headers of a dead letter, which has room for 64 KiB of them.
_LONGEST, _LONGEST_TYPE = 10_000, 500
Metadata = Literal["topic", "partition", "offset", "timestamp", "key", "headers", "tombstone"]


class ArrowDecode(Decode):
    """Base of the decodes whose work is done in Python."""

    metadata: list[Metadata] = Field(
        default_factory=list,
        description="Metadata of the record to add as columns `kafka_topic`, `kafka_offset`, ... "
        "With `tombstone` a record without a value is not an error but a row of nulls, in which "
        "`kafka_tombstone` is true.",
    )
    key: AnyKeyDecode | None = Field(
        default=None,
        description="How the record's key is decoded, as `{avro: {...}}`; its columns are added under "
        "`key_prefix`. A record without a key has nulls in them.",
    )
    key_prefix: str = Field(
        default="key_", description="In front of the names of the key's columns."
    )

    @field_validator("key")
    @classmethod
    def _can_decode_keys(cls, key: Decode | None) -> Decode | None:
        if key is None or (isinstance(key, ArrowDecode) and not key.metadata and not key.key):
            return key
        raise ValueError(
            f"{key.name!r} cannot decode keys: take a decode with a schema, without 'metadata' and "
            "'key' of its own"
        )

    def bind(self, topics: Sequence[str], _part: str = "value") -> ArrowDecode:
        """Return a copy whose key's decode is bound, too."""
        if self.key is None:
            return self
        return self.model_copy(update={"key": self.key.bind(topics, "key")})

    def identity(self) -> str:
        """Return the text of the options, with that of the key's decode."""
        return super().identity() + (f", key {self.key.identity()}" if self.key else "")

    @abstractmethod
    def columns(self) -> list[str]:
        """Return the record columns that the kernel reads; `value` is one of them."""

    @abstractmethod
    def kernel(self) -> Callable[[], Kernel]:
        """Return the factory of the kernel, for the worker that runs it."""

    @abstractmethod
    def row_schema(self) -> StructType:
        """Return the schema of the rows."""

    def decode(self, records: DataFrame) -> DataFrame:
        """Return the rows, the requested metadata and FAILED."""
        return self._decoded(records, self._metadata_columns())

    def _metadata_columns(self) -> dict[str, str]:
        """Return the added columns, and what of the record each of them has."""
        return {f"kafka_{name}": name for name in self.metadata}

    def _decoded(self, records: DataFrame, kept: Mapping[str, str]) -> DataFrame:
        make = self._kernel()
        read = [*self.columns(), *(["key"] if self.key else [])]
        wanted = list(dict.fromkeys([*read, *kept.values()]))
        if TOMBSTONE in wanted:
            records = records.withColumn(TOMBSTONE, f.col("value").isNull())
        needed = with_empty_headers(records.select(*wanted))

        def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            kernel = make()
            for batch in batches:
                for part, decoded in in_parts(kernel, batch):
                    yield from _rows(decoded, part, kept)

        rows = needed.mapInArrow(in_worker(run, "decode"), self._output(records, kept))
        own = next((column for column, name in kept.items() if name == "headers"), None)
        return rows if own is None else with_null_headers(rows, own)

    def failures(self, records: DataFrame) -> DataFrame:
        """Return the complete failed records with their errors."""
        make = self._kernel()
        schema = StructType([*records.schema.fields])
        schema.add("error_type", StringType()).add("error", StringType()).add(FAILED, LongType())

        def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            kernel = make()
            for batch in batches:
                for part, decoded in in_parts(kernel, batch):
                    yield _failed(decoded.failures, part)

        made = with_empty_headers(records).mapInArrow(in_worker(run, "decode"), schema)
        return with_null_headers(made)

    def traced(self, records: DataFrame) -> DataFrame:
        """Return the rows with their origin."""
        origin = dict(zip(ORIGIN, ("topic", "partition", "offset"), strict=True))
        return self._decoded(records, {**self._metadata_columns(), **origin})

    def _kernel(self) -> Callable[[], Kernel]:
        make = value = self.kernel()
        if TOMBSTONE in self.metadata:
            make = partial(_made, value, WithTombstones)
        if isinstance(self.key, ArrowDecode):
            return partial(with_keys, make, self.key.kernel(), self.key_prefix)
        return make

    def _every_row(self) -> StructType:
        """Return the schema of the rows, with the key's columns."""
        rows = self.row_schema()
        if not isinstance(self.key, ArrowDecode):
            return rows
        keys = [
            StructField(f"{self.key_prefix}{field.name}", field.dataType)
            for field in self.key.row_schema()
        ]
        return StructType([*rows, *keys])

    def _output(self, records: DataFrame, kept: Mapping[str, str]) -> StructType:
        """Return the output schema, all nullable: a failed record is a row with nothing but FAILED."""
        rows = [StructField(field.name, field.dataType) for field in self._every_row()]
        added = [
            StructField(column, records.schema[name].dataType) for column, name in kept.items()
        ]
        fields = [*rows, *added, StructField(FAILED, LongType())]
        _refuse_twins([field.name for field in fields])
        return StructType(fields)


def _refuse_twins(names: Sequence[str]) -> None:
    """Raise where the value, its key and the metadata have a column in common; Spark ignores case."""
    known: dict[str, str] = {}
    for name in names:
        if twin := known.get(name.lower()):
            raise ConfigError(
                f"the columns {twin!r} and {name!r} have one name for Spark, which ignores case: choose "
                "another 'key_prefix', leave out that 'metadata', or rename the field"
            )
        known[name.lower()] = name


def _made(make: Callable[[], Kernel], wrap: Callable[[Kernel], Kernel]) -> Kernel:
    return wrap(make())


def _rows(
    decoded: Decoded, batch: pa.RecordBatch, kept: Mapping[str, str]
) -> Iterator[pa.RecordBatch]:
    columns = list(decoded.rows.columns)
    names = [*decoded.rows.schema.names, *kept, FAILED]
    for name in kept.values():
        column = batch.column(name)
        columns.append(column if decoded.origins is None else column.take(decoded.origins))
    columns.append(pa.nulls(decoded.rows.num_rows, pa.int64()))
    yield pa.RecordBatch.from_arrays(columns, names)
    if decoded.failures:
        empty = [pa.nulls(len(decoded.failures), column.type) for column in columns[:-1]]
        marks = _fingerprints(decoded.failures, batch)
        yield pa.RecordBatch.from_arrays([*empty, marks], names)


def _bounded(text: str, most: int) -> str:
    r"""Return a text cut to a number of bytes in UTF-8: an error of a parser may quote a whole record.

    >>> _bounded("side \ud800, side \u00fc", 18)
    'side \\ud800, side '
    """
    return text[:most].encode("utf-8", "backslashreplace")[:most].decode("utf-8", "ignore")


def _failed(failures: Sequence[Failure], batch: pa.RecordBatch) -> pa.RecordBatch:
    taken = batch.take(pa.array([failure.index for failure in failures], pa.int64()))
    errors = [
        pa.array(
            [_bounded(failure.error_type, _LONGEST_TYPE) for failure in failures], pa.string()
        ),
        pa.array([_bounded(failure.message, _LONGEST) for failure in failures], pa.string()),
        _fingerprints(failures, batch),
    ]
    names = [*batch.schema.names, "error_type", "error", FAILED]
    return pa.RecordBatch.from_arrays([*taken.columns, *errors], names)


def _fingerprints(failures: Sequence[Failure], batch: pa.RecordBatch) -> pa.Array:
    """Return a checksum of each failed record's bytes: both passes must fail on the same ones."""
    values = batch.column("value")
    marks = [zlib.crc32(values[failure.index].as_py() or b"") for failure in failures]
    return pa.array(marks, pa.int64())


def with_origin(records: DataFrame) -> DataFrame:
    """Return the records with the columns of their origin."""
    places = ("topic", "partition", "offset")
    return records.withColumns({new: f.col(name) for new, name in zip(ORIGIN, places, strict=True)})
