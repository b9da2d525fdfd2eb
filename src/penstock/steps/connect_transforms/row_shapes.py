"""What the records of a connector become behind its transforms: rows for its sink, or records again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from penstock.formats.connect.converter_options import ConverterOptions


class Shape:
    """The base of them all."""


@dataclass(frozen=True)
class Text(Shape):
    """One column `value`: the value as text, bytes as they are."""


@dataclass(frozen=True)
class Record(Shape):
    """The columns of the record, with the types of key and value."""


@dataclass(frozen=True)
class Documents(Shape):
    """Key and value as text, structs as JSON, with the coordinates of the record."""


@dataclass(frozen=True)
class Fields(Shape):
    """The fields of the value, each a column, and columns that tell rows apart."""

    key_from: Literal["none", "record_key", "record_value", "kafka"] = "none"
    key_names: tuple[str, ...] = ()
    # The only fields that become columns; none: all.
    only: tuple[str, ...] = ()
    # More columns, with topic, partition, offset or timestamp for each.
    coordinates: Mapping[str, str] = field(default_factory=dict)
    tombstones: Literal["refuse", "skip", "delete"] = "refuse"
    # The boolean column where tombstones are `delete`.
    tombstone: str = "kafka_tombstone"


@dataclass(frozen=True)
class Encoded(Shape):
    """Records for a topic, written by converters."""

    key: ConverterOptions
    value: ConverterOptions
