"""Rows of a database as records: the key and the value in their formats, bad rows set apart."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import orjson
import pyarrow as pa

from penstock.encode.column_bytes import Encode, as_bytes, where_valid
from penstock.encode.column_encodes import column_encode, takes_one_column
from penstock.encode.format_options import FormatChoice
from penstock.encode.json_columns_text import json_encode
from penstock.encode.schema_registration import Target
from penstock.encode.text_forms import texts_of
from penstock.errors import ConfigError, RefusedError, nearest
from penstock.imports.database.table_range import Rows, SourceColumn
from penstock.pipeline.importing import BadRecord


class RecordBuilder:
    """Makes records of rows with certain columns. Schemas are registered when it is made."""

    def __init__(
        self,
        columns: Sequence[SourceColumn],
        key: Sequence[str],
        formats: Mapping[str, FormatChoice],
        topic: str,
    ) -> None:
        self._columns = columns
        self._fields = [pa.field(column.name, column.type) for column in columns]
        self._key = [_place(name, columns) for name in key]
        self._encode_value = self._value_encode(formats["value"], Target(topic, "value"))
        target = Target(topic, "key", ", ".join(key))
        self._encode_key = self._key_encode(formats["key"], target) if key else None

    def records(self, rows: Rows) -> tuple[pa.RecordBatch, tuple[BadRecord, ...]]:
        """Return the records of rows, and the rows that cannot be records."""
        good: list[pa.RecordBatch] = []
        bad: list[BadRecord] = []
        self._build(rows, good, bad)
        if len(good) == 1:
            return good[0], tuple(bad)
        if not good:
            return self.nothing(), tuple(bad)
        return pa.Table.from_batches(good).combine_chunks().to_batches()[0], tuple(bad)

    def nothing(self) -> pa.RecordBatch:
        """Return no records."""
        schema = pa.schema([("value", pa.binary()), ("key", pa.binary())])
        return pa.record_batch([pa.array([], pa.binary())] * 2, schema=schema)

    def _build(self, rows: Rows, good: list[pa.RecordBatch], bad: list[BadRecord]) -> None:
        try:
            good.append(self._batch(rows))
        except (ValueError, TypeError, OverflowError, RefusedError) as error:  # Arrow's are such
            if rows.count == 1:
                bad.append(self._bad(rows, error))
                return
            middle = rows.count // 2
            self._build(rows.slice(0, middle), good, bad)
            self._build(rows.slice(middle, rows.count), good, bad)

    def _batch(self, rows: Rows) -> pa.RecordBatch:
        arrays = [
            column.read(values) for column, values in zip(self._columns, rows.columns, strict=True)
        ]
        key = (
            self._encode_key(self._nested(arrays, self._key))
            if self._encode_key
            else pa.nulls(rows.count, pa.binary())
        )
        value = self._encode_value(self._nested(arrays, range(len(arrays))))
        return pa.record_batch({"value": value, "key": key})

    def _nested(self, arrays: Sequence[pa.Array], places: Sequence[int]) -> pa.Array:
        chosen = [arrays[at] for at in places]
        return pa.StructArray.from_arrays(chosen, fields=[self._fields[at] for at in places])

    def _value_encode(self, chosen: FormatChoice, target: Target) -> Encode:
        if not takes_one_column(chosen):
            return _encode(chosen, pa.struct(self._fields), target)
        if len(self._columns) != 1:
            raise ConfigError(
                f"'value_format' is {chosen.name!r}, which writes one column, and there are "
                f"{len(self._columns)}; give a 'query' with one column, or another format"
            )
        only = target._replace(path=self._columns[0].name)
        return _of_first(_encode(chosen, self._columns[0].type, only))

    def _key_encode(self, chosen: FormatChoice, target: Target) -> Encode:
        if len(self._key) > 1:
            if takes_one_column(chosen):
                raise ConfigError(
                    f"'key_format' is {chosen.name!r}, which writes one column, and the key has "
                    f"{len(self._key)}: {target.path}; name one in 'key', or choose another format"
                )
            return _encode(chosen, pa.struct([self._fields[at] for at in self._key]), target)
        type_ = self._fields[self._key[0]].type
        if chosen.name == "json":
            return _of_first(_key_text(type_))
        return _of_first(_encode(chosen, type_, target))

    def _bad(self, rows: Rows, error: Exception) -> BadRecord:
        values = dict(zip((column.name for column in self._columns), rows.values(0), strict=True))
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        return BadRecord(_document(values), reason, type(error).__name__)


def _encode(chosen: FormatChoice, type_: pa.DataType, target: Target) -> Encode:
    if chosen.name != "json":
        return column_encode(chosen, type_, target)
    encode = json_encode(type_)
    return lambda column: where_valid(encode, column)


def _key_text(type_: pa.DataType) -> Encode:
    """Return the encode of a key of one column, as the sink kafka has it: texts and bytes as they are."""
    if pa.types.is_binary(type_):
        return lambda column: column
    texts = texts_of(type_)
    if texts is None:
        encode = json_encode(type_)
        return lambda column: where_valid(encode, column)
    return lambda column: as_bytes(texts(column))


def _of_first(encode: Encode) -> Encode:
    return lambda rows: encode(rows.field(0))


def _place(name: str, columns: Sequence[SourceColumn]) -> int:
    names = [column.name for column in columns]
    if name not in names:
        raise ConfigError(
            f"'key' names the column {name!r}, which is not read; {nearest(name, names)}"
        )
    return names.index(name)


def _document(values: dict[str, Any]) -> bytes:
    """Return a row as JSON, whatever its values are.

    >>> _document({"n": 2**70, "b": b"x"})
    b'{"n": 1180591620717411303424, "b": "78"}'
    """
    try:
        return orjson.dumps(values, default=_shown)
    except TypeError:  # a number beyond 64 bits, half of a letter in UTF-16
        return json.dumps(values, default=_shown).encode()


def _shown(value: Any) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)
