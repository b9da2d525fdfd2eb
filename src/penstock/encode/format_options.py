"""The options `value_format` and `key_format`: a name, or a name with the options of the format."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import (
    ConfigDict,
    Field,
    SerializationInfo,
    SerializerFunctionWrapHandler,
    model_validator,
)
from pydantic import model_serializer as serializes

from penstock.config.models import SafeModel
from penstock.errors import nearest
from penstock.formats.connect.converter_options import ConverterOptions
from penstock.formats.registry.registry_options import RegistryOptions

BareName = Literal[
    "json", "arrow", "dolphindb", "string", "short", "int", "long", "float", "double", "bytes", "uuid"
]  # fmt: skip
_BARE = get_args(BareName)
_CONFIG = ConfigDict(
    extra="forbid", frozen=True, hide_input_in_errors=True, serialize_by_alias=True
)


class RegistryFormatOptions(SafeModel):
    """A format whose schema is in a registry; without a schema it is derived from the columns."""

    model_config = _CONFIG

    registry: RegistryOptions = Field(description="The address of the registry, or a mapping.")
    schema_: str | dict[str, Any] | list[Any] | None = Field(
        default=None, alias="schema", description="The schema; default: derived from the columns."
    )
    schema_file: Path | None = Field(default=None, description="The file with the schema.")
    subject: Literal["topic", "record", "topic-record"] = Field(
        default="topic",
        description="The name under which the schema is registered: TOPIC-value, the record's full "
        "name, or TOPIC-RECORD.",
    )
    name: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*$",
        description="The record's full name: in a derived schema, default TOPIC_value; of the latest "
        "schema, where the subject has it.",
    )
    register_: bool = Field(
        default=True, alias="register", description="Register the schema if it is not registered."
    )
    use_latest: bool = Field(
        default=False, description="Write with the latest registered schema of the subject."
    )

    @model_validator(mode="after")
    def _one_schema(self) -> RegistryFormatOptions:
        given = [self.schema_ is not None, self.schema_file is not None, self.use_latest]
        if sum(given) > 1:
            raise ValueError("give one of schema, schema_file and use_latest")
        if self.use_latest and self.subject != "topic" and self.name is None:
            raise ValueError(f"use_latest with subject={self.subject!r} needs the record's name")
        return self

    def text(self) -> str | None:
        """Return the text of the given schema; None where it is to be derived, or the latest."""
        if self.schema_file is not None:
            return self.schema_file.read_text(encoding="utf-8")
        given = self.schema_
        return given if given is None or isinstance(given, str) else json.dumps(given)


class AvroFormat(RegistryFormatOptions):
    """Avro."""


class ProtobufFormat(RegistryFormatOptions):
    """Protobuf; the schema is the text of a .proto file."""

    message: str | None = Field(
        default=None, description="The message of the schema; default: the first one."
    )


class JsonSchemaFormat(RegistryFormatOptions):
    """JSON with a JSON Schema."""


class CsvFormat(SafeModel):
    """One line for each row."""

    model_config = _CONFIG

    delimiter: str = Field(default=",", min_length=1, max_length=1)
    quote: str = Field(default='"', min_length=1, max_length=1)
    null: str = Field(default="", description="What is written for a null.")

    @model_validator(mode="after")
    def _can_be_read_back(self) -> CsvFormat:
        if self.delimiter == self.quote or {self.delimiter, self.quote} & set("\r\n"):
            raise ValueError("delimiter and quote are two different characters of a line")
        if set(self.null) & {self.delimiter, self.quote, "\r", "\n"}:
            raise ValueError("null contains the delimiter, the quote or the end of a line")
        return self


_MODELS = ("avro", "protobuf", "json_schema", "csv")


def _or_name(schema: dict[str, Any]) -> None:
    schema["anyOf"] = [{"type": "string", "enum": [*_BARE, "csv"]}, {"type": "object"}]


class FormatChoice(SafeModel):
    """One format: its name, or a mapping of its name to its options."""

    model_config = ConfigDict(**_CONFIG, json_schema_extra=_or_name)

    bare: BareName | None = Field(
        default=None, description="A format without options; its name alone is enough."
    )
    avro: AvroFormat | None = None
    protobuf: ProtobufFormat | None = None
    json_schema: JsonSchemaFormat | None = None
    csv: CsvFormat | None = None

    @model_validator(mode="before")
    @classmethod
    def _by_name(cls, given: Any) -> Any:
        if isinstance(given, str):
            given = {given: {}}
        if not isinstance(given, Mapping) or len(given) != 1:
            raise ValueError("a format is a name, or a mapping of one name to options")
        ((name, options),) = given.items()
        if name == "bare":
            return given
        if name in _BARE:
            if options:
                raise ValueError(f"the format {name!r} has no options")
            return {"bare": name}
        if name not in _MODELS:
            raise ValueError(f"unknown format {name!r}; {nearest(str(name), [*_BARE, *_MODELS])}")
        return {name: options or {}}

    @serializes(mode="wrap")
    def _masked(self, dump: SerializerFunctionWrapHandler, _info: SerializationInfo) -> Any:
        """Write it as definitions have it; options mask their own secrets."""
        return self.bare or {self.name: dump(self)[self.name]}

    @property
    def name(self) -> str:
        """Return the name of the format."""
        return self.bare or next(name for name in _MODELS if getattr(self, name) is not None)

    @property
    def registered(self) -> RegistryFormatOptions | None:
        """Return the options of a format with a registry; None for the others."""
        return self.avro or self.protobuf or self.json_schema


class ConverterFormat(FormatChoice):
    """A converter of Kafka Connect: connectors have it as a format, definitions cannot name it."""

    connect: ConverterOptions

    @model_validator(mode="before")
    @classmethod
    def _by_name(cls, given: Any) -> Any:
        return given

    @property
    def name(self) -> str:
        """Return the name of the format."""
        return "connect"


JSON_FORMAT = FormatChoice(bare="json")
