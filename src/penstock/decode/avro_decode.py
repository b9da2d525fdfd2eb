"""Avro records, with or without a schema registry."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.decode.kernels.avro.avro_kernel import AvroBodies, avro_table_schema
from penstock.decode.kernels.registry_kernel import BodyReader, FormatColumns
from penstock.decode.registry_decode import RegistryDecode
from penstock.formats.avro.avro_schema import Parsed
from penstock.formats.registry import Registry, Schema
from penstock.formats.registry.registry_model import AVRO
from penstock.pipeline.schema import Schema as Columns


@dataclass(frozen=True)
class AvroColumns(FormatColumns):
    """Avro's schemas as columns."""

    kind = AVRO

    def table_schema(self, schema: Schema, registry: Registry | None) -> Columns:
        """Return the fields of the record."""
        return avro_table_schema(Parsed(schema, registry))

    def bodies(self, written: Schema, wanted: Schema, registry: Registry | None) -> BodyReader:
        """Return what resolves the one schema to the other."""
        return AvroBodies(Parsed(written, registry), Parsed(wanted, registry))


class AvroDecode(RegistryDecode):
    """Avro records into the columns of their schema.

    Each record is read by the schema that it was written with, resolved to the table's schema by Avro's
    rules: added fields have their default, numbers are widened, fields that the table lacks are skipped.
    """

    name = "avro"

    @property
    def format_columns(self) -> AvroColumns:
        """Return the mapping of fields."""
        return AvroColumns()
