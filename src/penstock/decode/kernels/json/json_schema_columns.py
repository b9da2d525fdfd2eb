"""The columns of a table that holds the documents of a JSON Schema.

A value with one clear type becomes a column of it; any other value is kept as its JSON text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from penstock.decode.kernels.json.json_schema_references import Document, Documents
from penstock.errors import ConfigError
from penstock.pipeline.columns import Array, Field, JsonText, Map, Scalar, Struct, Type
from penstock.pipeline.schema import Schema

_SCALARS = {"integer": "bigint", "number": "double", "boolean": "boolean", "string": "string"}
_FORMATS = {"date-time": "timestamp", "date": "date"}
_MOST_DEPTH = 32
_MOST_FIELDS = 10_000
_Node = Mapping[str, Any]


def json_schema_columns(
    schema: Mapping[str, Any] | str, references: Mapping[str, Mapping[str, Any] | str] | None = None
) -> Schema:
    """Return the columns of a JSON Schema document; `references` are other documents by their names.

    >>> document = {"properties": {"id": {"type": "integer"}, "any": {}}, "required": ["id"]}
    >>> json_schema_columns(document).ddl()
    'id bigint not null, any string'
    """
    documents = Documents({name: _parsed(each, name) for name, each in (references or {}).items()})
    root = Document("", _parsed(schema, "the schema"))
    return _Columns(documents).columns(root)


def _parsed(schema: Any, name: str) -> Any:
    if not isinstance(schema, str):
        return schema
    try:
        return json.loads(schema)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{name} is not JSON: {error}") from None


@dataclass(frozen=True)
class _At:
    """A place in a document: the path of the column, and the references that led to it."""

    document: Document
    path: str = ""
    through: tuple[tuple[str, str], ...] = ()
    depth: int = 0

    def inner(self, name: str) -> _At:
        path = name if name.startswith("[") or not self.path else f".{name}"
        return replace(self, path=f"{self.path}{path}", depth=self.depth + 1)


@dataclass
class _Columns:
    documents: Documents
    _fields: int = field(default=0)

    def columns(self, root: Document) -> Schema:
        node, at, _ = self._resolved(root.content, _At(root))
        if not node.get("properties"):
            raise ConfigError(
                "the schema is not an object with properties, and a table has named columns"
            )
        required = _list(node, "required")
        fields = []
        for name, each in self._properties(node, at):
            type_, nullable = self._type(each, at.inner(name))
            needed = name in required and not nullable
            fields.append(Field(name, type_, needed and not isinstance(type_, JsonText)))
        return Schema(tuple(fields))

    def _properties(self, node: _Node, at: _At) -> list[tuple[str, Any]]:
        properties = list(node["properties"].items())
        self._fields += len(properties)
        if self._fields > _MOST_FIELDS:
            raise ConfigError(f"{at.path or 'the schema'}: more than {_MOST_FIELDS} fields")
        return properties

    def _type(self, given: Any, at: _At) -> tuple[Type, bool]:
        """Return the type of a value, and whether it may be null."""
        if at.depth > _MOST_DEPTH:
            raise ConfigError(f"{at.path}: values nest at most {_MOST_DEPTH} deep")
        node, at, nullable = self._resolved(given, at)
        names = _list(node, "type")
        nullable = nullable or "null" in names or None in _list(node, "enum")
        clear = [name for name in names if name != "null"]
        if len(clear) > 1 or any(key in node for key in ("anyOf", "oneOf", "allOf", "not")):
            return JsonText(), True
        name = clear[0] if clear else _implied(node)
        if name == "object":
            return self._object(node, at), nullable
        if name == "array":
            return self._array(node, at), nullable
        if name == "string":
            return Scalar(_FORMATS.get(str(node.get("format")), "string")), nullable
        return (Scalar(_SCALARS[name]), nullable) if name in _SCALARS else (JsonText(), True)

    def _object(self, node: _Node, at: _At) -> Type:
        if node.get("properties"):
            named = self._properties(node, at)
            inner = [Field(name, self._type(each, at.inner(name))[0]) for name, each in named]
            try:
                return Struct(tuple(inner))
            except ConfigError as error:
                raise ConfigError(f"{at.path}: {error}") from None
        values = node.get("additionalProperties")
        if isinstance(values, Mapping) and values and not node.get("patternProperties"):
            return Map(self._type(values, at.inner("[key]"))[0])
        return JsonText()

    def _array(self, node: _Node, at: _At) -> Type:
        items = node.get("items", True)
        if isinstance(items, list) or "prefixItems" in node:
            return JsonText()
        return Array(self._type(items, at.inner("[]"))[0])

    def _resolved(self, given: Any, at: _At) -> tuple[_Node, _At, bool]:
        """Follow references and unions of one type with null, until a node says what it is itself."""
        nullable = False
        while True:
            if isinstance(given, bool):
                return {}, at, True
            if not isinstance(given, Mapping):
                raise ConfigError(f"{at.path or 'the schema'}: not a JSON Schema: {given!r:.60}")
            nullable = nullable or given.get("nullable") is True
            if "$ref" in given:
                given, at = self._followed(str(given["$ref"]), at)
                continue
            only, with_null = _only_choice(given)
            nullable = nullable or with_null
            if only is None:
                return given, at, nullable
            given = only

    def _followed(self, reference: str, at: _At) -> tuple[Any, _At]:
        document, pointer, content = self.documents.resolve(reference, at.document, at.path)
        step = (document.name, pointer)
        if step in at.through:
            raise ConfigError(
                f"{at.path or 'the schema'}: {reference!r} refers to itself, and a table has a fixed "
                "number of columns; use a decode of raw bytes or a parser for recursive values"
            )
        return content, replace(at, document=document, through=(*at.through, step))


def _list(node: _Node, key: str) -> list[Any]:
    found = node.get(key, [])
    return found if isinstance(found, list) else [found]


def _only_choice(node: _Node) -> tuple[Any, bool]:
    """Return the only alternative of a union besides null, and whether null is another one."""
    for key in ("anyOf", "oneOf", "allOf"):
        choices = node.get(key)
        if not isinstance(choices, list) or "properties" in node:
            continue
        others = [each for each in choices if not _is_null(each)]
        if len(others) == 1:
            return others[0], len(others) < len(choices)
    return None, False


def _is_null(given: Any) -> bool:
    return isinstance(given, Mapping) and given.get("type") in ("null", ["null"])


def _implied(node: _Node) -> str:
    """Return the type that a node without one has, as its other keys show; empty if they do not."""
    if node.get("properties"):
        return "object"
    given = _list(node, "enum") if "enum" in node else _list(node, "const")
    texts = [each for each in given if each is not None]
    if texts and all(isinstance(each, str) for each in texts):
        return "string"
    return "array" if isinstance(node.get("items"), Mapping) else ""
