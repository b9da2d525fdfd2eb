"""`$ref` of JSON Schema: pointers within a document, and to other documents by their names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from penstock.errors import ConfigError


@dataclass(frozen=True, eq=False)
class Document:
    """A JSON Schema document; the one that was given has no name."""

    name: str
    content: Any


class Documents:
    """The other documents that references may name.

    >>> documents = Documents({"a.json": {"$defs": {"n": {"type": "integer"}}}})
    >>> documents.resolve("a.json#/$defs/n", Document("", {}), "")[2]
    {'type': 'integer'}
    """

    def __init__(self, contents: Mapping[str, Any]) -> None:
        self._documents = {name: Document(name, content) for name, content in contents.items()}

    def resolve(self, reference: str, within: Document, path: str) -> tuple[Document, str, Any]:
        """Return the document, the pointer and the content that a reference means."""
        name, _, pointer = reference.partition("#")
        document = self._named(name, within)
        where = f"{path or 'the schema'}: {reference!r}"
        if document is None:
            known = ", ".join(sorted(self._documents)) or "none"
            raise ConfigError(f"{where} is not among the references; known: {known}")
        content = document.content
        for step in unquote(pointer).split("/")[1:]:
            content = _child(content, step.replace("~1", "/").replace("~0", "~"))
        if content is None or (pointer and not pointer.startswith("/")):
            raise ConfigError(f"{where} is not in the document; a reference is #/$defs/NAME")
        return document, pointer, content

    def _named(self, name: str, within: Document) -> Document | None:
        own = within.content.get("$id") if isinstance(within.content, Mapping) else None
        return within if not name or name == own else self._documents.get(name)


def _child(content: Any, step: str) -> Any:
    if isinstance(content, Mapping):
        return content.get(step)
    if isinstance(content, list) and step.isascii() and step.isdigit() and int(step) < len(content):
        return content[int(step)]
    return None
