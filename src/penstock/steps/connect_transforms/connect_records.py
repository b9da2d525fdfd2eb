"""The records behind a chain of transforms: a frame of their columns, and what key and value are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from penstock.formats.connect import Schema
from penstock.pipeline import ORIGIN
from penstock.steps.connect_transforms.binding import bind_chain
from penstock.steps.connect_transforms.chain import TransformSpec
from penstock.steps.connect_transforms.record_columns import KEY, VALUE

COLUMNS = ("topic", "partition", "offset", "timestamp", "headers", KEY, VALUE)


@dataclass(frozen=True)
class Records:
    """Records as columns. A key or value without a schema is text of JSON, or `unknown`: not read yet."""

    frame: DataFrame
    key_schema: Schema | None
    value_schema: Schema | None
    unknown: frozenset[str] = frozenset()

    @property
    def origin(self) -> list[str]:
        """Return the columns of the rows' origin, where they are asked for."""
        return [name for name in self.frame.columns if name in ORIGIN]

    def schema_of(self, part: str) -> Schema | None:
        """Return the schema of key or value."""
        return self.key_schema if part == KEY else self.value_schema

    def with_columns(self, columns: dict[str, Column]) -> Records:
        """Return the same with other columns."""
        return replace(self, frame=self.frame.withColumns(columns))

    def transformed(self, chain: Sequence[TransformSpec]) -> Records:
        """Return the records after a chain."""
        if not chain:
            return self
        used = _used(chain)
        read = {p: f.parse_json(f.col(p)) for p in used if self.schema_of(p) is None}
        bound = bind_chain(chain, self.key_schema, self.value_schema)
        after = bound.apply(self.frame.withColumns(read) if read else self.frame)
        schemas = {KEY: bound.key_schema, VALUE: bound.value_schema}
        written = {part: f.to_json(part) for part in used if schemas[part] is None}
        frame = after.withColumns(written) if written else after
        known = frozenset(part for part in self.unknown if schemas[part] is None)
        return Records(frame, schemas[KEY], schemas[VALUE], known)


def _used(chain: Sequence[TransformSpec]) -> list[str]:
    """Return which of key and value a chain reads or changes: JSON is not parsed for all others."""
    parts = {spec.part for spec in chain}
    both = any(spec.kind == "ValueToKey" for spec in chain)
    return [part for part in (KEY, VALUE) if both or part in parts]


def as_imported(frame: DataFrame, topic: Column) -> DataFrame:
    """Return records of an import as a source has them: with their topic, no partition and no offset."""
    return frame.withColumns(
        {
            "topic": topic,
            "partition": f.lit(None).cast("int"),
            "offset": f.lit(None).cast("bigint"),
        }
    )
