"""The sink `jms`: its options, and what it promises."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Literal

from pydantic import Field, model_validator
from typing_extensions import Self

from penstock.encode.format_options import JSON_FORMAT, FormatChoice
from penstock.pipeline import EVERY_DELIVERY, Opening, Sink, Writer
from penstock.pipeline.values import Duration
from penstock.sinks.jms.jms_broker import BrokerOptions

if TYPE_CHECKING:
    from penstock.sinks.jms.jms_outlet import JmsOutlet

# Formats whose bytes are a text.
_TEXTS = frozenset({"json", "csv", "string"})
_LONGEST_LIFE = 2**32 / 1000


class JmsSink(BrokerOptions, Sink):
    """Rows as messages of a queue or topic of a JMS broker, over AMQP 1.0.

    At-least-once: a batch is done when the broker has accepted each message; persistent ones are on its
    disk then. A batch that is repeated after a crash is sent again. With `duplicate_detection` Apache
    Artemis drops what it has already: each message then has the place of its record (topic, partition,
    offset) as the duplicate id, of which the broker remembers the last ones (`id-cache-size`, 20,000).
    The message id is that place, too, so that other consumers can recognize a message that comes again.

    A message that the broker rejects, a row that cannot be a message, and one for a destination that does
    not exist are dead letters, each with the broker's reason.
    """

    name = "jms"
    python_tasks = EVERY_DELIVERY
    names_refused = True
    why_not = (
        "a broker has no act that holds messages and progress together; 'duplicate_detection: true' lets "
        "Apache Artemis drop messages that are sent again"
    )

    queue: str | None = Field(default=None, min_length=1, description="The queue to send to.")
    topic: str | None = Field(default=None, min_length=1, description="The topic to send to.")
    destination_column: str | None = Field(
        default=None,
        description="The column with the name of the queue (or topic); where null: `queue` (or `topic`).",
    )
    message: Literal["text", "bytes", "map", "stream"] = Field(
        default="text",
        description="The kind of message: the value as text, as bytes, its JSON object as a map, or its "
        "JSON array (of an object: the values) as a stream. A null value is a message without a body.",
    )
    value: str | None = Field(
        default=None,
        description="The column that is the body, as it is; default: all other columns as a JSON object.",
    )
    value_format: FormatChoice = Field(
        default=JSON_FORMAT,
        description="`json`, `csv`, `arrow`, `dolphindb`, `string`, `short`, `int`, `long`, `float`, "
        "`double`, `bytes` or `uuid`; with options `avro`, `protobuf`, `json_schema`, `csv`.",
    )
    persistent: bool = Field(
        default=True, description="Whether the broker stores the messages on its disk."
    )
    priority: int = Field(default=4, ge=0, le=9, description="The priority of the messages.")
    ttl: Duration | None = Field(
        default=None,
        gt=0,
        lt=_LONGEST_LIFE,
        description="How long the messages live; default: until they are read.",
    )
    correlation_id: str | None = Field(
        default=None, description="The column with the correlation id."
    )
    type: str | None = Field(default=None, description="The column with the JMS type.")
    reply_to: str | None = Field(default=None, description="The column with the queue for replies.")
    group_id: str | None = Field(
        default=None, description="The column with the message group (JMSXGroupID)."
    )
    properties: str | None = Field(
        default=None,
        description="The column with the properties: a map or struct of simple values, or headers "
        "(array<struct<key:string,value:binary>>).",
    )
    duplicate_detection: bool = Field(
        default=False,
        description="Whether each message has the place of its record as `_AMQ_DUPL_ID`, by which Apache "
        "Artemis drops repeated ones.",
    )

    @model_validator(mode="after")
    def _make_sense(self) -> Self:
        if (self.queue is None) == (self.topic is None):
            raise ValueError("give the destination: 'queue' or 'topic', and not both")
        if self.message in ("map", "stream") and self.value_format.name != "json":
            raise ValueError(f"'message: {self.message}' is made of JSON: leave 'value_format' out")
        if self.message == "text" and self.value_format.name not in _TEXTS:
            raise ValueError(
                f"the format {self.value_format.name!r} writes bytes that are not a text: give "
                "'message: bytes'"
            )
        return self

    @property
    def destination(self) -> str:
        """Return the name of the queue or topic."""
        return self.queue or self.topic or ""

    @property
    def destination_kind(self) -> str:
        """Return `queue` or `topic`."""
        return "topic" if self.queue is None else "queue"

    def columns(self) -> dict[str, str]:
        """Return the columns that are parts of a message other than its body, by the part."""
        named = {
            "destination": self.destination_column,
            "correlation_id": self.correlation_id,
            "type": self.type,
            "reply_to": self.reply_to,
            "group_id": self.group_id,
            "properties": self.properties,
        }
        return {part: column for part, column in named.items() if column}

    def outlet(self) -> JmsOutlet:
        """Connect to the broker."""
        self.broker().require_client()
        made: JmsOutlet = import_module("penstock.sinks.jms.jms_outlet").JmsOutlet(self)
        return made

    def open(self, opening: Opening) -> Writer:
        """Return what sends the rows."""
        from penstock.sinks.jms.jms_writer import JmsWriter  # noqa: PLC0415 - it needs Spark

        return JmsWriter(self, opening, self.outlet)
