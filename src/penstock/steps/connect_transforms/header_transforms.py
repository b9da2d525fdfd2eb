"""Transforms of headers: insert, drop, and copy or move from fields."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from pyspark.sql import Column
from pyspark.sql import functions as f

from penstock.pipeline.header_column import HEADERS
from penstock.steps.connect_transforms.header_text import header_text, literal_text, variant_text
from penstock.steps.connect_transforms.part_transform import Transform, without_keys
from penstock.steps.connect_transforms.record_columns import (
    MismatchError,
    Part,
    RecordColumns,
    map_part,
    refused,
)


class InsertHeader(Transform):
    """Adds one header at the end."""

    def apply(self, record: RecordColumns) -> RecordColumns:
        """Return the columns with one more header."""
        text = f.lit(literal_text(self.options["value.literal"]))
        return replace(record, headers=_added(record.headers, [(self.options["header"], text)]))


class DropHeaders(Transform):
    """Removes all headers of some names."""

    def apply(self, record: RecordColumns) -> RecordColumns:
        """Return the columns without these headers."""
        names = self.options["headers"]
        headers = f.filter(record.headers, lambda header: ~header["key"].isin(names))
        return replace(record, headers=headers)


class HeaderFrom(Transform):
    """Copies or moves fields into headers. A key or value that is null is refused."""

    def apply(self, record: RecordColumns) -> RecordColumns:
        """Return the columns with the new headers, without the fields that moved."""
        part: Part = getattr(record, self.part)
        try:
            texts = self._from_object(part) if part.schema is None else self._from_struct(part)
            changed = self._changed(part)
        except MismatchError as error:
            refuse = f.raise_error(f.lit(str(error))).cast(HEADERS)
            return replace(record, headers=refuse).with_part(self.part, refused(part, str(error)))
        headers = _added(record.headers, zip(self.options["headers"], texts, strict=True))
        refuse = f.raise_error(
            f.lit(f"Only objects supported for [header {self.options['operation']}], found: null")
        )
        present = f.when(part.is_null, refuse.cast(HEADERS)).otherwise(headers)
        return replace(record, headers=present).with_part(self.part, changed)

    def _from_struct(self, part: Part) -> list[Column]:
        defaults = bool(self.options["replace.null.with.default"])
        known = {
            field.name: (column, field.schema) for field, column in part.fields(defaults=defaults)
        }
        for name in self.options["fields"]:
            if name not in known:
                raise MismatchError(f"{name} is not a valid field name")
        return [header_text(*known[name]) for name in self.options["fields"]]

    def _from_object(self, part: Part) -> list[Column]:
        entries = part.as_map()
        names = self.options["fields"]
        return [variant_text(f.try_element_at(entries, f.lit(name))) for name in names]

    def _changed(self, part: Part) -> Part:
        names = self.options["fields"]
        if self.options["operation"] == "copy":
            return part
        if part.schema is None:
            return map_part(without_keys(part.as_map(), names))
        defaults = bool(self.options["replace.null.with.default"])
        pairs = part.fields(defaults=defaults)
        return part.with_fields(pair for pair in pairs if pair[0].name not in names)


def _added(headers: Column, new: Iterable[tuple[str, Column]]) -> Column:
    made = [
        f.struct(f.lit(name).alias("key"), text.cast("binary").alias("value")) for name, text in new
    ]
    existing = f.coalesce(headers, f.array().cast(HEADERS))
    return f.concat(existing, f.array(*made).cast(HEADERS))
