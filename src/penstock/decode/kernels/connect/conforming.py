"""Columns of values that were written with one schema, in the type of another one."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.encode.column_bytes import pairs_of, starts_of
from penstock.formats.connect.arrow_types import arrow_type
from penstock.formats.connect.schema import Schema, Type
from penstock.pipeline.exact_cast import exact_cast


def conformed(column: pa.Array, wanted: Schema) -> pa.Array:
    """Return the column in the type of a schema; an error where a value does not fit it.

    Fields are matched by name: one that the column lacks has its default, or null; one that the schema
    lacks is left out. Numbers are widened, and narrowed where no digit is lost.

    >>> from penstock.formats.connect import INT64, STRING, SchemaBuilder
    >>> schema = SchemaBuilder.struct().field("id", INT64).field("note", STRING.or_null()).build()
    >>> conformed(pa.array([{"id": 1, "x": True}]), schema).to_pylist()
    [{'id': 1, 'note': None}]
    """
    target = arrow_type(wanted)
    if column.type == target:
        return column
    match wanted.type:
        case Type.STRUCT:
            return _struct(column, wanted, target)
        case Type.ARRAY:
            assert wanted.values  # noqa: S101 - a schema is refused without
            lengths = pc.fill_null(column.value_lengths(), 0).to_numpy(zero_copy_only=False)
            elements = conformed(column.flatten(), wanted.values)
            return pa.ListArray.from_arrays(_offsets(lengths, column), elements, type=target)
        case Type.MAP:
            assert wanted.keys and wanted.values  # noqa: S101 - a schema is refused without
            keys, values, counts = pairs_of(column)
            keys, values = conformed(keys, wanted.keys), conformed(values, wanted.values)
            return pa.MapArray.from_arrays(_offsets(counts, column), keys, values, type=target)
    return exact_cast(column, target)


def _struct(column: pa.Array, wanted: Schema, target: pa.DataType) -> pa.Array:
    inner = []
    for field in wanted.fields:
        at = column.type.get_field_index(field.name)
        if at < 0:
            inner.append(_missing(field.schema, len(column)))
        else:
            inner.append(conformed(column.field(at), field.schema))
    if not inner:
        return pa.array([{} if valid else None for valid in column.is_valid().to_pylist()], target)
    return pa.StructArray.from_arrays(inner, fields=list(target), mask=column.is_null())


def _missing(schema: Schema, count: int) -> pa.Array:
    type_ = arrow_type(schema)
    if schema.default is None:
        return pa.nulls(count, type_)
    return pa.array([schema.default], type_).take(pa.array(np.zeros(count, np.int64)))


def _offsets(lengths: np.ndarray, column: pa.Array) -> pa.Array:
    nulls = column.is_null().to_numpy(zero_copy_only=False)
    return pa.array(starts_of(lengths), pa.int32(), mask=np.append(nulls, False))
