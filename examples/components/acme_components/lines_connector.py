"""A connector: the fields of records as JSON objects, one on each line of a file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from penstock.connect import ConnectorClass, ConnectorConfig, Key, KeyColumns, Type


class LinesConnector(ConnectorClass):
    """Converters and transforms come before it: it gets rows, and names the sink that takes them."""

    names = ("com.acme.LinesConnector",)
    kind = "sink"
    version = "1.0"
    rows = "fields"
    keys = (
        Key("path", documentation="The file.", importance="HIGH"),
        Key("places", Type.BOOLEAN, "false", "Whether a row says where its record was in Kafka."),
    )

    def key_columns(self, config: ConnectorConfig) -> KeyColumns:
        """Return the columns in addition to the fields of the value."""
        return (
            KeyColumns.kafka("topic", "partition", "offset") if config["places"] else KeyColumns()
        )

    def problems(self, config: ConnectorConfig) -> Iterator[tuple[str, str]]:
        """Yield what is wrong beyond a single key: the key to show it at, and a sentence."""
        if config["path"] and not config["path"].endswith(".json"):
            yield (
                "path",
                f"Invalid value {config['path']} for configuration path: it ends with .json",
            )

    def pipeline(self, config: ConnectorConfig) -> dict[str, Any]:
        """Return the sink of the pipeline, as a definition has it."""
        return {"sink": {"lines": config["path"]}}
