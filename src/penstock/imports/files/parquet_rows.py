"""Rows of Parquet files as JSON objects, whichever program has written them."""

from __future__ import annotations

import json

import pyarrow as pa

from penstock.encode.column_bytes import Encode
from penstock.encode.json_columns_text import json_encode
from penstock.errors import ConfigError, RefusedError
from penstock.pipeline.exact_cast import is_list
from penstock.pipeline.importing import BadRecord


class ParquetRows:
    """Makes JSON objects of the rows of one file; ValueError where a type has no form in JSON."""

    def __init__(self, schema: pa.Schema) -> None:
        if len(set(schema.names)) < len(schema.names):
            raise ValueError(f"columns with the same name: {', '.join(schema.names)}")
        self._schema = pa.schema([field.with_type(json_type(field.type)) for field in schema])
        try:
            self._encode: Encode = json_encode(pa.struct(list(self._schema)))
        except ConfigError as error:
            raise ValueError(str(error)) from None

    def records(self, rows: pa.RecordBatch, path: str) -> tuple[list[bytes], list[BadRecord]]:
        """Return the values of rows, and the rows that have none, as one with an infinite number."""
        try:
            plain = rows if rows.schema.equals(self._schema) else rows.cast(self._schema)
            return self._encode(plain.to_struct_array()).to_pylist(), []
        except (RefusedError, ValueError) as error:
            if rows.num_rows == 1:
                shown = json.dumps(rows.to_pylist()[0], default=str).encode()
                return [], [BadRecord(shown, f"{path}: {error}", type(error).__name__)]
        middle = rows.num_rows // 2
        values, bad = self.records(rows.slice(0, middle), path)
        more, others = self.records(rows.slice(middle), path)
        return values + more, bad + others


def json_type(kind: pa.DataType) -> pa.DataType:
    """Return the type with the same values that JSON has a form for; others stay as they are.

    >>> json_type(pa.dictionary(pa.int32(), pa.large_string()))
    DataType(string)
    >>> json_type(pa.large_list(pa.time64("us")))
    ListType(list<item: string>)
    """
    if pa.types.is_dictionary(kind):
        return json_type(kind.value_type)
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(json_type(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(pa.string(), json_type(kind.item_type))
    if is_list(kind):
        return pa.list_(json_type(kind.value_type))
    return next((plain for is_type, plain in _PLAIN if is_type(kind)), kind)


_PLAIN = (
    (pa.types.is_large_string, pa.string()),
    (pa.types.is_string_view, pa.string()),
    (pa.types.is_time, pa.string()),
    # Of a column that has nothing but nulls.
    (pa.types.is_null, pa.string()),
    (pa.types.is_large_binary, pa.binary()),
    (pa.types.is_binary_view, pa.binary()),
    (pa.types.is_fixed_size_binary, pa.binary()),
    # In its unit, as Parquet has it.
    (pa.types.is_duration, pa.int64()),
)
