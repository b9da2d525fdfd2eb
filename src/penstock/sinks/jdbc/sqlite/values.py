"""Types and values of SQLite: five kinds of storage, chosen by the words of a column's type."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

from penstock.errors import RefusedError

# Decimals are text: a number of SQLite with a point is a double.
KINDS: dict[type[DataType], str] = {
    BooleanType: "BOOLEAN",
    **dict.fromkeys((ByteType, ShortType, IntegerType), "INTEGER"),
    LongType: "BIGINT",
    **dict.fromkeys((FloatType, DoubleType), "REAL"),
    BinaryType: "BLOB",
    DateType: "DATE",
    **dict.fromkeys((TimestampType, TimestampNTZType), "TIMESTAMP"),
}
_WORDS = (
    (("INT",), LongType()),
    (("CHAR", "CLOB", "TEXT"), StringType()),
    (("BLOB",), BinaryType()),
    (("REAL", "FLOA", "DOUB"), DoubleType()),
)
_WHOLE = (BooleanType, ByteType, ShortType, IntegerType, LongType)
_TIMES = (DateType, TimestampType, TimestampNTZType)


def known(kind: str, wanted: DataType) -> DataType:
    """Return a column's type as Spark has it; `wanted` where SQLite keeps such values as they are.

    >>> known("VARCHAR(20)", DateType()), known("NUMERIC", StringType())
    (DateType(), DoubleType())
    """
    words = kind.upper()
    stored: DataType = next(
        (kept for parts, kept in _WORDS if any(part in words for part in parts)), DoubleType()
    )
    if isinstance(wanted, _WHOLE):
        fits = isinstance(stored, LongType) or (isinstance(stored, DoubleType) and not _real(words))
    elif isinstance(wanted, (FloatType, DoubleType)):
        fits = isinstance(stored, DoubleType)
    elif isinstance(wanted, BinaryType):
        fits = isinstance(stored, BinaryType)
    elif isinstance(wanted, _TIMES):
        fits = isinstance(stored, StringType) or "DATE" in words or "TIME" in words
    else:
        fits = isinstance(stored, StringType)
    return wanted if fits else stored


def _real(words: str) -> bool:
    return any(word in words for word in ("REAL", "FLOA", "DOUB"))


def values(batch: pa.RecordBatch) -> bytes:
    """Return the batch with values that SQLite has, in Arrow's form.

    >>> frame = values(pa.RecordBatch.from_pydict({"n": pa.array([2], pa.decimal128(3, 1))}))
    >>> pa.ipc.open_stream(frame).read_all().to_pylist()
    [{'n': '2.0'}]
    """
    columns = [
        _value(name, column) for name, column in zip(batch.schema.names, batch.columns, strict=True)
    ]
    stored = pa.RecordBatch.from_arrays(columns, batch.schema.names)
    written = pa.BufferOutputStream()
    with pa.ipc.new_stream(written, stored.schema) as stream:
        stream.write_batch(stored)
    return bytes(written.getvalue())


def _value(name: str, column: pa.Array) -> pa.Array:
    kind = column.type
    if pa.types.is_floating(kind) and pc.any(pc.is_nan(column)).as_py():
        raise RefusedError(f"the column {name!r} has a NaN, which SQLite would store as null")
    if pa.types.is_decimal(kind) or pa.types.is_temporal(kind):
        return column.cast(pa.string())
    return column
