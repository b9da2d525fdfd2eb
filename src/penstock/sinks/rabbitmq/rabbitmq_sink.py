"""The sink `rabbitmq`: its options, and what it promises."""

from __future__ import annotations

from typing import Any

from pydantic import Field, field_validator, model_validator
from typing_extensions import Self

from penstock.encode.format_options import JSON_FORMAT, FormatChoice
from penstock.pipeline import EVERY_DELIVERY, Opening, Sink, Writer
from penstock.pipeline.values import Duration
from penstock.sinks.rabbitmq.broker_options import BrokerOptions

_PERSISTENT, _TRANSIENT = 2, 1
_SUFFIX = "_column"
_COLUMNS = (
    "routing_key",
    "message_id",
    "correlation_id",
    "reply_to",
    "type",
    "priority",
    "expiration",
    "timestamp",
)


class RabbitMqSink(BrokerOptions, Sink):
    """Rows as messages of an exchange, each confirmed by RabbitMQ before the batch is done.

    At-least-once: a batch that is repeated after a crash is published again. The id of each message is
    the place of its record (`topic-partition-offset`), the same each time, so that consumers can drop
    what they have seen; or it is a column's.

    A message that no queue gets is returned (`mandatory`), and its record goes to the dead letters; so
    does a row that cannot be a message. A queue that is full, a blocked connection and a server that is
    away are waited for.
    """

    name = "rabbitmq"
    names_refused = True
    python_tasks = EVERY_DELIVERY
    why_not = (
        "RabbitMQ has no transaction together with Kafka's offsets, and a batch that is repeated is "
        "published again; its messages have the same ids each time, by which consumers can drop them"
    )

    exchange: str = Field(
        default="",
        description="The exchange, which must exist; default: the one that has a queue for each routing "
        "key.",
    )
    routing_key: str | None = Field(
        default=None,
        description="The routing key of all messages; without `exchange`: the queue.",
    )
    routing_key_column: str | None = Field(
        default=None,
        min_length=1,
        description="The column that is the routing key; where null: `routing_key`.",
    )
    mandatory: bool = Field(
        default=True,
        description="Whether a message that no queue gets goes to the dead letters; if not, RabbitMQ "
        "drops it.",
    )
    persistent: bool = Field(
        default=True, description="Whether messages survive a restart of RabbitMQ."
    )
    value: str | None = Field(
        default=None,
        description="The column that is the body, as it is (null: an empty body); default: all other "
        "columns as a JSON object.",
    )
    value_format: FormatChoice = Field(
        default=JSON_FORMAT,
        description="The format of the body, as that of the sink `kafka`.",
    )
    headers: str | None = Field(
        default=None,
        min_length=1,
        description="A column array<struct<key:string,value:binary>> with the headers.",
    )
    content_type: str | None = Field(
        default=None,
        description="The property of all messages; default: `application/json` where the body is JSON.",
    )
    app_id: str | None = Field(default=None, description="The property of all messages.")
    type: str | None = Field(default=None, description="The property of all messages.")
    priority: int | None = Field(
        default=None, ge=0, le=255, description="The priority of all messages."
    )
    expiration: Duration | None = Field(
        default=None, ge=0, le=4_000_000, description="After what time messages expire in a queue."
    )
    message_id_column: str | None = Field(
        default=None,
        min_length=1,
        description="The column that is the message's id; default: the place of its record.",
    )
    correlation_id_column: str | None = Field(
        default=None, min_length=1, description="The column that is the correlation id."
    )
    reply_to_column: str | None = Field(
        default=None, min_length=1, description="The column that is the queue for replies."
    )
    type_column: str | None = Field(
        default=None, min_length=1, description="The column that is the type; where null: `type`."
    )
    priority_column: str | None = Field(
        default=None, min_length=1, description="A column with priorities from 0 to 255."
    )
    expiration_column: str | None = Field(
        default=None, min_length=1, description="A column with milliseconds until messages expire."
    )
    timestamp_column: str | None = Field(
        default=None, min_length=1, description="A timestamp that is the time of the message."
    )

    @field_validator("exchange", "routing_key", "content_type", "app_id", "type")
    @classmethod
    def _is_short(cls, given: str | None) -> str | None:
        if given is not None and len(given.encode()) > 255:
            raise ValueError(f"has {len(given.encode())} bytes, and AMQP allows 255")
        return given

    @model_validator(mode="after")
    def _has_an_aim(self) -> Self:
        if not self.exchange and not self.routing_key and not self.routing_key_column:
            raise ValueError(
                "where do messages go? Give 'routing_key' (a queue), 'routing_key_column' or 'exchange'"
            )
        return self

    @property
    def fixed_routing_key(self) -> str | None:
        """Return the routing key of rows that have none; fanout exchanges need none."""
        if self.routing_key is None and not self.routing_key_column:
            return ""
        return self.routing_key

    def columns(self) -> dict[str, str]:
        """Return the columns that the options name, by the properties that they become."""
        named = {name: getattr(self, name + _SUFFIX) for name in _COLUMNS}
        return {name: source for name, source in named.items() if source}

    def properties(self) -> dict[str, Any]:
        """Return the properties that all messages have."""
        is_json = self.value is None and self.value_format.name == "json"
        given = {
            "content_type": self.content_type or ("application/json" if is_json else None),
            "delivery_mode": _PERSISTENT if self.persistent else _TRANSIENT,
            "priority": self.priority,
            "expiration": None if self.expiration is None else str(round(self.expiration * 1000)),
            "type": self.type,
            "app_id": self.app_id,
        }
        return {name: value for name, value in given.items() if value is not None}

    def open(self, opening: Opening) -> Writer:
        """Return what publishes the rows."""
        from penstock.sinks.rabbitmq.rabbitmq_writer import RabbitMqWriter  # noqa: PLC0415 - an extra

        self.broker().connection("penstock")  # here, and not in a task, pika is missed
        return RabbitMqWriter(self, opening)
