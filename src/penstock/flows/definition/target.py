"""Where a step writes its result: `payload`, `variable.NAME` or `attribute.NAME`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from penstock.flows.definition.model import refused
from penstock.flows.message import Message

_FORM = re.compile(r"payload|(?:variable|attribute)\.[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class Target:
    """A part of the message.

    >>> Target.read("variable.customer").applied(Message(b"x"), 7).variable
    {'customer': 7}
    """

    given: str

    @classmethod
    def read(cls, given: Any) -> Target:
        """Read the text of a definition."""
        if isinstance(given, Target):
            return given
        if not isinstance(given, str) or not _FORM.fullmatch(given):
            raise refused(f"given {given!r:.60}; allowed: payload, variable.NAME, attribute.NAME")
        return cls(given)

    def applied(self, message: Message, value: Any) -> Message:
        """Return the message with a value in this part."""
        part, _, name = self.given.partition(".")
        if not name:
            return message.changed(payload=value)
        return message.changed(**{part: {**getattr(message, part), name: value}})

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(
            cls.read,
            serialization=core_schema.plain_serializer_function_ser_schema(lambda t: t.given),
        )

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {"type": "string", "pattern": _FORM.pattern}


PAYLOAD = Target("payload")
