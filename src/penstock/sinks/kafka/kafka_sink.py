"""The sink `kafka`: its options, and what it promises."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field, model_validator

from penstock.encode.format_options import JSON_FORMAT, FormatChoice
from penstock.pipeline import EVERY_DELIVERY, Delivery, Opening, Sink, Writer
from penstock.pipeline.record_store import RecordStore
from penstock.pipeline.values import AnyConnection
from penstock.sinks.kafka.kafka_writer import KafkaWriter
from penstock.sinks.kafka.topic_store import TopicStore

if TYPE_CHECKING:
    from penstock.config import Connection


class KafkaSink(Sink):
    """Rows as records of topics: columns for key, headers, topic, partition; the rest as the value.

    The value is JSON, or what `value_format` names: Avro, Protobuf or JSON Schema with a schema registry,
    CSV, Arrow, DolphinDB, or one of Kafka's primitive types. Schemas are registered, and columns compared
    with them, before the first record; a row that does not fit goes to the dead letters.

    At-least-once: every record is acknowledged by all in-sync replicas before the batch is done; a
    batch that is repeated is sent again.

    Exactly-once and at-most-once: each partition of the source is one transaction, written by one task,
    with its mark: the group `<pipeline>.sink` commits how far the partition is written in the same
    transaction. A task that is run again fences its predecessor, reads the mark, and skips what is
    written; a process that another one took over from is refused. Readers with
    isolation.level=read_committed (the default of most) see each record once. A pipeline whose steps
    shuffle the rows is one transaction, in one task. The rights that it needs: Write on the topic and
    on the transactional ids `<pipeline>.sink*`, Read on the groups `<pipeline>.sink*`.
    """

    delivers = EVERY_DELIVERY
    in_real_time = True
    python_tasks = frozenset({Delivery.EXACTLY_ONCE, Delivery.AT_MOST_ONCE})
    name = "kafka"
    main_option = "topic"

    topic: str = Field(
        min_length=1, description="The topic to write to; made by the broker's defaults if missing."
    )
    topic_column: str | None = Field(
        default=None, description="The column that is the record's topic; where null: `topic`."
    )
    partition: str | None = Field(
        default=None,
        description="The column that is the record's partition; where null: by the key.",
    )
    key: str | None = Field(default=None, description="The column that is the record's key.")
    value: str | None = Field(
        default=None,
        description="The column that is the record's value, as it is (null: a tombstone); default: "
        "all other columns as a JSON object.",
    )
    value_format: FormatChoice = Field(
        default=JSON_FORMAT,
        description="`json`, `csv`, `arrow`, `dolphindb`, `string`, `short`, `int`, `long`, `float`, "
        "`double`, `bytes` or `uuid`; with options `avro`, `protobuf`, `json_schema`, `csv`.",
    )
    key_format: FormatChoice = Field(
        default=JSON_FORMAT,
        description="The same for the key; `json` writes text and bytes as they are.",
    )
    headers: str | None = Field(
        default=None, description="A column array<struct<key:string,value:binary>>."
    )
    connection: AnyConnection | None = Field(
        default=None, description="Another cluster than the pipeline's."
    )

    @model_validator(mode="after")
    def _formats_fit(self) -> KafkaSink:
        if self.key_format.name != "json" and self.key is None:
            raise ValueError("key_format needs the column of the key: give 'key'")
        for option in (self.value_format, self.key_format):
            registered = option.registered
            if registered and self.topic_column and registered.subject != "record":
                raise ValueError(
                    "rows with topics of their own (topic_column) need a schema that belongs to the "
                    "record, not to the topic: give subject: record"
                )
        return self

    def formats(self) -> dict[str, FormatChoice]:
        """Return the formats of the parts that Python workers encode."""
        both = {"value": self.value_format, "key": self.key_format}
        return {part: chosen for part, chosen in both.items() if chosen.name != "json"}

    def runs_python(self, delivery: Delivery) -> bool:
        """Return whether tasks run Python: for transactions, and for other formats than JSON."""
        return bool(self.formats()) or super().runs_python(delivery)

    def open(self, opening: Opening) -> Writer:
        """Return what sends the rows."""
        return KafkaWriter(self, opening)

    def record_store(self, connection: Connection) -> RecordStore:
        """Return its topic as a store of whole records."""
        return TopicStore(self, connection)
