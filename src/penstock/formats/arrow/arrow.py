"""ARROW: the Arrow IPC stream, which any Arrow library reads; its schema marks scalars and vectors."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from penstock.errors import FormatError
from penstock.formats.arrow.columns import one_scalar, to_array, to_table
from penstock.formats.values import Shape, kind, loaded, shape

_MARK = b"penstock.shape"
_COLUMN = "value"
_END = b"\xff\xff\xff\xff\x00\x00\x00\x00"
# Not Arrow's errors alone: a damaged schema may hold a name that is no UTF-8, or an unknown time zone.
_BROKEN = (pa.ArrowException, ValueError, TypeError, OverflowError, OSError, MemoryError, KeyError)


class Arrow:
    """Scalars, vectors, tables and mappings with their types and nulls, as an Arrow IPC stream.

    Reading gives a Python scalar, a `pyarrow.Array`, a `pyarrow.Table` or a dict. A stream of another
    writer has no mark, and is a table.

    >>> Arrow().decode(Arrow().encode(7))
    7
    >>> Arrow().decode(Arrow().encode([1, None])).to_pylist()
    [1, None]
    """

    name = "arrow"

    def encode(self, value: Any, topic: str = "") -> bytes:  # noqa: ARG002
        """Give the IPC stream of a value."""
        found = shape(value)
        table = to_table(value) if found is Shape.TABLE else _one_column(value, found)
        sink = pa.BufferOutputStream()
        try:
            # What a reader would refuse is refused here, where the one who made it learns of it.
            table.validate(full=True)
            with pa.ipc.new_stream(sink, _marked(table.schema, found)) as writer:
                writer.write_table(table)
        except _BROKEN as error:
            raise FormatError(f"{kind(value)} has no Arrow form: {error}") from error
        data: bytes = sink.getvalue().to_pybytes()
        return data

    def decode(self, data: bytes, topic: str = "") -> Any:  # noqa: ARG002
        """Give the value of one whole IPC stream."""
        # A stream without its end may lack batches, and reads as a shorter table.
        if not data.endswith(_END):
            raise FormatError("no whole Arrow stream: its end is missing")
        try:
            return _value(_read(data))
        except _BROKEN as error:
            raise FormatError(f"no Arrow stream: {error}") from error


def _one_column(value: Any, found: Shape) -> pa.Table:
    if found is Shape.VECTOR:
        return pa.table({_COLUMN: to_array(value)})
    if found is Shape.MAPPING and not all(isinstance(key, str) for key in value):
        raise FormatError("the keys of a mapping must be text in the format arrow")
    only = value[()] if loaded(value, "numpy", "ndarray") else value
    return pa.table({_COLUMN: to_array([only])})


def _marked(schema: pa.Schema, found: Shape) -> pa.Schema:
    metadata = dict(schema.metadata or {})
    metadata.pop(_MARK, None)
    if found is not Shape.TABLE:
        metadata[_MARK] = found.value.encode()
    return schema.with_metadata(metadata or None)


def _read(data: bytes) -> pa.Table:
    source = pa.BufferReader(data)
    with pa.ipc.open_stream(source) as reader:
        table = reader.read_all()
    if source.tell() != len(data):
        raise FormatError(f"{len(data) - source.tell()} bytes follow the end of the Arrow stream")
    # A reader trusts what it reads; offsets and indexes of damaged bytes would lead out of memory.
    table.validate(full=True)
    return table


def _value(table: pa.Table) -> Any:
    metadata = dict(table.schema.metadata or {})
    mark = metadata.pop(_MARK, None)
    if mark is None:
        return table
    if table.num_columns != 1 or mark not in (b"scalar", b"vector", b"mapping"):
        raise FormatError(
            f"the stream is marked as {mark!r}, but holds {table.num_columns} columns"
        )
    array = table.column(0).combine_chunks()
    if mark == b"vector":
        return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    if len(array) != 1:
        raise FormatError(f"the stream is marked as {mark!r}, but holds {len(array)} rows")
    return one_scalar(array)
