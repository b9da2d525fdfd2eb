"""Records as rows for the sink of a connector."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from penstock.formats.connect import Schema, Type
from penstock.formats.connect.converter_options import ConverterOptions
from penstock.formats.connect.json_values import logical_name
from penstock.steps.connect_transforms.connect_records import COLUMNS, Records
from penstock.steps.connect_transforms.field_rows import field_rows
from penstock.steps.connect_transforms.part_encodes import PartEncode, encoded
from penstock.steps.connect_transforms.record_columns import KEY, VALUE
from penstock.steps.connect_transforms.row_shapes import (
    Documents,
    Encoded,
    Fields,
    Record,
    Shape,
    Text,
)

_NESTED = (Type.STRUCT, Type.ARRAY, Type.MAP)
_JSON = ConverterOptions(form="json", schemas=False, decimals="numeric")
_STRING = ConverterOptions(form="string")
_DOCUMENT = (KEY, VALUE, "topic", "partition", "offset", "timestamp", "headers")


def rows_of(records: Records, shape: Shape) -> DataFrame:
    """Return the rows of a shape, and where they are asked for the columns of their origin."""
    match shape:
        case Text():
            return _texts(records)
        case Record():
            return records.frame.select(*COLUMNS, *records.origin)
        case Documents():
            return _documents(records)
        case Fields():
            return field_rows(records, shape)
        case Encoded():
            return _encoded(records, shape)
    raise TypeError(shape)


def _texts(records: Records) -> DataFrame:
    schema = records.value_schema
    needed = records.frame.select(VALUE, *records.origin)
    if _is_text(schema) or _is_bytes(schema):
        return needed
    return _as_texts(records, needed, {VALUE: _STRING})


def _documents(records: Records) -> DataFrame:
    wanted = {}
    for part in (KEY, VALUE):
        schema = records.schema_of(part)
        if not _is_text(schema) and not _is_bytes(schema):
            nested = part == VALUE or (schema is not None and schema.type in _NESTED)
            wanted[part] = _JSON if nested else _STRING
    frame = _as_texts(records, records.frame, wanted).withColumn(KEY, _key_text(records))
    # Bytes are text to them: a search index and an HTTP service take nothing else.
    return frame.select(
        *(
            f.col(name).cast("string") if name in (KEY, VALUE) else f.col(name)
            for name in _DOCUMENT
        ),
        *records.origin,
    )


def _as_texts(records: Records, frame: DataFrame, parts: dict[str, ConverterOptions]) -> DataFrame:
    made = {n: PartEncode(options, records.schema_of(n), n) for n, options in parts.items()}
    frame = encoded(frame, made)
    return frame.withColumns({name: f.col(name).cast("string") for name in made}) if made else frame


def _key_text(records: Records) -> Column:
    """Return the key as text: a JSON string without its quotation marks."""
    key = f.col(KEY)
    if records.key_schema is not None or KEY in records.unknown:
        return key.cast("string")
    plain = f.variant_get(f.parse_json(key), "$", "string")
    return f.when(f.trim(key).startswith('"'), plain).otherwise(key)


def _encoded(records: Records, shape: Encoded) -> DataFrame:
    nothing = f.lit(None).cast("binary")
    frame = records.frame.withColumns(dict.fromkeys(records.unknown, nothing))
    parts = {
        name: PartEncode(options, records.schema_of(name), name)
        for name, options in ((KEY, shape.key), (VALUE, shape.value))
        if name not in records.unknown and not _passes(options, records.schema_of(name))
    }
    made = encoded(frame, parts)
    return made.select("topic", KEY, VALUE, "headers", *records.origin)


def _passes(options: ConverterOptions, schema: Schema | None) -> bool:
    """Return whether bytes go as they are."""
    return options.form == "bytes" and _is_bytes(schema)


def _is_text(schema: Schema | None) -> bool:
    return schema is None or (schema.type is Type.STRING)


def _is_bytes(schema: Schema | None) -> bool:
    return schema is not None and schema.type is Type.BYTES and logical_name(schema) is None
