"""`Schema`: the columns a user declares, as text or as a mapping, checked before Spark starts.

The text is Spark's own; the mapping is the same for YAML, with structs as nested mappings.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import PydanticCustomError, core_schema

from penstock.errors import ConfigError
from penstock.pipeline.columns import Field, Struct, Type, refuse_duplicates
from penstock.pipeline.ddl import parse_fields, parse_type

_MAX_DEPTH = 32


@dataclass(frozen=True)
class Schema:
    """Declared columns, in order.

    >>> Schema.parse("symbol string not null, price decimal(10,2)").ddl()
    'symbol string not null, price decimal(10,2)'
    >>> Schema.parse({"symbol": "string", "quote": {"bid": "double"}}).ddl()
    'symbol string, quote struct<bid:double>'
    """

    fields: tuple[Field, ...]

    def __post_init__(self) -> None:
        refuse_duplicates(self.fields)

    @classmethod
    def parse(cls, given: str | Mapping[str, Any] | Schema) -> Schema:
        """Read a schema from DDL text, or from a mapping of name to type text or mapping."""
        if isinstance(given, Schema):
            return given
        if isinstance(given, str):
            return cls(parse_fields(given))
        if isinstance(given, Mapping):
            return cls(_mapping_fields(given, ""))
        raise ConfigError(
            f"a schema is text ('symbol string, price double') or a mapping of name to type, "
            f"not {type(given).__name__}"
        )

    @property
    def names(self) -> tuple[str, ...]:
        """Return the columns' names, in order."""
        return tuple(field.name for field in self.fields)

    @property
    def struct(self) -> Struct:
        """Return the same columns as one struct type."""
        return Struct(self.fields)

    def ddl(self) -> str:
        """Print the schema as text that Spark's parser and `parse` both read back."""
        return ", ".join(field.ddl() for field in self.fields)

    def __str__(self) -> str:
        return self.ddl()

    @classmethod
    def __get_pydantic_core_schema__(
        cls, source: type[Any], handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        """Let a pydantic model hold a schema: it reads what `parse` reads and writes DDL."""
        return core_schema.no_info_plain_validator_function(
            _validated, serialization=core_schema.to_string_ser_schema()
        )

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """Describe both forms to an editor."""
        column = {"anyOf": [{"type": "string"}, {"type": "object"}]}
        return {
            "title": "Schema",
            "description": "Columns as Spark DDL text, or as a mapping of name to type "
            "(a nested mapping is a struct).",
            "examples": ["symbol string not null, price decimal(10,2)"],
            "anyOf": [
                {"type": "string", "minLength": 1},
                {"type": "object", "minProperties": 1, "additionalProperties": column},
            ],
        }


def _validated(given: Any) -> Schema:
    try:
        return Schema.parse(given)
    except ConfigError as error:
        raise PydanticCustomError("schema", "{reason}", {"reason": str(error)}) from None


def _mapping_fields(given: Mapping[Any, Any], path: str) -> tuple[Field, ...]:
    if path.count(".") >= _MAX_DEPTH:
        raise ConfigError(f"schema, {path[:60]}...: structs nest at most {_MAX_DEPTH} deep")
    return tuple(_mapping_field(name, value, path) for name, value in given.items())


def _mapping_field(name: Any, value: Any, path: str) -> Field:
    if not isinstance(name, str):
        raise ConfigError(
            f"schema: a column name is text, not {name!r}"
            " (YAML reads words like on and yes as booleans: put the name in quotes)"
        )
    where = f"{path}{name}"
    if not isinstance(value, str | Mapping):
        raise ConfigError(
            f"schema, {where}: a type is text ('string not null') or a mapping (a struct), "
            f"not {value!r}"
        )
    try:
        return Field(name, *_mapping_type(value, where))
    except ConfigError as error:
        prefix = "" if str(error).startswith("schema, ") else f"schema, {where}: "
        raise ConfigError(f"{prefix}{error}") from None


def _mapping_type(value: str | Mapping[Any, Any], where: str) -> tuple[Type, bool]:
    if isinstance(value, str):
        return parse_type(value)
    return Struct(_mapping_fields(value, f"{where}.")), False
