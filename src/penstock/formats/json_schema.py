"""JSON with a JSON Schema in the registry: checked when written, and checked when read.

References lead to other schemas of the registry, never to the network, wherever a `$ref` points.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson
from jsonschema import Draft7Validator
from jsonschema.exceptions import SchemaError, best_match
from jsonschema.validators import validator_for
from referencing import Registry as Resources
from referencing import Resource
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT7

from penstock.errors import ConfigError, FormatError
from penstock.formats.json import Json, plain
from penstock.formats.registry import Registry, Schema
from penstock.formats.registry.registered import Read, RegistryFormat, SubjectName, Write
from penstock.formats.registry.registry_model import JSON


class JsonSchema(RegistryFormat):
    """JSON that a registered JSON Schema describes.

    Without a schema it only reads (each value by the schema that it was written with), unless
    `use_latest` says which one to write with. With one, what is read must fit it too. The record name is
    the schema's title.

    Examples
    --------
    ::

        trades = JsonSchema(registry, {"type": "object", "properties": {"price": {"type": "number"}}})
        producer.produce("trades", value=trades.encode({"price": 1.5}, "trades"))
    """

    name = "json_schema"
    kind = JSON

    def __init__(
        self,
        registry: Registry,
        schema: str | Mapping[str, Any] | Schema | None = None,
        *,
        subject: str | SubjectName = "topic",
        part: str = "value",
        auto_register: bool = True,
        use_latest: bool = False,
    ) -> None:
        super().__init__(
            registry, subject=subject, part=part, auto_register=auto_register, use_latest=use_latest
        )
        if schema is not None and not isinstance(schema, Schema):
            schema = Schema(
                schema if isinstance(schema, str) else orjson.dumps(schema).decode(), JSON
            )
        self._schema = schema
        self._validator = self._schema and self.validator(self._schema)

    def _record_name(self) -> str:
        document = _document(self._own_schema())
        title = document.get("title") if isinstance(document, dict) else None
        if not title:
            raise ConfigError('subject="record" needs a JSON Schema with a "title": give it one')
        return str(title)

    def _own_schema(self) -> Schema:
        if self._schema is None:
            raise ConfigError(
                "JsonSchema without a schema can only read: give one, or use_latest=True and "
                'subject="topic"'
            )
        return self._schema

    def _writer(self, schema: Schema) -> Write:
        validator = self.validator(schema)

        def write(value: Any) -> bytes:
            data = orjson.dumps(value, plain, orjson.OPT_PASSTHROUGH_DATACLASS)
            # The encoded form is checked: a date as its text, NaN as null.
            check_document(validator, orjson.loads(data))
            return data

        return write

    def _reader(self, schema: Schema) -> Read:
        validator = self._validator or self.validator(schema)

        def read(body: bytes) -> Any:
            value = Json().decode(body)
            check_document(validator, value)
            return value

        return read

    def validator(self, schema: Schema) -> Any:
        """Return what checks documents by a schema and its references; see `check_document`."""
        document = _document(schema)
        try:
            kind: Any = validator_for(document, default=Draft7Validator)
            kind.check_schema(document)
        except SchemaError as error:
            raise ConfigError(f"not a valid JSON Schema: {error.message:.300}") from error
        except (AttributeError, TypeError, ValueError, RecursionError) as error:
            raise ConfigError(
                f"not a valid JSON Schema: {error!r:.200}: {schema.text:.80}"
            ) from error
        return kind(document, registry=self._resources(schema, Resources()))

    def _resources(self, schema: Schema, resources: Resources[Any]) -> Resources[Any]:
        for reference in schema.references:
            if reference.name in resources:
                continue
            other = self.registry.version(reference.subject, reference.version).schema
            resource = Resource.from_contents(_document(other), default_specification=DRAFT7)
            resources = self._resources(other, resources.with_resource(reference.name, resource))
        return resources


def check_document(validator: Any, value: Any) -> None:
    """Raise `FormatError` with the place of a document that does not fit."""
    try:
        error = best_match(validator.iter_errors(value))
    except Unresolvable as missing:
        raise FormatError(
            f"the JSON Schema refers to {missing.ref!r}, which is not among its references"
        ) from missing
    if error is not None:
        raise FormatError(f"{error.json_path}: {error.message:.300}")


def _document(schema: Schema) -> Any:
    try:
        return orjson.loads(schema.text)
    except orjson.JSONDecodeError as error:
        raise ConfigError(f"not a JSON Schema: {error}: {schema.text:.80}") from error
