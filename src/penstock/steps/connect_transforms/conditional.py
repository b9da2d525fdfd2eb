"""A transform that a predicate makes conditional: one table then has records before and after it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pyspark.sql import Column
from pyspark.sql import functions as f

from penstock.errors import ConfigError
from penstock.formats.connect import Field, Schema, Type
from penstock.steps.connect_transforms.part_transform import Transform
from penstock.steps.connect_transforms.record_columns import (
    KEY,
    VALUE,
    Part,
    RecordColumns,
    accessed,
    struct_of,
)
from penstock.steps.connect_transforms.spark_types import spark_type


def apply_where(selected: Column, transform: Transform, before: RecordColumns) -> RecordColumns:
    """Apply a transform to the selected records. A struct has the fields of both forms, optional."""
    after = transform.apply(before)
    keep = before.keep
    if after.keep is not before.keep and after.keep is not None:
        kept = f.when(selected, after.keep).otherwise(f.lit(True))
        keep = kept if before.keep is None else before.keep & kept
    return replace(
        before,
        topic=_either(selected, after.topic, before.topic),
        headers=_either(selected, after.headers, before.headers),
        key=_merged(selected, after.key, before.key, KEY),
        value=_merged(selected, after.value, before.value, VALUE),
        keep=keep,
    )


def _either(selected: Column, after: Column, before: Column) -> Column:
    return before if after is before else f.when(selected, after).otherwise(before)


def _merged(selected: Column, after: Part, before: Part, where: str) -> Part:
    if after is before:
        return before
    if _is_struct(after.schema) and _is_struct(before.schema):
        return _merged_struct(selected, after, before, where)
    schema = _one_schema(after.schema, before.schema, where)
    return Part(f.when(selected, after.column).otherwise(before.column), schema)


def _is_struct(schema: Schema | None) -> bool:
    return schema is not None and schema.type is Type.STRUCT


def _merged_struct(selected: Column, after: Part, before: Part, where: str) -> Part:
    pairs = [*_merged_fields(selected, after.fields(), before.fields(), where)]
    schema = replace(
        after.struct,
        optional=after.struct.optional or before.struct.optional,
        default=None,
        fields=tuple(field for field, _ in pairs),
    )
    absent = f.when(selected, after.is_null).otherwise(before.is_null)
    return Part(before.whole, schema, tuple(column for _, column in pairs), absent)


def _merged_fields(
    selected: Column,
    after: list[tuple[Field, Column]],
    before: list[tuple[Field, Column]],
    where: str,
) -> Iterator[tuple[Field, Column]]:
    changed = {field.name: (field, column) for field, column in after}
    old = {field.name for field, _ in before}
    for field, column in before:
        if field.name not in changed:
            yield _optional(field), f.when(~selected, column)
            continue
        other, new = changed[field.name]
        if new is column and other.schema == field.schema:
            yield field, column
            continue
        yield _merged_field(selected, (other, new), (field, column), f"{where}.{field.name}")
    for field, column in after:
        if field.name not in old:
            yield _optional(field), f.when(selected, column)


def _merged_field(
    selected: Column, after: tuple[Field, Column], before: tuple[Field, Column], where: str
) -> tuple[Field, Column]:
    (new_field, new), (field, old) = after, before
    if _is_struct(new_field.schema) and _is_struct(field.schema):
        part = _merged_struct(
            selected,
            Part(new, new_field.schema, accessed(new, new_field.schema), new.isNull()),
            Part(old, field.schema, accessed(old, field.schema), old.isNull()),
            where,
        )
        made = f.when(~part.is_null, struct_of(part.members or (), part.struct.fields))
        return Field(field.name, part.struct), made
    schema = _one_schema(new_field.schema, field.schema, where)
    assert schema is not None  # noqa: S101 - fields have schemas
    return Field(field.name, schema), f.when(selected, new).otherwise(old)


def _one_schema(after: Schema | None, before: Schema | None, where: str) -> Schema | None:
    """Return the schema of two forms of one column; raise ConfigError where they are of two types."""
    if after is None and before is None:
        return None
    if after is None or before is None or spark_type(after) != spark_type(before):
        new, old = (spark_type(each).simpleString() for each in (after, before))
        raise ConfigError(
            f"a transform with a predicate makes {where} {new} in some records and leaves it {old} in "
            "the others, and a column has one type: apply the transform to all records, or give the "
            "records a pipeline each"
        )
    return replace(after, optional=after.optional or before.optional)


def _optional(field: Field) -> Field:
    return replace(field, schema=field.schema.or_null())
