"""Avro with its schema in the registry; a reader's own schema takes what an older or newer one wrote."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import Any

from fastavro import parse_schema, schemaless_reader, schemaless_writer
from fastavro.schema import SchemaParseException

from penstock.errors import ConfigError, FormatError
from penstock.formats.registered import Read, RegistryFormat, SubjectName, Write
from penstock.formats.registry import Registry, Schema
from penstock.formats.registry_model import AVRO


class Avro(RegistryFormat):
    """Avro, with registered schemas.

    Without a schema it only reads (each value by the schema that it was written with), unless
    `use_latest` says which one to write with. With one, what is read comes in its shape: added fields get
    their default, removed ones are left out, numbers are promoted.

    Examples
    --------
    ::

        trades = Avro(registry, {"type": "record", "name": "Trade", "fields": [...]})
        producer.produce("trades", value=trades.encode({"price": 1.5}, "trades"))
    """

    name = "avro"
    kind = AVRO

    def __init__(
        self,
        registry: Registry,
        schema: str | Mapping[str, Any] | Sequence[Any] | Schema | None = None,
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
        self._parsed = None if self._schema is None else self._parse(self._schema)

    def _record_name(self) -> str:
        parsed: Any = self._parsed
        if isinstance(parsed, dict) and "name" in parsed:
            return str(parsed["name"])
        raise ConfigError("no name")

    def _own_schema(self) -> Schema:
        if self._schema is None:
            raise ConfigError("Avro without a schema can only read")
        return self._schema

    def _writer(self, schema: Schema) -> Write:
        parsed = self._parse(schema)

        def write(value: Any) -> bytes:
            out = BytesIO()
            schemaless_writer(out, parsed, value, strict_allow_default=True)
            return out.getvalue()

        return write

    def _reader(self, schema: Schema) -> Read:
        parsed, own = self._parse(schema), self._parsed

        def read(body: bytes) -> Any:
            source = BytesIO(body)
            value = schemaless_reader(source, parsed, own)
            if source.tell() != len(body):
                raise FormatError("bytes left")
            return value

        return read

    def _parse(self, schema: Schema) -> Any:
        try:
            return parse_schema(json.loads(schema.text))
        except (ValueError, SchemaParseException) as error:
            raise ConfigError(f"no valid Avro schema: {error}") from error


def _schema(given: Any) -> Schema:
    if isinstance(given, Schema):
        return given
    return Schema(given if isinstance(given, str) else json.dumps(given), AVRO)
