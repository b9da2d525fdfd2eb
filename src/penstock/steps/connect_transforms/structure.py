"""Transforms that change which fields there are: replace, hoist, extract, flatten, copy to the key."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as f

from penstock.formats.connect import Field, Schema, Type
from penstock.steps.connect_transforms.field_path import field_path
from penstock.steps.connect_transforms.part_transform import (
    PartTransform,
    Transform,
    required_map,
    without_keys,
)
from penstock.steps.connect_transforms.record_columns import (
    MAP,
    MismatchError,
    Part,
    RecordColumns,
    map_part,
    refused,
    struct_part,
    without_null,
)
from penstock.steps.connect_transforms.spark_types import spark_type, with_default


class ReplaceField(PartTransform):
    """Removes and renames fields."""

    def with_schema(self, part: Part) -> Part:
        """Return a struct with the fields that stay, under their new names."""
        renames = self.options["renames"]
        return part.with_fields(
            (Field(renames.get(field.name, field.name), field.schema), column)
            for field, column in part.fields(defaults=self.defaults)
            if self._stays(field.name)
        )

    def without_schema(self, part: Part) -> Part:
        """Return an object with the entries that stay, under their new names."""
        entries = without_keys(part.as_map(), self.options["exclude"])
        if include := self.options["include"]:
            entries = f.map_filter(entries, lambda key, _: key.isin(include))
        return map_part(f.transform_keys(entries, self._renamed) if self._pairs else entries)

    def _stays(self, name: str) -> bool:
        include = self.options["include"]
        return name not in self.options["exclude"] and (not include or name in include)

    @property
    def _pairs(self) -> dict[str, str]:
        return dict(self.options["renames"])

    def _renamed(self, key: Column, _: Column) -> Column:
        made = key
        for old, new in self._pairs.items():
            made = f.when(key == f.lit(old), f.lit(new)).otherwise(made)
        return made


class HoistField(PartTransform):
    """Puts the key or value into a new struct or object, as its only field."""

    def with_schema(self, part: Part) -> Part:
        """Return a struct with one field."""
        assert part.schema is not None  # noqa: S101 - called with a schema
        return struct_part([(Field(self.options["field"], part.schema), part.column)])

    def without_schema(self, part: Part) -> Part:
        """Return an object with one entry."""
        return map_part(f.create_map(f.lit(self.options["field"]), part.column))


class ExtractField(PartTransform):
    """Takes one field, which becomes the whole key or value."""

    def with_schema(self, part: Part) -> Part:
        """Return the field with its schema."""
        *parents, name = self._path
        for parent in parents:
            part = self._member(part, parent, defaults=False)
        return self._member(part, name, defaults=self.defaults)

    def _member(self, part: Part, name: str, *, defaults: bool) -> Part:
        for field, column in part.fields(defaults=defaults):
            if field.name == name:
                return Part(f.when(~part.is_null, column), field.schema)
        raise MismatchError(f"Unknown field: {self.options['field']}")

    def without_schema(self, part: Part) -> Part:
        """Return the value of the entry; null where there is none."""
        column = part.column
        for name in self._path:
            column = f.try_element_at(column.cast(MAP), f.lit(name))
        return Part(without_null(column), None)

    @property
    def _path(self) -> list[str]:
        return field_path(self.options["field"], self.options["field.syntax.version"])


class ValueToKey(Transform):
    """Makes a new key of fields of the value. A tombstone has none, and is refused."""

    def apply(self, record: RecordColumns) -> RecordColumns:
        """Return the columns with the new key."""
        try:
            made = self._object(record) if record.value.schema is None else self._struct(record)
        except MismatchError as error:
            made = refused(Part(f.lit("").cast("string"), Schema(Type.STRING)), str(error))
        return replace(record, key=made)

    def _struct(self, record: RecordColumns) -> Part:
        defaults = bool(self.options["replace.null.with.default"])
        known = {field.name: (field, c) for field, c in record.value.fields(defaults=defaults)}
        if unknown := [name for name in self._names if name not in known]:
            raise MismatchError(f"Field does not exist: {unknown[0]}")
        refuse = f.raise_error(
            f.lit(
                "Only Struct objects supported for [copying fields from value to key], found: null"
            )
        )
        absent = f.when(record.value.is_null, refuse.cast("boolean")).otherwise(f.lit(False))
        return struct_part((known[name] for name in self._names), absent)

    def _object(self, record: RecordColumns) -> Part:
        entries = required_map(record.value, "copying fields from value to key")
        pairs = [
            (f.lit(n), f.try_element_at(entries, f.lit(n))) for n in dict.fromkeys(self._names)
        ]
        return map_part(f.create_map(*(column for pair in pairs for column in pair)))

    @property
    def _names(self) -> list[str]:
        return list(self.options["fields"])


class Flatten(PartTransform):
    """Moves the fields of nested structs and objects to the top, under names with a delimiter."""

    def with_schema(self, part: Part) -> Part:
        """Return a struct without structs in it; arrays stay as they are."""
        assert part.schema is not None  # noqa: S101 - called with a schema
        return part.with_fields(
            self._flat(part, "", optional=part.struct.optional, default=part.schema.default)
        )

    def _flat(
        self, part: Part, prefix: str, *, optional: bool, default: Any
    ) -> Iterator[tuple[Field, Column]]:
        for field, column in part.fields():
            name = f"{prefix}{field.name}"
            inherited = default.get(field.name) if isinstance(default, dict) else None
            own = field.schema.default if field.schema.default is not None else inherited
            missing = optional or field.schema.optional
            if field.schema.type is Type.MAP:
                raise MismatchError(
                    "Flatten transformation does not support MAP for record with schemas "
                    f"(for field {name})."
                )
            if field.schema.type is Type.STRUCT:
                nested = Part(with_default(column, field.schema), field.schema)
                start = f"{name}{self.options['delimiter']}"
                yield from self._flat(nested, start, optional=missing, default=own)
                continue
            filled = column
            if field.schema.default is not None:
                filled = f.when(~part.is_null, with_default(column, field.schema))
            yield Field(name, replace(field.schema, optional=missing, default=own)), filled

    def without_schema(self, part: Part) -> Part:
        """Return an object without objects in it."""
        return map_part(_flat_map(part.as_map(), self.options["delimiter"]))


_DEEPEST = 64


def _flat_map(entries: Column, delimiter: str) -> Column:
    """Return a map of variants without objects in it, in at most as many steps as it is deep."""

    def is_object(entry: Column) -> Column:
        return f.startswith(f.schema_of_variant(entry["value"]), f.lit("OBJECT"))

    def opened(entry: Column) -> Column:
        inner = f.map_entries(entry["value"].cast(MAP))
        named = f.transform(
            inner,
            lambda each: f.struct(
                f.concat(entry["key"], f.lit(delimiter), each["key"]).alias("key"),
                each["value"].alias("value"),
            ),
        )
        return f.when(is_object(entry), named).otherwise(f.array(entry))

    def step(found: Column, _: Column) -> Column:
        deeper = f.exists(found, is_object)
        return f.when(deeper, f.flatten(f.transform(found, opened))).otherwise(found)

    levels = f.sequence(f.lit(1), f.lit(_DEEPEST))
    return f.map_from_entries(f.aggregate(levels, f.map_entries(entries), step))


class SetSchemaMetadata(PartTransform):
    """Names and numbers the schema."""

    def with_schema(self, part: Part) -> Part:
        """Return the same columns under another name or version of their schema."""
        assert part.schema is not None  # noqa: S101 - called with a schema
        name, version = self.options["schema.name"], self.options["schema.version"]
        schema = replace(
            part.schema,
            name=part.schema.name if name is None else name,
            version=part.schema.version if version is None else version,
        )
        if spark_type(schema) != spark_type(part.schema):
            raise MismatchError(
                f"The name {name} would make the values of the schema {part.schema.name} another type"
            )
        if part.schema.type is not Type.STRUCT:
            return replace(part, schema=schema)
        members = tuple(column for _, column in part.fields(defaults=self.defaults))
        return Part(part.whole, schema, members, part.is_null)

    def without_schema(self, part: Part) -> Part:  # noqa: ARG002 - of all transforms
        """Refuse: there is no schema to name."""
        raise MismatchError("Schema required for [updating schema metadata]")
