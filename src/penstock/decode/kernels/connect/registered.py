"""Keys and values with a schema registry as columns of Connect's schemas."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.decode.kernels.avro.avro_kernel import AvroBodies, avro_table_schema
from penstock.decode.kernels.connect.aligned import Aligned, converted, moved, scattered
from penstock.decode.kernels.connect.conforming import conformed
from penstock.decode.kernels.outcome import Decoded, Kernel
from penstock.decode.kernels.registry_kernel import BodyReader, FormatColumns
from penstock.formats import connect
from penstock.formats.avro.avro_schema import Parsed, kind_of
from penstock.formats.connect.arrow_types import arrow_type
from penstock.formats.connect.schema import Schema, SchemaBuilder
from penstock.formats.registry import Registry
from penstock.formats.registry import Schema as Registration
from penstock.formats.registry.registry_model import AVRO
from penstock.pipeline import columns
from penstock.pipeline.schema import Schema as Columns

ONLY = "value"
_SCALARS = {
    "boolean": connect.BOOLEAN,
    "tinyint": connect.INT8,
    "smallint": connect.INT16,
    "int": connect.INT32,
    "bigint": connect.INT64,
    "float": connect.FLOAT32,
    "double": connect.FLOAT64,
    "string": connect.STRING,
    "binary": connect.BYTES,
    "date": connect.date(),
    "timestamp": connect.timestamp(),
    "timestamp_ntz": connect.timestamp(),
}


def connect_schema(type_: columns.Type) -> Schema:
    """Return the schema of Connect for a type of a column.

    >>> connect_schema(columns.Decimal(10, 2)).parameters
    {'scale': '2'}
    """
    if isinstance(type_, columns.Struct):
        builder = SchemaBuilder.struct()
        for field in type_.fields:
            inner = connect_schema(field.type)
            builder.field(field.name, inner if field.required else inner.or_null())
        return builder.build()
    if isinstance(type_, columns.Array):
        return SchemaBuilder.array(connect_schema(type_.element).or_null()).build()
    if isinstance(type_, columns.Map):
        return SchemaBuilder.map(connect.STRING, connect_schema(type_.value).or_null()).build()
    if isinstance(type_, columns.Decimal):
        return connect.decimal(type_.scale)
    return _SCALARS[type_.name]


@dataclass(frozen=True)
class AnyAvroColumns(FormatColumns):
    """Avro's schemas as columns; a schema that is not a record is one column.

    The body of a record with one field is the body of that field: other schemas are read as such records.
    """

    kind = AVRO

    def table_schema(self, schema: Registration, registry: Registry | None) -> Columns:
        """Return the fields of the record, or the only column."""
        return avro_table_schema(_as_record(schema, registry))

    def bodies(
        self, written: Registration, wanted: Registration, registry: Registry | None
    ) -> BodyReader:
        """Return what resolves the one schema to the other."""
        return AvroBodies(_as_record(written, registry), _as_record(wanted, registry))


def is_record(schema: Registration, registry: Registry | None) -> bool:
    """Return whether an Avro schema is a record."""
    parsed = Parsed(schema, registry)
    return kind_of(parsed.root, parsed.names) == "record"


def record_name(schema: Registration, registry: Registry | None) -> str | None:
    """Return the full name of an Avro record; None for other schemas."""
    return Parsed(schema, registry).full_name() if is_record(schema, registry) else None


def _as_record(schema: Registration, registry: Registry | None) -> Parsed:
    if is_record(schema, registry):
        return Parsed(schema, registry)
    inner: Any = json.loads(schema.text)
    text = json.dumps(
        {"type": "record", "name": "Penstock_only", "fields": [{"name": ONLY, "type": inner}]}
    )
    return Parsed(replace(schema, text=text), registry)


class RegisteredReader:
    """Reads values with the kernel of a registry's format, into one column."""

    def __init__(self, kernel: Kernel, wanted: Schema, *, is_struct: bool) -> None:
        self._kernel = kernel
        self._wanted = wanted
        self._is_struct = is_struct
        self._empty = pa.nulls(0, arrow_type(wanted))

    def __call__(self, values: pa.Array) -> Aligned:
        """Return the value of each record; those that are null stay null."""
        given = np.flatnonzero(values.is_valid().to_numpy(zero_copy_only=False))
        decoded = self._kernel(
            pa.RecordBatch.from_arrays([values.take(pa.array(given))], ["value"])
        )
        origins = _origins(decoded)
        read = converted(self._column(decoded.rows), self._conform, self._empty)
        failures = [*moved(decoded.failures, given), *moved(read.failures, given[origins])]
        return Aligned(scattered(read.values, given[origins], len(values)), failures)

    def _column(self, rows: pa.RecordBatch) -> pa.Array:
        if not self._is_struct:
            return rows.column(0)
        fields = [pa.field(each.name, each.type) for each in rows.schema]
        return pa.StructArray.from_arrays(rows.columns, fields=fields)

    def _conform(self, column: pa.Array) -> pa.Array:
        return conformed(column, self._wanted)


def _origins(decoded: Decoded) -> np.ndarray[Any, np.dtype[np.int64]]:
    if decoded.origins is None:
        return np.arange(decoded.rows.num_rows)
    return np.asarray(decoded.origins.to_numpy(zero_copy_only=False))
