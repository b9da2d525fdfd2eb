"""Types and values of SQLite: five kinds of storage, chosen by the words of a column's type."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as t

from penstock.errors import RefusedError

# Decimals are text: a number of SQLite with a point is a double.
KINDS: dict[type[t.DataType], str] = {
    t.BooleanType: "BOOLEAN",
    **dict.fromkeys((t.ByteType, t.ShortType, t.IntegerType), "INTEGER"),
    t.LongType: "BIGINT",
    **dict.fromkeys((t.FloatType, t.DoubleType), "REAL"),
    t.BinaryType: "BLOB",
    t.DateType: "DATE",
    **dict.fromkeys((t.TimestampType, t.TimestampNTZType), "TIMESTAMP"),
}
_WORDS = (
    (("INT",), t.LongType()),
    (("CHAR", "CLOB", "TEXT"), t.StringType()),
    (("BLOB",), t.BinaryType()),
    (("REAL", "FLOA", "DOUB"), t.DoubleType()),
)
_WHOLE = (t.BooleanType, t.ByteType, t.ShortType, t.IntegerType, t.LongType)
_TIMES = (t.DateType, t.TimestampType, t.TimestampNTZType)


def known(kind: str, wanted: t.DataType) -> t.DataType:
    """Return a column's type as Spark has it; `wanted` where SQLite keeps such values as they are.

    >>> known("VARCHAR(20)", t.DateType()), known("NUMERIC", t.StringType())
    (DateType(), DoubleType())
    """
    words = kind.upper()
    stored: t.DataType | None = next(
        (kept for parts, kept in _WORDS if any(part in words for part in parts)), None
    )
    if isinstance(wanted, _WHOLE):
        fits = stored is None or isinstance(stored, t.LongType)
    elif isinstance(wanted, (t.FloatType, t.DoubleType)):
        fits = stored is None or isinstance(stored, t.DoubleType)
    elif isinstance(wanted, t.BinaryType):
        fits = isinstance(stored, t.BinaryType)
    elif isinstance(wanted, _TIMES):
        fits = isinstance(stored, t.StringType) or "DATE" in words or "TIME" in words
    else:
        fits = isinstance(stored, t.StringType)
    return wanted if fits else stored or t.DoubleType()


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
