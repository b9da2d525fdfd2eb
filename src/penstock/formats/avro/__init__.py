"""Avro with its schema in the registry; a reader's own schema takes what an older or newer one wrote."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from penstock.errors import ConfigError, FormatError
from penstock.formats.avro.avro_primitives import Body
from penstock.formats.avro.avro_reader import Readers
from penstock.formats.avro.avro_schema import Parsed
from penstock.formats.avro.avro_writer import Writers
from penstock.formats.registry import Registry, Schema
from penstock.formats.registry.registered import Read, RegistryFormat, SubjectName, Write
from penstock.formats.registry.registry_model import AVRO


class Avro(RegistryFormat):
    """Avro, with registered schemas.

    Without a schema it only reads (each value by the schema that it was written with), unless
    `use_latest` says which one to write with. With one, what is read comes in its shape: added fields get
    their default, removed ones are left out, numbers are promoted.

    Examples
    --------
    ::

        price = {"name": "price", "type": "double"}
        trades = Avro(registry, {"type": "record", "name": "Trade", "fields": [price]})
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
        if schema is not None and not isinstance(schema, Schema):
            schema = Schema(schema if isinstance(schema, str) else json.dumps(schema), AVRO)
        self._schema = schema
        self._parsed = Parsed(self._schema, registry) if self._schema else None

    def _record_name(self) -> str:
        return self._need().full_name()

    def _own_schema(self) -> Schema:
        self._need()
        return cast(Schema, self._schema)

    def _need(self) -> Parsed:
        if self._parsed is None:
            raise ConfigError(
                'Avro without a schema can only read: give one, or use_latest=True with subject="topic"'
            )
        return self._parsed

    def _writer(self, schema: Schema) -> Write:
        parsed = Parsed(schema, self.registry)
        append = Writers(parsed.names).make(parsed.root)

        def write(value: Any) -> bytes:
            out = bytearray()
            append(value, out)
            return bytes(out)

        return write

    def _reader(self, schema: Schema) -> Read:
        written = Parsed(schema, self.registry)
        wanted = self._parsed or written
        read_one = Readers(written.names, wanted.names).make(written.root, wanted.root)

        def read(body: bytes) -> Any:
            value, end = read_one(Body.of(body), 0)
            if end != len(body):
                raise FormatError(f"{len(body) - end} bytes follow the Avro value")
            return value

        return read
