"""Schemas as JsonConverter writes them next to a payload, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from penstock.errors import ConfigError
from penstock.formats.connect.json_values import from_json, to_json
from penstock.formats.connect.schema import Field, Schema, Type

_DEEPEST = 64


def to_document(schema: Schema) -> dict[str, Any]:
    """Return the document that stands for a schema.

    >>> from penstock.formats.connect.schema import INT64, STRING, SchemaBuilder
    >>> to_document(SchemaBuilder.struct("Order").field("note", STRING.or_null()).build())["fields"]
    [{'type': 'string', 'optional': True, 'field': 'note'}]
    """
    made: dict[str, Any] = {"type": schema.type.value}
    match schema.type:
        case Type.ARRAY:
            made["items"] = to_document(_given(schema.values))
        case Type.MAP:
            made["keys"] = to_document(_given(schema.keys))
            made["values"] = to_document(_given(schema.values))
        case Type.STRUCT:
            made["fields"] = [
                {**to_document(each.schema), "field": each.name} for each in schema.fields
            ]
    made["optional"] = schema.optional
    named = {"name": schema.name, "version": schema.version, "doc": schema.doc}
    made |= {key: value for key, value in named.items() if value is not None}
    if schema.parameters:
        made["parameters"] = dict(schema.parameters)
    if schema.default is not None:
        made["default"] = to_json(schema, schema.default)
    return made


def from_document(document: object, depth: int = 0) -> Schema:
    """Return the schema that a document stands for; raise ConfigError where it stands for none.

    >>> from_document({"type": "array", "items": {"type": "int32"}, "optional": True}).values.type.value
    'int32'
    """
    if not isinstance(document, Mapping):
        raise ConfigError(f"a schema is a JSON object with a 'type', not {document!r:.200}")
    if depth > _DEEPEST:
        raise ConfigError(f"schemas nest at most {_DEEPEST} deep")
    kind = document.get("type")
    if not isinstance(kind, str) or kind not in {each.value for each in Type}:
        allowed = ", ".join(each.value for each in Type)
        raise ConfigError(f"the schema type {kind!r:.200} is not known; allowed: {allowed}")
    parts: dict[str, Any] = {}
    match Type(kind):
        case Type.ARRAY:
            parts["values"] = from_document(document.get("items"), depth + 1)
        case Type.MAP:
            parts["keys"] = from_document(document.get("keys"), depth + 1)
            parts["values"] = from_document(document.get("values"), depth + 1)
        case Type.STRUCT:
            given = _member(document, "fields", list) or ()
            parts["fields"] = tuple(_field(each, depth + 1) for each in given)
    parameters = _member(document, "parameters", Mapping) or {}
    schema = Schema(
        Type(kind),
        optional=document.get("optional") is True,
        name=_member(document, "name", str),
        version=_member(document, "version", int),
        doc=_member(document, "doc", str),
        parameters={str(key): str(value) for key, value in parameters.items()},
        **parts,
    )
    default = from_json(schema, document.get("default"))
    return schema if default is None else replace(schema, default=default)


def _member(document: Mapping[str, Any], name: str, kind: type) -> Any:
    given = document.get(name)
    if given is None or (isinstance(given, kind) and not isinstance(given, bool)):
        return given
    raise ConfigError(f"the member {name!r} of a schema is not possible: {given!r:.200}")


def _field(document: object, depth: int) -> Field:
    if not isinstance(document, Mapping) or not isinstance(document.get("field"), str):
        raise ConfigError(
            f"a field of a struct is a schema with its name as 'field': {document!r:.200}"
        )
    return Field(document["field"], from_document(document, depth))


def _given(schema: Schema | None) -> Schema:
    assert schema is not None  # noqa: S101 - a schema is refused without
    return schema
