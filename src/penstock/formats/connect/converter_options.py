"""What reads and writes a key or a value: a converter of Connect, as plain options."""

from __future__ import annotations

from typing import Any, Literal, get_args

from pydantic import ConfigDict, Field, model_validator

from penstock.config.models import SafeModel
from penstock.formats.registry.registry_options import RegistryOptions

Form = Literal[
    "json", "string", "bytes", "short", "int", "long", "float", "double", "boolean",
    "avro", "protobuf", "json_schema",
]  # fmt: skip
FORMS: tuple[str, ...] = get_args(Form)
REGISTERED = ("avro", "protobuf", "json_schema")
PRIMITIVES = ("short", "int", "long", "float", "double", "boolean")


class ConverterOptions(SafeModel):
    """A converter: the form of its bytes, and the options of that form.

    >>> ConverterOptions(form="json").schemas
    True
    """

    model_config = ConfigDict(
        extra="forbid", frozen=True, hide_input_in_errors=True, serialize_by_alias=True
    )

    form: Form = Field(description="The form of the bytes.")
    schemas: bool = Field(
        default=True,
        description="JSON: every value has its schema with it, `{schema: ..., payload: ...}`.",
    )
    schema_: dict[str, Any] | None = Field(
        default=None,
        alias="schema",
        description="JSON: the schema of all values that are read, which are payloads alone then.",
    )
    decimals: Literal["base64", "numeric"] = Field(
        default="base64", description="JSON: how decimals are written; both forms are read."
    )
    replace_null: bool = Field(
        default=True, description="JSON: a null becomes the default of its schema."
    )
    encoding: str = Field(default="UTF-8", description="Text: the character set.")
    registry: RegistryOptions | None = Field(
        default=None, description="Formats with a registry: its address, or a mapping."
    )
    subject: Literal["topic", "record", "topic-record"] = Field(
        default="topic", description="Formats with a registry: the strategy of subjects."
    )
    register_: bool = Field(
        default=True, alias="register", description="Register the schemas of written values."
    )
    use_latest: bool = Field(
        default=False, description="Write with the latest schema of the subject."
    )

    @model_validator(mode="after")
    def _is_complete(self) -> ConverterOptions:
        if self.form in REGISTERED and self.registry is None:
            raise ValueError(
                f"the form {self.form!r} needs 'registry', the address of a schema registry"
            )
        return self

    @property
    def has_envelope(self) -> bool:
        """Return whether each value that is read has its schema with it."""
        return self.form == "json" and self.schemas and self.schema_ is None

    @property
    def is_schemaless(self) -> bool:
        """Return whether values have no schema: JSON alone."""
        return self.form == "json" and not self.schemas
