"""Keys and values of the Avro, Protobuf and JSON Schema converters, by the decodes of these formats."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from penstock.decode.avro_decode import AvroColumns
from penstock.decode.json_schema_decode import JsonSchemaDecode
from penstock.decode.kernels.connect.aligned import Aligned
from penstock.decode.kernels.connect.envelopes import Origins
from penstock.decode.kernels.connect.record_kernel import Make, Reader
from penstock.decode.kernels.connect.registered import (
    ONLY,
    AnyAvroColumns,
    RegisteredReader,
    connect_schema,
    is_record,
    record_name,
)
from penstock.decode.kernels.outcome import Kernel
from penstock.decode.protobuf_decode import ProtobufDecode
from penstock.decode.registry_decode import BoundDecode, RegistryDecode
from penstock.errors import ConfigError
from penstock.formats.connect.converter_options import ConverterOptions
from penstock.formats.connect.schema import Schema


class AnyAvroDecode(RegistryDecode):
    """Avro of any schema: a record, or a single value as keys often are."""

    name = "avro"

    @property
    def format_columns(self) -> AvroColumns | AnyAvroColumns:
        """Return the mapping of fields, or of the only value."""
        return AnyAvroColumns()


_DECODES: dict[str, type[RegistryDecode]] = {
    "avro": AnyAvroDecode,
    "protobuf": ProtobufDecode,
    "json_schema": JsonSchemaDecode,
}


@dataclass(frozen=True)
class MakeReader:
    """Makes the reader of a worker."""

    kernel: Callable[[], Kernel]
    schema: Schema
    is_struct: bool

    def __call__(self) -> Reader:
        """Return the reader."""
        read = RegisteredReader(self.kernel(), self.schema, is_struct=self.is_struct)

        def values(given: pa.Array, _origins: Origins) -> Aligned:
            return read(given)

        return values


def registered_part(
    options: ConverterOptions, part: str, topics: Sequence[str] | str, evolves: bool
) -> tuple[Schema, Make, str]:
    """Return the schema that a subject has now, how values are read into it, and its identity."""
    if options.subject != "topic":
        raise ConfigError(
            f"records of subjects by {options.subject!r} cannot be read here: which schema the column "
            "has is known by the subject TOPIC-value only (TopicNameStrategy)"
        )
    if isinstance(topics, str) or len(topics) != 1:
        raise ConfigError(
            f"the {options.form} converter reads one topic, whose subject has the schema; "
            f"{'a pattern' if isinstance(topics, str) else len(topics)} was given: make one connector "
            "for each topic"
        )
    decode = _DECODES[options.form](
        registry=options.registry, evolve="follow" if evolves else "fail"
    )
    bound = decode.bind(list(topics), part)
    schema, is_struct = _schema_of(bound, options.form)
    return schema, MakeReader(bound.kernel(), schema, is_struct), bound.identity()


def _schema_of(bound: BoundDecode, form: str) -> tuple[Schema, bool]:
    plan, table = bound.plan, bound.plan.table_schema()
    client = plan.registry.client() if plan.registry else None
    written = plan.wanted.schema
    if form == "avro" and not is_record(written, client):
        (only,) = table.fields
        assert only.name == ONLY  # noqa: S101
        schema = connect_schema(only.type)
        return schema if only.required else schema.or_null(), False
    name = record_name(written, client) if form == "avro" else None
    named = replace(connect_schema(table.struct), name=name, version=plan.wanted.version or None)
    return named, True
