"""A chain of transforms, compiled for records with given schemas."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from penstock.formats.connect import Schema
from penstock.steps.connect_transforms.cast import Cast
from penstock.steps.connect_transforms.chain import TransformSpec
from penstock.steps.connect_transforms.conditional import apply_where
from penstock.steps.connect_transforms.header_transforms import (
    DropHeaders,
    HeaderFrom,
    InsertHeader,
)
from penstock.steps.connect_transforms.insert_field import InsertField
from penstock.steps.connect_transforms.mask_field import MaskField
from penstock.steps.connect_transforms.part_transform import Transform
from penstock.steps.connect_transforms.record_columns import KEY, VALUE, Part, RecordColumns
from penstock.steps.connect_transforms.routing import (
    Filter,
    RegexRouter,
    TimestampRouter,
    holds,
)
from penstock.steps.connect_transforms.structure import (
    ExtractField,
    Flatten,
    HoistField,
    ReplaceField,
    SetSchemaMetadata,
    ValueToKey,
)
from penstock.steps.connect_transforms.timestamp_converter import TimestampConverter

TRANSFORMS: dict[str, type[Transform]] = {
    transform.__name__: transform
    for transform in (
        Cast, DropHeaders, ExtractField, Filter, Flatten, HeaderFrom, HoistField, InsertField,
        InsertHeader, MaskField, RegexRouter, ReplaceField, SetSchemaMetadata, TimestampConverter,
        TimestampRouter, ValueToKey,
    )
}  # fmt: skip
PLAIN = ("topic", "partition", "offset", "timestamp", "headers")


@dataclass(frozen=True)
class Bound:
    """A chain with the schemas of the keys and values that it returns."""

    record: RecordColumns

    @property
    def key_schema(self) -> Schema | None:
        """Return the schema of keys after the chain; None: they are VARIANT."""
        return self.record.key.schema

    @property
    def value_schema(self) -> Schema | None:
        """Return the schema of values after the chain; None: they are VARIANT."""
        return self.record.value.schema

    def apply(self, frame: DataFrame) -> DataFrame:
        """Return the records after the chain: same columns, and next to them all others of the frame."""
        kept = frame if self.record.keep is None else frame.filter(self.record.keep)
        changed = {name: getattr(self.record, name) for name in PLAIN}
        changed |= {KEY: self.record.key.column, VALUE: self.record.value.column}
        return kept.select(
            *(
                changed[name].alias(name) if name in changed else _named(name)
                for name in frame.columns
            )
        )


def bind_chain(
    chain: Sequence[TransformSpec], key_schema: Schema | None, value_schema: Schema | None
) -> Bound:
    """Return a chain for records with these schemas; None is for a VARIANT. Spark must be running.

    What no record with these schemas can pass, such as a cast of an array, raises for each record when
    the columns are computed, and not here.
    """
    record = RecordColumns(
        **{name: f.col(name) for name in PLAIN},
        key=Part(f.col(KEY), key_schema),
        value=Part(f.col(VALUE), value_schema),
    )
    for spec in chain:
        record = _applied(spec, record)
    return Bound(record)


def _applied(spec: TransformSpec, record: RecordColumns) -> RecordColumns:
    transform = TRANSFORMS[spec.kind](spec)
    if spec.predicate is None:
        return transform.apply(record)
    selected = holds(spec.predicate, record)
    return apply_where(~selected if spec.negate else selected, transform, record)


def _named(name: str) -> Column:
    quoted = name.replace("`", "``")
    return f.col(f"`{quoted}`")
