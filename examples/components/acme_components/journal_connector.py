"""A source connector: the lines of a journal, JSON objects of one schema, as records."""

from __future__ import annotations

from typing import Any

from penstock.connect import INT64, STRING, ConnectorClass, ConnectorConfig, Imported, Key
from penstock.connect import SchemaBuilder as Builder

NOTE = STRING.or_null()
ENTRY = Builder.struct("com.acme.Entry").field("id", INT64).field("note", NOTE).build()


class JournalConnector(ConnectorClass):
    """Transforms and converters come after it: it names the import that reads."""

    names = ("com.acme.JournalConnector",)
    kind = "source"
    version = "1.0"
    keys = (
        Key("path", documentation="The journal.", importance="HIGH"),
        Key("topic", documentation="Where its entries go.", importance="HIGH"),
    )

    def imported(self, _config: ConnectorConfig) -> Imported:
        """Return what the import writes: JSON of this schema."""
        return Imported.json(ENTRY)

    def pipeline(self, config: ConnectorConfig) -> dict[str, Any]:
        """Return the source of the pipeline, as a definition has it."""
        return {"source": {"journal": {"path": config["path"], "topic": config["topic"]}}}
