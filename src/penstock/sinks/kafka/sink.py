"""Rows to a topic: through Spark's own writer, or, for exactly-once, in transactions of the tasks."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec
from pydantic import Field, PrivateAttr

from penstock import errors
from penstock.errors import PenstockError, RefusedError, TerminalError, TransientError
from penstock.kafka import Admin
from penstock.pipeline import EVERY_DELIVERY, Batch, Delivery, Opening, Sink
from penstock.pipeline.values import AnyConnection
from penstock.sinks.kafka.columns import Columns
from penstock.sinks.kafka.places import Place, places_abroad, places_of
from penstock.sinks.kafka.spans import spans_of
from penstock.sinks.kafka.task import OUTCOME, PLACES, Task
from penstock.sinks.kafka.through_spark import stream_writer, write_through_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from penstock.config import Connection

_OVERHEAD = 512


def largest_record(admin: Admin, topic: str) -> int | None:
    """How many bytes a topic's record may have; None where the broker does not say."""
    settings = {each.name: each.value for each in admin.topic_settings(topic)}
    return int(settings.get("max.message.bytes") or 0) or None


class KafkaSink(Sink):
    """Rows as records of topics: columns for key, headers, topic, partition; the rest as JSON.

    At-least-once: every record is acknowledged by all in-sync replicas before the batch is done; a
    batch that is repeated is sent again.

    Exactly-once: each partition of the source is one transaction, written by one task, with its mark:
    the group `<pipeline>.sink` commits how far the partition is written in the same transaction. A
    task that is run again fences its predecessor, reads the mark, and skips what is there. Readers
    with isolation.level=read_committed (the default of most) see each record once. A pipeline whose
    steps shuffle the rows is one transaction, in one task. The rights that it needs: Write on the
    topic and on the transactional ids `<pipeline>.sink*`, Read on the groups `<pipeline>.sink*`.
    """

    delivers = EVERY_DELIVERY
    in_real_time = True
    python_tasks = frozenset({Delivery.EXACTLY_ONCE})
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
    headers: str | None = Field(
        default=None, description="A column array<struct<key:string,value:binary>>."
    )
    connection: AnyConnection | None = Field(
        default=None, description="Another cluster than the pipeline's."
    )

    # The largest record that the topic takes, once it is known.
    _limit: int | None = PrivateAttr(default=None)

    @property
    def columns(self) -> Columns:
        """Which columns become what."""
        return Columns(self.topic_column, self.partition, self.key, self.value, self.headers)

    def prepare(self, opening: Opening) -> None:
        """Make the topic where it is missing, and look at the columns."""
        self.columns.check(opening.schema)
        self.open(opening.connection)

    def open(self, connection: Connection, config: Callable[[], dict[str, Any]] = dict) -> None:
        """Make the topic where it is missing, with this configuration; see how large a record may be."""
        with Admin(self.connection or connection) as admin:
            if not admin.topic_ids([self.topic]):
                admin.create_topic(self.topic, config=config())
            self._limit = largest_record(admin, self.topic)

    def write(self, batch: Batch) -> None:
        """Send the rows."""
        records = self.columns.records(batch.rows, self.topic)
        if batch.delivery is Delivery.EXACTLY_ONCE:
            self._write_once(records, batch)
        else:
            connection = self.connection or batch.connection
            write_through_spark(records, connection, self.topic, self._limit)

    def streaming_writer(self, rows: DataFrame, connection: Connection) -> DataStreamWriter:
        """Return what sends the rows of a stream one by one, for real-time mode."""
        records = self.columns.records(rows, self.topic)
        return stream_writer(records, self.connection or connection, self.topic, self._limit)

    def _write_once(self, records: DataFrame, batch: Batch) -> None:
        task = self._task(batch)
        sent = records.mapInArrow(task.run, OUTCOME)
        spans = spans_of(sent)
        if spans is None:
            sent = records.coalesce(1).mapInArrow(task.run, OUTCOME)
        arrange = places_of if self.connection is None else places_abroad
        _run(sent, arrange(batch, self.topic, spans))

    def _task(self, batch: Batch) -> Task:
        connection = self.connection or batch.connection
        return Task(
            connection=connection,
            topic=self.topic,
            label=batch.label,
            mark=batch.mark,
            settings=self._sizes(connection),
            addressed=self.topic_column is not None or self.partition is not None,
        )

    def _sizes(self, connection: Connection) -> dict[str, Any]:
        """Let the client's limits be the topic's: it refuses then what the broker would refuse."""
        if self._limit is None or "message.max.bytes" in connection.options:
            return {}
        return {
            "message.max.bytes": max(1000, min(self._limit, 1_000_000_000)),
            "batch.size": max(1000, min(self._limit - _OVERHEAD, 1_000_000)),
        }


def _run(sent: DataFrame, places: list[Place]) -> None:
    """Let every task write its part, and raise the gravest of what they say."""
    context = sent.sparkSession.sparkContext
    context.setLocalProperty(PLACES, msgspec.json.encode(places).decode())
    try:
        failed = [_error(*row) for row in sent.collect()]
    finally:
        context.setLocalProperty(PLACES, None)  # type: ignore[arg-type]
    if failed:
        raise min(failed, key=_gravity)


def _error(kind: str, message: str) -> PenstockError:
    made: PenstockError = getattr(errors, kind, TerminalError)(message)
    return made


def _gravity(error: PenstockError) -> int:
    """A wrong setting first; a record is only looked for when nothing else is the matter."""
    return 2 if isinstance(error, RefusedError) else 1 if isinstance(error, TransientError) else 0
