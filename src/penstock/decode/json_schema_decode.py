"""JSON records that a registered JSON Schema describes."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.decode.kernels.json.json_kernel import JsonKernel
from penstock.decode.kernels.json.json_schema_columns import json_schema_columns
from penstock.decode.kernels.registry_kernel import BodyReader, FormatColumns
from penstock.decode.registry_decode import RegistryDecode
from penstock.formats.registry import Registry, Schema
from penstock.formats.registry.registry_model import JSON
from penstock.pipeline.schema import Schema as Columns


@dataclass(frozen=True)
class JsonSchemaColumns(FormatColumns):
    """The properties of a JSON Schema as columns."""

    kind = JSON

    def table_schema(self, schema: Schema, registry: Registry | None) -> Columns:
        """Return the properties of the object."""
        return json_schema_columns(schema.text, _references(schema, registry))

    def bodies(self, _written: Schema, wanted: Schema, registry: Registry | None) -> BodyReader:
        """Return what reads the text into the table's columns: the text has its own names."""
        return JsonKernel(self.table_schema(wanted, registry)).decode


def _references(schema: Schema, registry: Registry | None) -> dict[str, str]:
    found: dict[str, str] = {}
    for reference in schema.references if registry else ():
        other = registry.version(reference.subject, reference.version).schema  # type: ignore[union-attr]
        found |= {reference.name: other.text} | _references(other, registry)
    return found


class JsonSchemaDecode(RegistryDecode):
    """JSON objects into the columns of their JSON Schema.

    A value that does not fit its column is an error of that record; limits that a column has no type for
    (a pattern, a minimum) are not checked.
    """

    name = "json_schema"

    @property
    def format_columns(self) -> JsonSchemaColumns:
        """Return the mapping of properties."""
        return JsonSchemaColumns()
