"""What a declared column can be: small frozen values, free of Java, Spark and pyarrow.

They pickle, compare and print as Spark's own DDL, so they travel to a worker as plain data.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from penstock.errors import ConfigError
from penstock.pipeline.names import quoted

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


@dataclass(frozen=True)
class Scalar:
    """A type without parameters, under Spark's first name for it (`bigint`, never `long`)."""

    name: str

    def ddl(self) -> str:
        """Print the type as Spark writes it."""
        return self.name


@dataclass(frozen=True)
class JsonText(Scalar):
    """A string that holds the JSON text of a value, whatever the value is."""

    name: str = "string"


@dataclass(frozen=True)
class Decimal:
    """An exact number: `precision` digits in all, `scale` of them after the point."""

    precision: int = 10
    scale: int = 0

    def __post_init__(self) -> None:
        if not 1 <= self.precision <= 38 or not 0 <= self.scale <= self.precision:
            raise ConfigError(
                f"{self.ddl()} is not a possible type: "
                "precision is 1 to 38 and scale is 0 to precision"
            )

    def ddl(self) -> str:
        """Print the type as Spark writes it."""
        return f"decimal({self.precision},{self.scale})"


@dataclass(frozen=True)
class Array:
    """A list of values of one type; a value in it may be null."""

    element: Type

    def ddl(self) -> str:
        """Print the type as Spark writes it."""
        return f"array<{self.element.ddl()}>"


@dataclass(frozen=True)
class Map:
    """Text keys to values of one type; a value in it may be null."""

    value: Type

    def ddl(self) -> str:
        """Print the type as Spark writes it."""
        return f"map<string,{self.value.ddl()}>"


@dataclass(frozen=True)
class Struct:
    """Named fields, in order. Names differ even when case is ignored, as Spark compares them."""

    fields: tuple[Field, ...]

    def __post_init__(self) -> None:
        refuse_duplicates(self.fields)

    def ddl(self) -> str:
        """Print the type as Spark writes it."""
        return f"struct<{','.join(field.ddl(':') for field in self.fields)}>"


@dataclass(frozen=True)
class Field:
    """One column, or one field of a struct."""

    name: str
    type: Type
    required: bool = False

    def ddl(self, separator: str = " ") -> str:
        """Print `name type [not null]`, the name in backticks where Spark asks for them."""
        suffix = " not null" if self.required else ""
        name = self.name if _PLAIN_NAME.match(self.name) else quoted(self.name)
        return f"{name}{separator}{self.type.ddl()}{suffix}"


Type: TypeAlias = Scalar | Decimal | Array | Map | Struct


def refuse_duplicates(fields: tuple[Field, ...]) -> None:
    """Raise when there are no fields, or two whose names Spark takes for one."""
    if not fields:
        raise ConfigError("no fields are declared: name at least one, for example 'symbol string'")
    seen: dict[str, str] = {}
    for field in fields:
        if not field.name:
            raise ConfigError("a field has an empty name: give it one")
        if twin := seen.get(field.name.lower()):
            raise ConfigError(
                f"two fields are called {twin!r} and {field.name!r}: Spark ignores case, rename one"
            )
        seen[field.name.lower()] = field.name


def walk(type_: Type) -> Iterator[Type]:
    """Give a type and every type inside it, outermost first."""
    yield type_
    inner: tuple[Type, ...] = ()
    if isinstance(type_, Array):
        inner = (type_.element,)
    elif isinstance(type_, Map):
        inner = (type_.value,)
    elif isinstance(type_, Struct):
        inner = tuple(field.type for field in type_.fields)
    for child in inner:
        yield from walk(child)
