"""Schemas as JsonConverter writes them next to a payload, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.errors import ConfigError
from penstock.formats.connect.schema import Field, Schema, Type


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
        made["default"] = schema.default
    return made


def from_document(document: object) -> Schema:
    """Return the schema that a document stands for; raise ConfigError where it stands for none.

    >>> from_document({"type": "array", "items": {"type": "int32"}, "optional": True}).values.type.value
    'int32'
    """
    if not isinstance(document, Mapping):
        raise ConfigError(f"a schema is a JSON object with a 'type', not {document!r:.200}")
    kind = document.get("type")
    if kind not in {each.value for each in Type}:
        allowed = ", ".join(each.value for each in Type)
        raise ConfigError(f"the schema type {kind!r:.200} is not known; allowed: {allowed}")
    parts: dict[str, Any] = {}
    match Type(kind):
        case Type.ARRAY:
            parts["values"] = from_document(document.get("items"))
        case Type.MAP:
            parts["keys"] = from_document(document.get("keys"))
            parts["values"] = from_document(document.get("values"))
        case Type.STRUCT:
            parts["fields"] = tuple(map(_field, document.get("fields") or ()))
    return Schema(
        Type(kind),
        optional=bool(document.get("optional", False)),
        default=document.get("default"),
        name=document.get("name"),
        version=document.get("version"),
        doc=document.get("doc"),
        parameters=dict(document.get("parameters") or {}),
        **parts,
    )


def _field(document: object) -> Field:
    if not isinstance(document, Mapping) or not isinstance(document.get("field"), str):
        raise ConfigError(
            f"a field of a struct is a schema with its name as 'field': {document!r:.200}"
        )
    return Field(document["field"], from_document(document))


def _given(schema: Schema | None) -> Schema:
    assert schema is not None  # noqa: S101 - a schema is refused without
    return schema
