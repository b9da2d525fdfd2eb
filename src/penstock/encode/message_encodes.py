"""Rows as the client's self-describing binary formats: Arrow's IPC stream, and DolphinDB's tables.

A row is a table with one row; a single column is a scalar.
"""

from __future__ import annotations

import pyarrow as pa

from penstock.encode.column_bytes import Encode
from penstock.errors import ConfigError, FormatError, RefusedError
from penstock.formats.arrow import Arrow
from penstock.formats.dolphindb import DolphinDB

_END = b"\xff\xff\xff\xff\x00\x00\x00\x00"


def arrow_encode(type_: pa.DataType) -> Encode:
    """Return the encode of rows as IPC streams.

    >>> rows = pa.array([{"n": 1}])
    >>> Arrow().decode(arrow_encode(rows.type)(rows)[0].as_py()).to_pylist()
    [{'n': 1}]
    """
    if not pa.types.is_struct(type_):
        return _scalars(Arrow())
    head = pa.schema(list(type_)).serialize().to_pybytes()

    def encode(rows: pa.Array) -> pa.Array:
        batch = pa.RecordBatch.from_struct_array(rows)
        bodies = (batch.slice(at, 1).serialize().to_pybytes() for at in range(len(rows)))
        return pa.array([head + body + _END for body in bodies], pa.binary())

    return encode


def dolphindb_encode(type_: pa.DataType, path: str = "") -> Encode:
    """Return the encode of rows as DolphinDB's tables; it has no zones, and gets times in UTC."""
    plain = _without_zones(type_)
    _check_dolphindb(plain, path)
    if not pa.types.is_struct(type_):
        scalars = _scalars(DolphinDB())
        return lambda column: scalars(column.cast(plain))

    def encode(rows: pa.Array) -> pa.Array:
        table = pa.Table.from_batches([pa.RecordBatch.from_struct_array(rows.cast(plain))])
        return pa.array([_written(table.slice(at, 1)) for at in range(len(rows))], pa.binary())

    return encode


def _scalars(format_: Arrow | DolphinDB) -> Encode:
    def encode(column: pa.Array) -> pa.Array:
        try:
            return pa.array([format_.encode(value) for value in column.to_pylist()], pa.binary())
        except FormatError as error:
            raise RefusedError(str(error)) from error

    return encode


def _written(table: pa.Table) -> bytes:
    try:
        return DolphinDB().encode(table)
    except FormatError as error:
        raise RefusedError(f"a row cannot be written as a DolphinDB table: {error}") from error


def _without_zones(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(type_):
        return pa.timestamp(type_.unit)
    if pa.types.is_struct(type_):
        return pa.struct([field.with_type(_without_zones(field.type)) for field in type_])
    return type_


def _check_dolphindb(type_: pa.DataType, path: str) -> None:
    """Write a table without rows: a type that DolphinDB lacks is refused here."""
    fields = list(type_) if pa.types.is_struct(type_) else [pa.field(path or "value", type_)]
    for field in fields:
        try:
            DolphinDB().encode(pa.table({field.name: pa.array([], field.type)}))
        except FormatError as error:
            raise ConfigError(f"the column {field.name!r}: {error}") from error
