"""A record as expressions: what transforms take and return.

A key or value with a schema is a column of the Spark type of its schema. A struct that transforms change
is kept as its fields, each an expression of its own, and becomes a column at the end: the expressions of
a chain then grow with the fields that the transforms change, and not with the length of the chain.

A key or value without a schema is a VARIANT: JSON of any shape. JSON text would be parsed and written by
every transform, and a map of strings to variants has no place for texts, numbers and arrays.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

from pyspark.sql import Column
from pyspark.sql import functions as f
from pyspark.sql import types as t

from penstock.formats.connect import Field, Schema, Type
from penstock.steps.connect_transforms.spark_types import spark_type, with_default

KEY, VALUE = "key", "value"
MAP = "map<string,variant>"


class MismatchError(Exception):
    """A schema that a transform cannot work on: each record with it is refused, with this text."""


@dataclass(frozen=True)
class Part:
    """The key or the value of records: a column and its schema; None: a VARIANT without a schema."""

    whole: Column
    schema: Schema | None
    members: tuple[Column, ...] | None = None
    absent: Column | None = None

    @property
    def column(self) -> Column:
        """Return the column."""
        if self.members is None:
            return self.whole
        made = struct_of(self.members, self.struct.fields)
        return made if self.absent is None else f.when(~self.absent, made)

    @property
    def is_null(self) -> Column:
        """Return whether there is none: in a value, a tombstone."""
        if self.members is None:
            return self.whole.isNull()
        return f.lit(False) if self.absent is None else self.absent

    @property
    def struct(self) -> Schema:
        """Return the schema of a struct; raise MismatchError where it is of another type."""
        if self.schema is None or self.schema.type is not Type.STRUCT:
            kind = "none" if self.schema is None else self.schema.type.value
            raise MismatchError(f"Only Struct objects supported, found the schema type: {kind}")
        return self.schema

    def fields(self, *, defaults: bool = False) -> list[tuple[Field, Column]]:
        """Return the fields of a struct with their columns; with `defaults` in place of nulls."""
        names = self.struct.fields
        columns = accessed(self.whole, self.struct) if self.members is None else self.members
        pairs = [*zip(names, columns, strict=True)]
        if not defaults:
            return pairs
        return [(field, with_default(column, field.schema)) for field, column in pairs]

    def with_fields(self, fields: Iterable[tuple[Field, Column]]) -> Part:
        """Return the same struct with other fields; it is required, as a rebuilt struct of Connect is."""
        pairs = [*fields]
        _refuse_duplicates([field.name for field, _ in pairs])
        schema = Schema(
            Type.STRUCT,
            name=self.struct.name,
            version=self.struct.version,
            doc=self.struct.doc,
            parameters=self.struct.parameters,
            fields=tuple(field for field, _ in pairs),
        )
        return Part(self.whole, schema, tuple(column for _, column in pairs), self.is_null)

    def as_map(self) -> Column:
        """Return a value without a schema as a map; anything but an object or null is refused."""
        return self.whole.cast(MAP)


def struct_part(fields: Iterable[tuple[Field, Column]], absent: Column | None = None) -> Part:
    """Return a new struct with these fields."""
    pairs = [*fields]
    _refuse_duplicates([field.name for field, _ in pairs])
    schema = Schema(Type.STRUCT, fields=tuple(field for field, _ in pairs))
    return Part(f.lit(None), schema, tuple(column for _, column in pairs), absent)


def map_part(column: Column) -> Part:
    """Return a value without a schema, from a map of strings to variants."""
    return Part(f.to_variant_object(column), None)


def without_null(variant: Column) -> Column:
    """Return a value without a schema, in which the null of JSON is a missing value, as in Connect."""
    return f.when(~f.is_variant_null(variant), variant)


def refused(part: Part, text: str) -> Part:
    """Return a part that raises for each record that has it, and stays null where it is null."""
    column = f.when(~part.is_null, f.raise_error(f.lit(text))).cast(spark_type(part.schema))
    return Part(column, part.schema)


@dataclass(frozen=True)
class RecordColumns:
    """All columns of a record, and which records go on (None: all)."""

    topic: Column
    partition: Column
    offset: Column
    timestamp: Column
    headers: Column
    key: Part
    value: Part
    keep: Column | None = None

    def with_part(self, name: str, part: Part) -> RecordColumns:
        """Return the same with another key or value."""
        return replace(self, key=part) if name == KEY else replace(self, value=part)


def accessed(column: Column, schema: Schema) -> tuple[Column, ...]:
    """Return the fields of a struct column.

    Spark finds fields by their names without their case. Names that differ in case only are found by
    their position: a cast of a struct goes by positions.
    """
    lower = Counter(field.name.lower() for field in schema.fields)
    if all(count == 1 for count in lower.values()):
        return tuple(column.getField(field.name) for field in schema.fields)
    numbered = t.StructType(
        [t.StructField(f"f{n}", spark_type(field.schema)) for n, field in enumerate(schema.fields)]
    )
    cast = column.cast(numbered)
    return tuple(cast.getField(f"f{n}") for n in range(len(schema.fields)))


def struct_of(columns: Iterable[Column], fields: Iterable[Field]) -> Column:
    """Return a struct of columns, with the names of fields."""
    named = [column.alias(field.name) for column, field in zip(columns, fields, strict=True)]
    return f.struct(*named)


def _refuse_duplicates(names: list[str]) -> None:
    for name, count in Counter(names).items():
        if count > 1:
            raise MismatchError(f"Cannot create field because of field name duplication {name}")
