"""Avro schemas, parsed by fastavro, as the writer and the reader want them: names resolved."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from fastavro import parse_schema
from fastavro.schema import SchemaParseException, UnknownType

from penstock.errors import ConfigError
from penstock.formats.registry import Registry, Schema

Names = dict[str, Any]


class Parsed:
    """A schema and every named type in it, those of its references included."""

    def __init__(self, schema: Schema, registry: Registry | None) -> None:
        self.names: Names = {}
        self.root = _parse(schema, registry, self.names)

    def full_name(self) -> str:
        """Return the name of the record: the part of a subject."""
        if isinstance(self.root, Mapping) and "name" in self.root:
            return str(self.root["name"])
        raise ConfigError(
            'subject="record" needs an Avro schema with a name (record, enum or fixed), '
            f"not {kind_of(self.root, self.names)}"
        )


def resolved(schema: Any, names: Names) -> Any:
    """Return the schema of a name; other schemas unchanged."""
    while True:
        if isinstance(schema, str) and schema in names:
            schema = names[schema]
        elif isinstance(schema, Mapping) and not isinstance(schema["type"], str):
            schema = schema["type"]
        else:
            return schema


def kind_of(schema: Any, names: Names) -> str:
    """Return the kind of a schema: "int", "record", "union" ..."""
    schema = resolved(schema, names)
    if isinstance(schema, list):
        return "union"
    return str(schema["type"] if isinstance(schema, Mapping) else schema)


def branch_name(branch: Any, names: Names) -> str:
    """Return the name of a type in a union: that of a record, an enum or a fixed, or the type's own.

    >>> branch_name({"type": "enum", "name": "shop.Side", "symbols": ["BUY"]}, {})
    'Side'
    """
    schema = resolved(branch, names)
    name = schema.get("name") if isinstance(schema, Mapping) else None
    return str(name).rpartition(".")[2] if name else kind_of(schema, names)


def renamed_fields(written: Any, wanted: Any) -> dict[str, str]:
    """Return the wanted name for each alias; a field that was written under its own name needs none.

    >>> renamed = {"fields": [{"name": "new", "aliases": ["old"]}]}
    >>> renamed_fields({"fields": [{"name": "old"}]}, renamed)
    {'old': 'new'}
    >>> renamed_fields({"fields": [{"name": "old"}, {"name": "new"}]}, renamed)
    {}
    """
    own = {field["name"] for field in written["fields"]}
    return {
        alias: field["name"]
        for field in wanted["fields"]
        if field["name"] not in own
        for alias in field.get("aliases", ())
    }


def takes_no_bytes(schema: Any, names: Names) -> bool:
    """Return whether values of this schema take no bytes.

    An array of those may claim any length: a few damaged bytes would fill the memory.
    """
    kind, schema = kind_of(schema, names), resolved(schema, names)
    if kind == "record":
        return all(takes_no_bytes(field["type"], names) for field in schema["fields"])
    return kind == "null" or (kind == "fixed" and schema["size"] == 0)


def refuse_empty_items(schema: Any, names: Names) -> None:
    """Refuse an array whose items take no bytes."""
    if takes_no_bytes(schema["items"], names):
        raise ConfigError(
            f"an array of items without bytes cannot be read safely: {schema['items']}"
        )


def _parse(schema: Schema, registry: Registry | None, names: Names) -> Any:
    for reference in schema.references:
        if reference.name not in names and registry:
            _parse(registry.version(reference.subject, reference.version).schema, registry, names)
    try:
        return parse_schema(json.loads(schema.text), named_schemas=names)
    except (ValueError, SchemaParseException, UnknownType, RecursionError) as error:
        raise ConfigError(f"not a valid Avro schema: {error!r:.200}: {schema.text:.200}") from error
    except (KeyError, TypeError, AttributeError) as error:
        raise ConfigError(f"not a valid Avro schema, {error!r:.100}: {schema.text:.200}") from error
