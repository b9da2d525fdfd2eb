"""Publishes the rows of a pipeline: the columns of messages, and what is checked before the first one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as f
from pyspark.sql.types import (
    DataType,
    IntegralType,
    StringType,
    StructType,
    TimestampType,
)

from penstock.pipeline.header_column import HEADERS
from penstock.sinks.messages import MessageValue, MessageWriter
from penstock.sinks.messages.record_columns import (
    column,
    require_columns,
    require_headers,
    require_type,
)
from penstock.sinks.rabbitmq.rabbitmq_outlet import Publishing

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from penstock.pipeline import Opening
    from penstock.sinks.messages.outlet import Opener
    from penstock.sinks.rabbitmq.rabbitmq_sink import RabbitMqSink

_TYPES: dict[str, type[DataType]] = {
    "priority": IntegralType,
    "expiration": IntegralType,
    "timestamp": TimestampType,
    "routing_key": StringType,
}


class RabbitMqWriter(MessageWriter["RabbitMqSink"]):
    """Publishes the rows of one pipeline."""

    value: MessageValue

    def __init__(self, sink: RabbitMqSink, opening: Opening) -> None:
        super().__init__(sink, opening)
        self.value = MessageValue(sink.value_format, sink.value, sink.exchange or "rabbitmq")

    def prepare(self, schema: StructType) -> None:
        """Look at the columns, and ask the server for the exchange and, with none, for the queue."""
        self._check(schema)
        self.prepare_messages(schema)
        sink = self.sink
        with sink.broker().connection(f"penstock {self.opening.pipeline}") as connection:
            channel = connection.channel
            if sink.exchange:
                connection.call(channel.exchange_declare, sink.exchange, passive=True)
            elif sink.routing_key and sink.mandatory:
                connection.depth(sink.routing_key)

    def message(self, rows: DataFrame) -> dict[str, Column]:
        """Return the columns of a message."""
        self._check(rows.schema)
        sink = self.sink
        made = {"value": self.value.column(rows, self._used())}
        if sink.headers:
            made["headers"] = column(sink.headers).cast(HEADERS)
        for name, source in sink.columns().items():
            made[name] = _property(name, source)
        return made

    def opener(self) -> Opener:
        """Return what opens an outlet in a task."""
        sink = self.sink
        return Publishing(
            sink.broker(), sink.exchange, sink.fixed_routing_key, sink.mandatory, sink.properties()
        )

    def _used(self) -> tuple[str | None, ...]:
        # Ids are part of the data as well: they stay in the value.
        named = self.sink.columns()
        return (self.sink.value, self.sink.headers, named.get("routing_key"))

    def _check(self, schema: StructType) -> None:
        sink = self.sink
        named = sink.columns()
        require_columns("rabbitmq", (sink.value, sink.headers, *named.values()), schema)
        for name, source in named.items():
            if name in _TYPES:
                require_type("rabbitmq", f"{name}_column", source, schema, _TYPES[name])
        if sink.headers:
            require_headers("rabbitmq", sink.headers, schema)


def _property(name: str, source: str) -> Column:
    given = column(source)
    if name == "timestamp":
        return f.unix_seconds(given)
    if name == "priority":
        return given.cast("int")
    return given.cast("string")
