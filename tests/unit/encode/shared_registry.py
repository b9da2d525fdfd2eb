"""One registry in memory for both sides: Penstock's encodes and decodes, and Confluent's classes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka.schema_registry import RegisteredSchema, SchemaRegistryClient
from confluent_kafka.schema_registry import Schema as TheirSchema
from confluent_kafka.schema_registry.error import SchemaRegistryError
from confluent_kafka.serialization import MessageField, SerializationContext
from hypothesis import settings

from penstock.decode.kernels.registry_kernel import (
    FormatColumns,
    RegistryKernel,
    RegistryPlan,
    Wanted,
)
from penstock.encode.column_encodes import column_encode
from penstock.encode.format_options import FormatChoice
from penstock.encode.schema_registration import Target
from penstock.errors import ConfigError
from penstock.formats.registry import Registered, Registry, Schema
from penstock.formats.registry.http import RefusedError
from penstock.formats.registry.registry_options import RegistryOptions

TOPIC = "orders"
SUBJECT = f"{TOPIC}-value"
VALUE = SerializationContext(TOPIC, MessageField.VALUE)
OPTIONS = RegistryOptions.model_validate("http://memory")
# PENSTOCK_ROUND_TRIPS=5000 makes that many examples of each test.
examples = settings(max_examples=int(os.environ.get("PENSTOCK_ROUND_TRIPS", "30")))
# To make one takes a third of a second.
_CLIENT = SchemaRegistryClient.new_client({"url": "mock://"})


class SharedRegistry(Registry):
    """Penstock's client of an empty registry in memory; `theirs` is Confluent's client of it."""

    def __init__(self) -> None:
        super().__init__("http://memory")
        self.theirs = _CLIENT
        _CLIENT.clear_caches()
        _CLIENT.delete_subject(SUBJECT)

    def find(self, schema_id: int, form: str = "") -> Schema | None:
        try:
            return _schema(self.theirs.get_schema(schema_id))
        except SchemaRegistryError:
            return None

    def register(self, subject: str, schema: Schema) -> int:
        given = TheirSchema(schema.text, schema_type=schema.kind)
        return int(self.theirs.register_schema(subject, given))

    def latest(self, subject: str, form: str = "") -> Registered:
        try:
            found: RegisteredSchema = self.theirs.get_latest_version(subject)
        except SchemaRegistryError as error:
            raise ConfigError("no such subject") from RefusedError(404, str(error))
        return Registered(subject, found.version, found.schema_id, _schema(found.schema))

    def written(self, name: str, rows: pa.Array, **options: Any) -> list[bytes]:
        """Return rows in a format, as the sink writes them."""
        given = {name: {"registry": "http://memory", **options}}
        with self._of_every_definition():
            chosen = FormatChoice.model_validate(given)
            return list(column_encode(chosen, rows.type, Target(TOPIC, "value"))(rows).to_pylist())

    def read(self, columns: FormatColumns, data: list[bytes]) -> pa.Array:
        """Return the rows of records, as the decode reads them; each of them is good."""
        with self._of_every_definition():
            latest = Wanted.registered(self.latest(SUBJECT))
            kernel = RegistryKernel(RegistryPlan(columns, OPTIONS, latest))
            decoded = kernel(pa.record_batch({"value": pa.array(data, pa.binary())}))
        assert not decoded.failures, decoded.failures[0].message
        decoded.rows.validate(full=True)
        return decoded.rows.to_struct_array()

    @contextmanager
    def _of_every_definition(self) -> Iterator[None]:
        """Make it the registry of any options, for a while."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(RegistryOptions, "client", lambda _: self)
            patch.setattr(RegistryOptions, "fresh_client", lambda _: self)
            yield


def _schema(given: TheirSchema) -> Schema:
    return Schema(str(given.schema_str), given.schema_type or "AVRO")
