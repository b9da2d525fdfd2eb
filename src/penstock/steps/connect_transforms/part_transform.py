"""The base of transforms of a key or a value, and what those of values without a schema share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as f

from penstock.steps.connect_transforms.chain import TransformSpec
from penstock.steps.connect_transforms.record_columns import (
    MAP,
    VALUE,
    MismatchError,
    Part,
    RecordColumns,
    refused,
)

Change = Callable[[Column], Column]


class Transform(ABC):
    """One transform of a chain. It is built from its options, and applied to the columns of records."""

    def __init__(self, spec: TransformSpec) -> None:
        self.part: str = spec.part or VALUE
        self.options: Mapping[str, Any] = spec.options

    @abstractmethod
    def apply(self, record: RecordColumns) -> RecordColumns:
        """Return the columns after the transform."""


class PartTransform(Transform):
    """A transform of the key or of the value; the other part and the rest of the record stay."""

    def apply(self, record: RecordColumns) -> RecordColumns:
        """Return the columns with the changed part; a schema that does not fit refuses each record."""
        part: Part = getattr(record, self.part)
        try:
            changed = self.changed(part, record)
        except MismatchError as error:
            changed = refused(part, str(error))
        return record.with_part(self.part, changed)

    def changed(self, part: Part, record: RecordColumns) -> Part:  # noqa: ARG002 - for some
        """Return the part after the transform."""
        return self.without_schema(part) if part.schema is None else self.with_schema(part)

    @property
    def defaults(self) -> bool:
        """Return whether the default of a field takes the place of null."""
        return bool(self.options.get("replace.null.with.default", True))

    def with_schema(self, part: Part) -> Part:
        """Return a part that has a schema."""
        raise NotImplementedError

    def without_schema(self, part: Part) -> Part:
        """Return a part that is a VARIANT."""
        raise NotImplementedError


def changed_values(entries: Column, changes: Mapping[str, Change]) -> Column:
    """Return a map of variants in which the values of some keys are changed, where they exist."""

    def change(key: Column, value: Column) -> Column:
        made = value
        for name, apply in changes.items():
            made = f.when(key == f.lit(name), apply(value)).otherwise(made)
        return made

    return f.transform_values(entries, change)


def with_keys(entries: Column, names: Iterable[str]) -> Column:
    """Return a map of variants that has some keys: with null, where they did not exist."""
    listed = [*names]
    new = f.create_map(
        *(column for n in listed for column in (f.lit(n), f.lit(None).cast("variant")))
    )
    missing = f.map_filter(new, lambda key, _: ~f.array_contains(f.map_keys(entries), key))
    return f.map_concat(entries, missing)


def required_map(part: Part, purpose: str) -> Column:
    """Return a value without a schema as a map; a null is refused."""
    text = f"Only Map objects supported in absence of schema for [{purpose}], found: null"
    return f.coalesce(part.as_map(), f.raise_error(f.lit(text)).cast(MAP))


def without_keys(entries: Column, names: Iterable[str]) -> Column:
    """Return a map without some of its keys."""
    listed = [*names]
    return f.map_filter(entries, lambda key, _: ~key.isin(listed)) if listed else entries


def kind_of(variant: Column) -> Column:
    """Return the type of a variant as Spark names it, as in BIGINT or OBJECT<a: STRING>."""
    return f.schema_of_variant(variant)
