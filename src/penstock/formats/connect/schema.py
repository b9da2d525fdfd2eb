"""Schemas of Kafka Connect: types, optional fields, defaults, names, and the logical types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from penstock.errors import ConfigError

LOGICAL = "org.apache.kafka.connect.data."
DATE, TIME, TIMESTAMP, DECIMAL = (f"{LOGICAL}{n}" for n in ("Date", "Time", "Timestamp", "Decimal"))
SCALE = "scale"


class Type(str, Enum):
    """What a value is."""

    INT8 = "int8"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    FLOAT32 = "float"
    FLOAT64 = "double"
    BOOLEAN = "boolean"
    STRING = "string"
    BYTES = "bytes"
    ARRAY = "array"
    MAP = "map"
    STRUCT = "struct"


@dataclass(frozen=True)
class Field:
    """One field of a struct."""

    name: str
    schema: Schema


@dataclass(frozen=True)
class Schema:
    """The schema of a value. Equal schemas are equal values.

    >>> order = SchemaBuilder.struct("Order").field("id", INT64).field("note", STRING.or_null()).build()
    >>> order["note"].optional
    True
    >>> [each.name for each in order.fields]
    ['id', 'note']
    """

    type: Type
    optional: bool = False
    default: Any = None
    name: str | None = None
    version: int | None = None
    doc: str | None = None
    parameters: Mapping[str, str] = field(default_factory=dict)
    fields: tuple[Field, ...] = ()
    keys: Schema | None = None
    values: Schema | None = None

    def __post_init__(self) -> None:
        """Refuse a schema that cannot be."""
        if self.type is Type.ARRAY and self.values is None:
            raise ConfigError("an array has a schema for its elements: SchemaBuilder.array(STRING)")
        if self.type is Type.MAP and (self.keys is None or self.values is None):
            raise ConfigError(
                "a map has schemas for its keys and values: SchemaBuilder.map(STRING, INT64)"
            )
        names = [each.name for each in self.fields]
        if len({*names}) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise ConfigError(f"a struct has one field of a name, and {twice!r} is there twice")

    def __getitem__(self, name: str) -> Schema:
        """Return the schema of a field."""
        for each in self.fields:
            if each.name == name:
                return each.schema
        known = ", ".join(each.name for each in self.fields) or "none"
        raise KeyError(f"there is no field {name!r}; there are: {known}")

    def __contains__(self, name: object) -> bool:
        """Return whether there is such a field."""
        return any(each.name == name for each in self.fields)

    def or_null(self) -> Schema:
        """Return the same schema for values that may be missing."""
        return replace(self, optional=True)

    def with_fields(self, fields: Iterable[Field]) -> Schema:
        """Return the same struct with other fields."""
        return replace(self, fields=tuple(fields))


INT8, INT16, INT32, INT64 = (Schema(t) for t in (Type.INT8, Type.INT16, Type.INT32, Type.INT64))
FLOAT32, FLOAT64 = Schema(Type.FLOAT32), Schema(Type.FLOAT64)
BOOLEAN, STRING, BYTES = Schema(Type.BOOLEAN), Schema(Type.STRING), Schema(Type.BYTES)


def date() -> Schema:
    """Return the schema of dates: days since 1970."""
    return Schema(Type.INT32, name=DATE, version=1)


def time() -> Schema:
    """Return the schema of times of the day: milliseconds since midnight."""
    return Schema(Type.INT32, name=TIME, version=1)


def timestamp() -> Schema:
    """Return the schema of moments: milliseconds since 1970, UTC."""
    return Schema(Type.INT64, name=TIMESTAMP, version=1)


def decimal(scale: int) -> Schema:
    """Return the schema of exact numbers with that many digits after the point.

    >>> decimal(2).parameters
    {'scale': '2'}
    """
    return Schema(Type.BYTES, name=DECIMAL, version=1, parameters={SCALE: str(scale)})


class SchemaBuilder:
    """Builds a schema in steps; `build` returns it.

    >>> SchemaBuilder.struct().field("id", INT64).optional().build().optional
    True
    """

    def __init__(self, type: Type | str, **given: Any) -> None:
        self._made = Schema(Type(type), **given)

    @classmethod
    def struct(cls, name: str | None = None) -> SchemaBuilder:
        """Begin a struct."""
        return cls(Type.STRUCT, name=name)

    @classmethod
    def array(cls, values: Schema) -> SchemaBuilder:
        """Begin an array of such elements."""
        return cls(Type.ARRAY, values=values)

    @classmethod
    def map(cls, keys: Schema, values: Schema) -> SchemaBuilder:
        """Begin a map of such keys and values."""
        return cls(Type.MAP, keys=keys, values=values)

    def field(self, name: str, schema: Schema | SchemaBuilder) -> SchemaBuilder:
        """Add a field to a struct."""
        if self._made.type is not Type.STRUCT:
            raise ConfigError(
                f"only a struct has fields, and this is of type {self._made.type.value}"
            )
        built = schema.build() if isinstance(schema, SchemaBuilder) else schema
        return self._with(fields=(*self._made.fields, Field(name, built)))

    def optional(self) -> SchemaBuilder:
        """Let values be missing."""
        return self._with(optional=True)

    def default(self, value: Any) -> SchemaBuilder:
        """Set what a missing value stands for."""
        return self._with(default=value)

    def name(self, name: str) -> SchemaBuilder:
        """Name the schema."""
        return self._with(name=name)

    def version(self, version: int) -> SchemaBuilder:
        """Number the schema."""
        return self._with(version=version)

    def doc(self, doc: str) -> SchemaBuilder:
        """Describe the schema."""
        return self._with(doc=doc)

    def parameter(self, name: str, value: str) -> SchemaBuilder:
        """Add a parameter: what a logical type needs to know."""
        return self._with(parameters={**self._made.parameters, name: value})

    def build(self) -> Schema:
        """Return the schema."""
        return self._made

    def _with(self, **changes: Any) -> SchemaBuilder:
        self._made = replace(self._made, **changes)
        return self
