"""ARROW: the Arrow IPC stream, which any Arrow library reads; its schema marks scalars and vectors."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from penstock.errors import FormatError
from penstock.formats.arrow.arrow_columns import one_scalar, to_array, to_table
from penstock.formats.arrow.arrow_size import python_size
from penstock.formats.arrow.arrow_stream import check_stream
from penstock.formats.format_values import Shape, kind, loaded, shape
from penstock.formats.limits import check_size

_MARK = b"penstock.shape"
_COLUMN = "value"
_END = b"\xff\xff\xff\xff\x00\x00\x00\x00"
# Types that pyarrow reads, and has no class for.
_UNREADABLE = (pa.lib.Type_INTERVAL_MONTHS, pa.lib.Type_INTERVAL_DAY_TIME)
# Not only Arrow's errors: a damaged schema may have a name that is not UTF-8, or an unknown time zone.
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
        """Return the IPC stream of a value."""
        value_shape = shape(value)
        table = to_table(value) if value_shape is Shape.TABLE else _one_column(value, value_shape)
        sink = pa.BufferOutputStream()
        try:
            # What a reader would refuse is refused here, where the one who made it learns of it.
            table.validate(full=True)
            with pa.ipc.new_stream(sink, _marked(table.schema, value_shape)) as writer:
                writer.write_table(table)
        except _BROKEN as error:
            raise FormatError(f"{kind(value)} has no Arrow form: {error}") from error
        data: bytes = sink.getvalue().to_pybytes()
        return data

    def decode(self, data: bytes, topic: str = "") -> Any:  # noqa: ARG002
        """Return the value of one whole IPC stream."""
        table, value_shape = read_stream(data)
        try:
            return table if value_shape is Shape.TABLE else _value(table, value_shape)
        except _BROKEN as error:
            raise FormatError(f"not an Arrow stream: {error}") from error


def read_stream(data: bytes) -> tuple[pa.Table, Shape]:
    """Return the table of one whole IPC stream, and the shape of the value that it represents.

    The table of a scalar, a vector or a mapping has one column; a scalar and a mapping have one row.

    >>> read_stream(Arrow().encode([1, 2]))[1]
    <Shape.VECTOR: 'vector'>
    """
    # A stream without its end may lack batches, and reads as a shorter table.
    if not data.endswith(_END):
        raise FormatError("not a complete Arrow stream: its end is missing")
    check_stream(data)
    try:
        table = _read(data)
    except _BROKEN as error:
        raise FormatError(f"not an Arrow stream: {error}") from error
    return table, _shape_of(table)


def _one_column(value: Any, value_shape: Shape) -> pa.Table:
    if value_shape is Shape.VECTOR:
        return pa.table({_COLUMN: to_array(value)})
    if value_shape is Shape.MAPPING and not all(isinstance(key, str) for key in value):
        raise FormatError("the keys of a mapping must be text in the format arrow")
    only = value[()] if loaded(value, "numpy", "ndarray") else value
    return pa.table({_COLUMN: to_array([only])})


def _marked(schema: pa.Schema, value_shape: Shape) -> pa.Schema:
    metadata = dict(schema.metadata or {})
    metadata.pop(_MARK, None)
    if value_shape is not Shape.TABLE:
        metadata[_MARK] = value_shape.value.encode()
    return schema.with_metadata(metadata or None)


def _read(data: bytes) -> pa.Table:
    source = pa.BufferReader(data)
    with pa.ipc.open_stream(source) as reader:
        table = reader.read_all()
    if source.tell() != len(data):
        raise FormatError(f"{len(data) - source.tell()} bytes follow the end of the Arrow stream")
    # A reader trusts what it reads; offsets and indexes of damaged bytes would lead out of memory.
    table.validate(full=True)
    _check_fields(table.schema)
    return table


def _check_fields(fields: Iterable[pa.Field]) -> None:
    """Look at every field, also at nested ones: pyarrow raises only where a value is asked for."""
    for field in fields:
        name = field.name  # one that is not UTF-8 raises
        if field.type.id in _UNREADABLE:
            raise FormatError(
                f"the column {name!r} has the type {field.type}, which Python cannot read"
            )
        _check_fields(field.type.field(at) for at in range(field.type.num_fields))


def _shape_of(table: pa.Table) -> Shape:
    mark = (table.schema.metadata or {}).get(_MARK)
    if mark is None:
        return Shape.TABLE
    if table.num_columns != 1 or mark not in (b"scalar", b"vector", b"mapping"):
        raise FormatError(
            f"the stream is marked as {mark!r}, but holds {table.num_columns} columns"
        )
    if mark != b"vector" and table.num_rows != 1:
        raise FormatError(f"the stream is marked as {mark!r}, but holds {table.num_rows} rows")
    return Shape(mark.decode())


def _value(table: pa.Table, value_shape: Shape) -> Any:
    array = table.column(0).combine_chunks()
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if value_shape is Shape.VECTOR:
        return array
    check_size(python_size(array), "an Arrow scalar")
    return one_scalar(array)
