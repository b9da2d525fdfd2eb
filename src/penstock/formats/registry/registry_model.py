"""What a schema registry holds: schemas, what they refer to, and where they are registered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

AVRO, PROTOBUF, JSON = "AVRO", "PROTOBUF", "JSON"
Level = Literal[
    "BACKWARD",
    "BACKWARD_TRANSITIVE",
    "FORWARD",
    "FORWARD_TRANSITIVE",
    "FULL",
    "FULL_TRANSITIVE",
    "NONE",
]
LEVELS: tuple[str, ...] = get_args(Level)


@dataclass(frozen=True, slots=True)
class Reference:
    """A schema that another one uses under `name`: version `version` of a subject."""

    name: str
    subject: str
    version: int

    def as_json(self) -> dict[str, Any]:
        """Give it as the registry writes it."""
        return {"name": self.name, "subject": self.subject, "version": self.version}


@dataclass(frozen=True, slots=True)
class Schema:
    """The text of a schema, its kind (AVRO, PROTOBUF or JSON), and the schemas that it refers to.

    >>> Schema('"string"').as_json()
    {'schema': '"string"', 'schemaType': 'AVRO'}
    """

    text: str
    kind: str = AVRO
    references: tuple[Reference, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Give it as the registry takes it."""
        body: dict[str, Any] = {"schema": self.text, "schemaType": self.kind}
        if self.references:
            body["references"] = [reference.as_json() for reference in self.references]
        return body

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Schema:
        """Read what the registry answers; a kind that is not named is Avro.

        >>> Schema.from_json({"schema": "{}", "schemaType": "JSON", "references": None})
        Schema(text='{}', kind='JSON', references=())
        """
        references = (
            Reference(found["name"], found["subject"], found["version"])
            for found in body.get("references") or ()
        )
        return cls(body["schema"], body.get("schemaType") or AVRO, tuple(references))


@dataclass(frozen=True, slots=True)
class Registered:
    """One version of a subject: its number there, its id in the whole registry, its schema."""

    subject: str
    version: int
    id: int
    schema: Schema

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Registered:
        """Read what the registry answers."""
        return cls(body["subject"], body["version"], body["id"], Schema.from_json(body))
