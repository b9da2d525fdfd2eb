"""InsertField: the topic, partition, offset, timestamp or a fixed text as a field."""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import Column
from pyspark.sql import functions as f

from penstock.formats.connect import INT32, INT64, STRING, Field, Schema, timestamp
from penstock.steps.connect_transforms.part_transform import PartTransform
from penstock.steps.connect_transforms.record_columns import Part, RecordColumns, map_part


class InsertField(PartTransform):
    """Adds fields with data of the record, or with one text."""

    def changed(self, part: Part, record: RecordColumns) -> Part:
        """Return the struct or object with the new fields."""
        if part.schema is None:
            return self._object(part, record)
        return self._struct(part, record)

    def _struct(self, part: Part, record: RecordColumns) -> Part:
        new = [
            (Field(name, schema.or_null() if optional else schema), column)
            for name, optional, schema, column in self._inserted(record)
        ]
        return part.with_fields([*part.fields(defaults=self.defaults), *new])

    def _object(self, part: Part, record: RecordColumns) -> Part:
        """Return the object with the new entries; a new one that is null leaves the old one."""
        new = {
            name: f.unix_millis(column) if schema == timestamp() else column
            for name, _, schema, column in self._inserted(record)
        }
        pairs = [made for n, c in new.items() for made in (f.lit(n), c.cast("variant"))]
        added = f.map_filter(f.create_map(*pairs), lambda _, value: value.isNotNull())
        old = f.map_filter(part.as_map(), lambda key, _: ~f.array_contains(f.map_keys(added), key))
        return map_part(f.map_concat(old, added))

    def _inserted(self, record: RecordColumns) -> Iterator[tuple[str, bool, Schema, Column]]:
        offset = f.coalesce(
            record.offset,
            f.raise_error(
                f.lit("Offset insertion is only supported for records that a sink connector reads")
            ).cast("bigint"),
        )
        candidates = (
            ("topic.field", STRING, record.topic),
            ("partition.field", INT32, record.partition),
            ("offset.field", INT64, offset),
            ("timestamp.field", timestamp(), record.timestamp),
            ("static.field", STRING, f.lit(self.options["static.value"])),
        )
        for key, schema, column in candidates:
            if (given := self.options[key]) is not None:
                name = given[:-1] if given.endswith(("!", "?")) else given
                yield name, not given.endswith("!"), schema, column
