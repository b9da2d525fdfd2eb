"""Sends rows as JMS messages: Spark makes the columns, tasks send."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pyspark.sql.types import MapType, StringType, StructType

from penstock.errors import ConfigError
from penstock.pipeline import Opening
from penstock.sinks.messages import MessageWriter
from penstock.sinks.messages.outlet import Opener
from penstock.sinks.messages.record_columns import (
    HEADERS,
    column,
    require_columns,
    require_headers,
    require_type,
    value_column,
    value_of,
)
from penstock.sinks.messages.record_encodes import BatchEncode, RecordEncodes

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from penstock.sinks.jms.jms_outlet import JmsOutlet
    from penstock.sinks.jms.jms_sink import JmsSink


class JmsWriter(MessageWriter["JmsSink"]):
    """Sends the rows of one pipeline."""

    def __init__(self, sink: JmsSink, opening: Opening, connect: Callable[[], JmsOutlet]) -> None:
        super().__init__(sink, opening)
        self._connect = connect
        chosen = sink.value_format
        self._formats = {} if chosen.name == "json" else {"value": chosen}
        self._encodes = RecordEncodes(self._formats, sink.destination, {"value": sink.value})

    def prepare(self, schema: StructType) -> None:
        """Look at the columns, register schemas, and see that the broker lets us send."""
        self._check(schema)
        if self._encodes:
            empty = self.opening.spark.createDataFrame([], schema)
            own = [each.alias(name) for name, each in self.message(empty).items()]
            self._encodes.batch_encode(empty.select(*own).schema)
        with self._connect() as outlet:
            outlet.open_link()

    def message(self, rows: DataFrame) -> dict[str, Column]:
        """Return the columns of a message."""
        self._check(rows.schema)
        used = self.sink.columns()
        chosen = self._formats.get("value")
        if chosen:
            self._encodes.name_value(
                value_column(rows.columns, self.sink.value, used.values(), chosen)
            )
        columns = {"value": value_of(rows, self.sink.value, used.values(), chosen)}
        for part, name in used.items():
            columns[part] = column(name)
        given = self.sink.properties
        if given and not _is_plain(rows.schema, given):
            columns["properties"] = column(given).cast(HEADERS)
        return columns

    def opener(self) -> Opener:
        """Return what connects in a task."""
        return self._connect

    def encode(self, messages: StructType) -> BatchEncode | None:
        """Return what makes the bytes of other formats than JSON."""
        return self._encodes.batch_encode(messages) if self._encodes else None

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
