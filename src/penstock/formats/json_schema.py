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
from penstock.formats.json.json import Json, plain
from penstock.formats.registry import Registry, Schema
from penstock.formats.registry.model import JSON
from penstock.formats.registry.registered import Read, RegistryFormat, SubjectName, Write


class JsonSchema(RegistryFormat):
    """JSON that a registered JSON Schema describes.

    Without a schema it only reads (each value by the schema that it was written with), unless
    `use_latest` says which one to write with. With one, what is read must fit it too. The record name is
    the schema's title.

    Examples
    --------
    ::

        trades = JsonSchema(registry, {"title": "Trade", "type": "object", "required": ["price"]})
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
        self._schema = None if schema is None else _schema(schema)
        self._validator = self._schema and self._made(self._schema)

    def _record_name(self) -> str:
        return title(self._own_schema())

    def _own_schema(self) -> Schema:
        return need(self._schema, "JsonSchema")

    def _writer(self, schema: Schema) -> Write:
        validator = self._made(schema)

        def write(value: Any) -> bytes:
            data = orjson.dumps(value, plain, orjson.OPT_PASSTHROUGH_DATACLASS)
            # Checked is what goes out: a date as its text, NaN as null.
            _check(validator, orjson.loads(data))
            return data

        return write

    def _reader(self, schema: Schema) -> Read:
        validator = self._validator or self._made(schema)

        def read(body: bytes) -> Any:
            value = Json().decode(body)
            _check(validator, value)
            return value

        return read

    def _made(self, schema: Schema) -> Any:
        document = _document(schema)
        kind: Any = validator_for(document, default=Draft7Validator)
        try:
            kind.check_schema(document)
        except SchemaError as error:
            raise ConfigError(f"no valid JSON Schema: {error.message}") from error
        return kind(document, registry=self._resources(schema, Resources()))

    def _resources(self, schema: Schema, found: Resources[Any]) -> Resources[Any]:
        for reference in schema.references:
            if reference.name in found:
                continue
            other = self.registry.version(reference.subject, reference.version).schema
            resource = Resource.from_contents(_document(other), default_specification=DRAFT7)
            found = self._resources(other, found.with_resource(reference.name, resource))
        return found


def need(schema: Schema | None, format_name: str) -> Schema:
    """Give the schema, or the error that says that there is none to write with."""
    if schema is None:
        raise ConfigError(
            f"{format_name} without a schema can only read: give one, or use_latest=True and "
            'subject="topic"'
        )
    return schema


def title(schema: Schema) -> str:
    """Give the title of a JSON Schema: it is the name of the record."""
    document = _document(schema)
    found = document.get("title") if isinstance(document, dict) else None
    if not found:
        raise ConfigError('subject="record" needs a JSON Schema with a "title": give it one')
    return str(found)


def _check(validator: Any, value: Any) -> None:
    try:
        error = best_match(validator.iter_errors(value))
    except Unresolvable as missing:
        raise FormatError(
            f"the JSON Schema refers to {missing.ref!r}, which is not among its references"
        ) from missing
    if error is not None:
        raise FormatError(f"{error.json_path}: {error.message:.300}")


def _schema(given: str | Mapping[str, Any] | Schema) -> Schema:
    if isinstance(given, Schema):
        return given
    return Schema(given if isinstance(given, str) else orjson.dumps(given).decode(), JSON)


def _document(schema: Schema) -> Any:
    try:
        return orjson.loads(schema.text)
    except orjson.JSONDecodeError as error:
        raise ConfigError(f"no JSON Schema: {error}: {schema.text:.80}") from error
