"""Cast: fields, or the whole key or value, as another type."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as f

from penstock.formats.connect import Field, Schema, Type
from penstock.formats.connect.schema import DATE, DECIMAL, LOGICAL, TIME, TIMESTAMP
from penstock.steps.connect_transforms import java_casts
from penstock.steps.connect_transforms.moments import millis_of
from penstock.steps.connect_transforms.part_transform import (
    PartTransform,
    changed_values,
    kind_of,
    with_keys,
)
from penstock.steps.connect_transforms.record_columns import MismatchError, Part, map_part

WHOLE = ""
_TYPES = {
    "int8": Type.INT8,
    "int16": Type.INT16,
    "int32": Type.INT32,
    "int64": Type.INT64,
    "float32": Type.FLOAT32,
    "float64": Type.FLOAT64,
    "boolean": Type.BOOLEAN,
    "string": Type.STRING,
}
_INTEGERS = (Type.INT8, Type.INT16, Type.INT32, Type.INT64)


class Cast(PartTransform):
    """Casts as Java does. Arrays, maps and structs cannot be cast, bytes to string only."""

    def with_schema(self, part: Part) -> Part:
        """Return the part with its new types."""
        types = self.options["spec"]
        if WHOLE in types:
            assert part.schema is not None  # noqa: S101 - called with a schema
            target = types[WHOLE]
            named = replace(
                _schema(part.schema, target),
                name=None if (part.schema.name or "").startswith(LOGICAL) else part.schema.name,
                version=None
                if (part.schema.name or "").startswith(LOGICAL)
                else part.schema.version,
                doc=part.schema.doc,
            )
            return Part(_cast(part.column, part.schema, target), named)
        made = part.with_fields(
            (Field(field.name, _schema(field.schema, types[field.name])),
             _cast(column, field.schema, types[field.name]))
            if field.name in types else (field, column)
            for field, column in part.fields(defaults=self.defaults)
        )  # fmt: skip
        return replace(made, schema=replace(made.struct, optional=part.struct.optional))

    def without_schema(self, part: Part) -> Part:
        """Return the part with its new types; an entry that did not exist is added, with null."""
        types = self.options["spec"]
        if WHOLE in types:
            return Part(_cast_variant(part.column, types[WHOLE]), None)
        changes = {name: _Caster(target) for name, target in types.items()}
        return map_part(changed_values(with_keys(part.as_map(), types), changes))


class _Caster:
    """The cast of one entry."""

    def __init__(self, target: str) -> None:
        self._target = target

    def __call__(self, value: Column) -> Column:
        return _cast_variant(value, self._target)


def _schema(schema: Schema, target: str) -> Schema:
    default = _cast_default(schema, target)
    return Schema(_TYPES[target], optional=schema.optional, default=default)


def _cast(column: Column, schema: Schema, target: str) -> Column:  # noqa: PLR0911 - by type
    """Cast a column with a schema."""
    if schema.name in (DATE, TIME, TIMESTAMP):
        millis = millis_of(column, schema)
        if target == "string":
            return java_casts.moment_text(millis)
        raw = f.unix_date(column) if schema.name == DATE else millis
        return java_casts.from_integer(raw, target)
    if schema.name == DECIMAL and schema.type is Type.BYTES:
        return java_casts.from_decimal(column, target)
    if schema.type is Type.BYTES and target == "string":
        return f.base64(column)
    if schema.type in _INTEGERS:
        return java_casts.from_integer(column, target)
    if schema.type in (Type.FLOAT32, Type.FLOAT64):
        return java_casts.from_fraction(column, target)
    if schema.type is Type.BOOLEAN:
        return java_casts.from_boolean(column, target)
    if schema.type is Type.STRING:
        return java_casts.from_string(column, target)
    text = f"Cast transformation does not support casting from {schema.type.name} to {target}"
    return f.when(column.isNotNull(), f.raise_error(f.lit(text))).cast(java_casts.SPARK[target])


def _cast_variant(value: Column, target: str) -> Column:
    """Cast a value without a schema by the type that it has."""
    kind = kind_of(value)
    refuse = f.raise_error(
        f.concat(f.lit("Cast transformation does not support casting from "), kind)
    )

    def as_type(name: str) -> Column:
        return f.try_variant_get(value, "$", name)

    double = java_casts.from_fraction(as_type("double"), target)
    made = (
        f.when(kind == "STRING", java_casts.from_string(as_type("string"), target))
        .when(kind == "BIGINT", java_casts.from_integer(as_type("bigint"), target))
        .when(kind == "BOOLEAN", java_casts.from_boolean(as_type("boolean"), target))
        .when(f.rlike(kind, f.lit(r"\A(DECIMAL|DOUBLE|FLOAT)")), double)
        .when(f.rlike(kind, f.lit(r"\A(OBJECT|ARRAY)")), refuse.cast(java_casts.SPARK[target]))
    )
    if target == "string":
        millis = f.unix_millis(as_type("timestamp"))
        made = made.when(kind == "TIMESTAMP", java_casts.moment_text(millis))
    return made.cast("variant")


def _cast_default(schema: Schema, target: str) -> Any:
    """Return the default of a schema as the target type has it, for plain values."""
    default = schema.default
    if default is None or schema.name in (DATE, TIME, TIMESTAMP, DECIMAL):
        return None
    if target == "string":
        return _text(default)
    if target == "boolean":
        return default.lower() == "true" if isinstance(default, str) else int(default) != 0
    try:
        number = float(default) if target.startswith("float") else int(default)
    except (ValueError, OverflowError):
        raise MismatchError(f"The default {default!r:.100} cannot be cast to {target}") from None
    if target in java_casts.BITS:
        half = 2 ** (java_casts.BITS[target] - 1)
        if isinstance(default, str) and not -half <= number < half:
            raise MismatchError(f"The default {default!r:.100} is out of range for {target}")
        number = (int(number) + half) % (2 * half) - half
    return number


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
