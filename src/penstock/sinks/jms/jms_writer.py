"""Sends rows as JMS messages: Spark makes the columns, tasks send."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pyspark.sql.types import MapType, StringType, StructType

from penstock.errors import ConfigError
from penstock.pipeline import Opening
from penstock.pipeline.header_column import HEADERS
from penstock.sinks.messages import MessageValue, MessageWriter
from penstock.sinks.messages.outlet import Opener
from penstock.sinks.messages.record_columns import (
    column,
    require_columns,
    require_headers,
    require_type,
)

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from penstock.sinks.jms.jms_outlet import JmsOutlet
    from penstock.sinks.jms.jms_sink import JmsSink


class JmsWriter(MessageWriter["JmsSink"]):
    """Sends the rows of one pipeline."""

    value: MessageValue

    def __init__(self, sink: JmsSink, opening: Opening, connect: Callable[[], JmsOutlet]) -> None:
        super().__init__(sink, opening)
        self._connect = connect
        self.value = MessageValue(sink.value_format, sink.value, sink.destination)

    def prepare(self, schema: StructType) -> None:
        """Look at the columns, register schemas, and see that the broker lets us send."""
        self._check(schema)
        self.prepare_messages(schema)
        with self._connect() as outlet:
            outlet.open_link()

    def message(self, rows: DataFrame) -> dict[str, Column]:
        """Return the columns of a message."""
        self._check(rows.schema)
        used = self.sink.columns()
        columns = {"value": self.value.column(rows, used.values())}
        for part, name in used.items():
            columns[part] = column(name)
        given = self.sink.properties
        if given and not _is_plain(rows.schema, given):
            columns["properties"] = column(given).cast(HEADERS)
        return columns

    def opener(self) -> Opener:
        """Return what connects in a task."""
        return self._connect

    def _check(self, schema: StructType) -> None:
        sink, used = self.sink, self.sink.columns()
        require_columns("jms", [*used.values(), sink.value], schema)
        for part, name in used.items():
            option = "destination_column" if part == "destination" else part
            if part != "properties":
                require_type("jms", option, name, schema, StringType)
        if sink.properties and not _is_plain(schema, sink.properties):
            try:
                require_headers("jms", sink.properties, schema)
            except ConfigError:
                kind = schema[sink.properties].dataType.simpleString()
                raise ConfigError(
                    f"'properties' of the sink 'jms' names the column {sink.properties!r}, which is "
                    f"{kind}: it must be a map with text as keys, a struct, or {HEADERS}; a step can "
                    "make it so"
                ) from None


def _is_plain(schema: StructType, name: str) -> bool:
    kind = schema[name].dataType
    if isinstance(kind, MapType):
        return isinstance(kind.keyType, StringType)
    return isinstance(kind, StructType)
