"""The fields of values as columns, with what tells rows apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from penstock.errors import ConfigError
from penstock.formats.connect import Schema, Type
from penstock.steps.connect_transforms.connect_records import Records
from penstock.steps.connect_transforms.record_columns import KEY, VALUE, accessed
from penstock.steps.connect_transforms.row_shapes import Fields

_NO_VALUE = "the value is null, and this connector writes the fields of a struct"
_NO_KEY = "the key is null, and its fields are the key of the row"


def field_rows(records: Records, shape: Fields) -> DataFrame:
    """Return a row for each record; a null where one is needed refuses the record."""
    value = _struct(records.value_schema, "values")
    columns = dict(_value_columns(value, shape))
    columns |= dict(_key_columns(records, value, shape))
    columns |= {name: f.col(where) for name, where in shape.coordinates.items()}
    if shape.tombstones == "delete":
        columns[shape.tombstone] = f.col(VALUE).isNull()
    kept = _kept(records.frame, shape)
    named = [column.alias(name) for name, column in columns.items()]
    return kept.select(*named, *records.origin)


def _kept(frame: DataFrame, shape: Fields) -> DataFrame:
    if shape.tombstones == "skip":
        frame = frame.where(f.col(VALUE).isNotNull())
    if shape.tombstones == "refuse":
        frame = frame.where(_required(VALUE, _NO_VALUE))
    if shape.key_from == "record_key":
        frame = frame.where(_required(KEY, _NO_KEY))
    return frame


def _required(part: str, text: str) -> Column:
    refuse = f.raise_error(f.lit(text)).cast("boolean")
    return f.when(f.col(part).isNull(), refuse).otherwise(f.lit(True))


def _struct(schema: Schema | None, what: str) -> Schema:
    if schema is not None and schema.type is Type.STRUCT:
        return schema
    kind = "JSON without a schema" if schema is None else schema.name or schema.type.value
    raise ConfigError(
        f"this connector writes the fields of structs, and the {what} are {kind}: choose a converter "
        "with schemas (JsonConverter with schemas.enable or schema.content, Avro, Protobuf, JSON "
        "Schema), or make them a struct with the transform HoistField"
    )


def _value_columns(value: Schema, shape: Fields) -> Iterator[tuple[str, Column]]:
    own = shape.key_names if shape.key_from == "record_value" else ()
    for name, column in _fields(VALUE, value):
        if not shape.only or name in shape.only or name in own:
            yield name, column


def _key_columns(records: Records, value: Schema, shape: Fields) -> Iterator[tuple[str, Column]]:
    match shape.key_from:
        case "kafka":
            places = zip(shape.key_names, ("topic", "partition", "offset"), strict=True)
            yield from ((name, f.col(where)) for name, where in places)
        case "record_value":
            _require_fields(shape.key_names, value, "value")
        case "record_key":
            yield from _of_record_key(records.key_schema, shape.key_names)


def _of_record_key(key: Schema | None, names: Sequence[str]) -> Iterator[tuple[str, Column]]:
    if key is None or key.type in (Type.ARRAY, Type.MAP):
        kind = "JSON without a schema" if key is None else key.type.value
        raise ConfigError(
            f"the columns {', '.join(names) or 'of the key'} are those of the record's key, and keys are "
            f"{kind}: choose a key converter with a schema, or one of a primitive type"
        )
    if key.type is Type.STRUCT:
        _require_fields(names, key, "key")
        yield from ((n, c) for n, c in _fields(KEY, key) if not names or n in names)
        return
    if len(names) != 1:
        raise ConfigError(
            f"the record's key is one {key.type.value}, which needs one name for its column; given: "
            f"{', '.join(names) or 'none'}"
        )
    yield names[0], f.col(KEY)


def _fields(part: str, schema: Schema) -> list[tuple[str, Column]]:
    columns = accessed(f.col(part), schema)
    return [(field.name, column) for field, column in zip(schema.fields, columns, strict=True)]


def _require_fields(names: Sequence[str], schema: Schema, part: str) -> None:
    missing = [name for name in names if name not in schema]
    if missing:
        known = ", ".join(field.name for field in schema.fields) or "none"
        raise ConfigError(
            f"the {part} has no field {', '.join(map(repr, missing))}, which is named as the key of the "
            f"rows; there are: {known}"
        )
