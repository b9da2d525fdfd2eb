"""What a class of connectors says of its data: the rows of its sink, the records of its import."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from penstock.formats.connect.converter_options import ConverterOptions
from penstock.formats.connect.json_schemas import to_document
from penstock.formats.connect.schema import Schema

Rows = Literal["text", "record", "fields", "documents"]
"""What the sink of a connector takes.

- `text`: the one column `value`: key and value have no types, the value is text (or bytes).
- `record`: topic, partition, offset, timestamp, headers, key, value; key and value with their types.
- `fields`: the fields of the value, each a column; `KeyColumns` adds others.
- `documents`: key and value as text (a value that is not text, as JSON), null for tombstones; and topic,
  partition, offset, timestamp, headers.

`topic` is that after the transforms; partition, offset and timestamp are those of the record that was
read.
"""
Tombstones = Literal["refuse", "skip", "delete"]
"""What a record without a value is to a sink of `fields`: an error, nothing, or a row with TOMBSTONE."""
TOMBSTONE = "kafka_tombstone"
"""The boolean column of `fields` where tombstones are `delete`."""
COORDINATES = ("topic", "partition", "offset", "timestamp")


def _plain_bytes() -> ConverterOptions:
    return ConverterOptions(form="bytes")


@dataclass(frozen=True)
class KeyColumns:
    """Which columns of `fields` tell rows apart, as `pk.mode` and `pk.fields` of the JDBC sinks say it.

    >>> KeyColumns.record_key("id")
    KeyColumns(origin='record_key', names=('id',))
    """

    origin: Literal["none", "record_key", "record_value", "kafka"] = "none"
    names: tuple[str, ...] = ()

    @classmethod
    def none(cls) -> KeyColumns:
        """Return no columns in addition to the fields of the value."""
        return cls()

    @classmethod
    def record_key(cls, *names: str) -> KeyColumns:
        """Return the key of the record as columns.

        A key that is no struct is the column of the one name; of a struct the fields of these names are
        columns (none: all).
        """
        return cls("record_key", names)

    @classmethod
    def record_value(cls, *names: str) -> KeyColumns:
        """Return fields of the value, which are columns anyway; they must exist (none: all)."""
        return cls("record_value", names)

    @classmethod
    def kafka(
        cls,
        topic: str = "__connect_topic",
        partition: str = "__connect_partition",
        offset: str = "__connect_offset",
    ) -> KeyColumns:
        """Return topic, partition and offset, under these names."""
        return cls("kafka", (topic, partition, offset))


@dataclass(frozen=True)
class Imported:
    """What the records of a source's import look like, before transforms and converters.

    `takes_converters`: the import has the options `key_format` and `value_format`, and writes what any
    converter writes; key and value here do not count then. Otherwise these two say what it writes; a key
    of None: its records have no keys. `never_null`: its schemas say that each record has a value.
    `is_final`: records stay as the import makes them, whatever the converters are, unless there are
    transforms.
    """

    value: ConverterOptions = field(default_factory=_plain_bytes)
    key: ConverterOptions | None = None
    takes_converters: bool = False
    never_null: bool = False
    is_final: bool = False

    @classmethod
    def lines(cls) -> Imported:
        """Return values of text, none of them null, without keys."""
        return cls(ConverterOptions(form="string"), never_null=True)

    @classmethod
    def json(cls, schema: Schema | None = None) -> Imported:
        """Return values of JSON without keys: of a schema, or of none.

        >>> from penstock.formats.connect import INT64
        >>> Imported.json(INT64).value.schema_
        {'type': 'int64', 'optional': False}
        """
        if schema is None:
            return cls(ConverterOptions(form="json", schemas=False))
        return cls(ConverterOptions(form="json", schema=to_document(schema)))

    @classmethod
    def final(cls) -> Imported:
        """Return records that stay as they are."""
        return cls(key=_plain_bytes(), is_final=True)

    @classmethod
    def any_format(cls) -> Imported:
        """Return records that the import writes with any converter."""
        return cls(takes_converters=True)
