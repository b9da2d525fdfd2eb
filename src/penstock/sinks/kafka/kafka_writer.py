"""Sends rows to a topic: through Spark's own writer, or, for exactly-once, in transactions of tasks."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec

from penstock.error_frame import from_document, in_worker
from penstock.errors import ConfigError, PenstockError, RefusedError, TransientError
from penstock.kafka import Admin
from penstock.pipeline import Batch, Delivery, LastWrite, Opening, Partition, Writer
from penstock.pipeline.source_log import spans_in
from penstock.sinks.kafka.claiming import Claim, last_write_of, stored_marks
from penstock.sinks.kafka.spans import spans_of
from penstock.sinks.kafka.task import OUTCOME, SCOPES, Task
from penstock.sinks.kafka.task_marks import Stored, TaskScope, scopes_abroad, scopes_of, to_claim
from penstock.sinks.kafka.through_spark import stream_writer, write_through_spark
from penstock.sinks.messages.record_columns import Columns, value_column
from penstock.sinks.messages.record_encodes import RecordEncodes

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter
    from pyspark.sql.types import StructType

    from penstock.sinks.kafka.kafka_sink import KafkaSink

_OVERHEAD = 512
Marked = tuple[Stored | None, dict[Partition, Stored]]


class KafkaWriter(Writer["KafkaSink"]):
    """Sends the rows of one pipeline."""

    def __init__(self, sink: KafkaSink, opening: Opening) -> None:
        super().__init__(sink, opening)
        self._columns = Columns(
            sink.topic_column, sink.partition, sink.key, sink.value, sink.headers
        )
        self._encodes = RecordEncodes(
            sink.formats(), sink.topic, {"value": sink.value, "key": sink.key}
        )
        self._target = sink.connection or opening.connection
        # On another cluster there are no topics of the source for marks to be committed at.
        self._abroad = sink.connection is not None
        # The largest record that the topic takes, once it is known.
        self._limit: int | None = None

    def prepare(self, schema: StructType) -> None:
        """Make the topic where it is missing, look at the columns, and register schemas."""
        self._columns.check(schema)
        self.make_topic()
        if self._encodes:
            empty = self.opening.spark.createDataFrame([], schema)
            self._encodes.batch_encode(self._records(empty).schema)

    def make_topic(self) -> None:
        """Make the topic where it is missing; see how large a record may be."""
        with Admin(self._target) as admin:
            if not admin.topic_ids([self.sink.topic]):
                self.create_topic(admin, self.sink.topic)
            self._limit = admin.largest_record(self.sink.topic)

    def create_topic(self, admin: Admin, topic: str) -> None:
        """Make a topic that is missing."""
        admin.create_topic(topic, config=self.topic_config())

    def topic_config(self) -> dict[str, Any]:
        """Return the configuration of a topic that has to be made."""
        return {}

    def write(self, batch: Batch) -> None:
        """Send the rows."""
        records = self._records(batch.rows)
        if batch.delivery is not Delivery.AT_LEAST_ONCE:
            self._write_once(records, batch)
        else:
            records = self._encodes.encoded(records) if self._encodes else records
            write_through_spark(records, self._target, self.sink.topic, self._limit)

    def stream_writer(self, rows: DataFrame) -> DataStreamWriter:
        """Return what sends the rows of a stream one by one, for real-time mode."""
        if self._encodes:
            raise ConfigError(
                "real-time mode runs without Python: value_format and key_format must be json there"
            )
        records = self._records(rows)
        return stream_writer(records, self._target, self.sink.topic, self._limit)

    def _records(self, rows: DataFrame) -> DataFrame:
        formats = self.sink.formats()
        if chosen := formats.get("value"):
            columns = self._columns
            named = value_column(rows.columns, columns.value, columns, chosen)
            self._encodes.name_value(named)
        return self._columns.records(rows, self.sink.topic, formats)

    def last_write(self) -> LastWrite | None:
        """Return the newest mark of the groups `<pipeline>.sink*`, and how far each partition is."""
        return _newest(*self._stored(self.opening.partitions))

    def has(self, batch: Batch) -> bool:
        """Return whether each partition that has records in the batch has them in the topic.

        Each has its own mark: a written partition does not imply the others.
        """
        spans = spans_in(batch.ranges)
        if not spans:
            return False
        whole, by_partition = self._stored([(span.topic, span.partition) for span in spans])
        marks = [(by_partition.get((span.topic, span.partition), whole), span) for span in spans]
        return all(
            stored is not None and stored.covers(span, batch.mark, batch.pipeline, batch.again)
            for stored, span in marks
        )

    def claim(self, epoch: int, continues: Container[int] = ()) -> LastWrite | None:
        """Take over every transactional id of the pipeline, and mark the epoch."""
        opening = self.opening
        scopes = to_claim(
            opening.pipeline, self.sink.topic, opening.partitions, abroad=self._abroad
        )
        claimed = Claim(self._target, opening.pipeline, epoch, continues).make(*scopes)
        # An open transaction of a partition's task is resolved only when its id was taken over.
        before = [
            {where: one for where, one in each.items() if one.mark.epoch < epoch}
            for each in claimed
        ]
        return _newest(*self._arranged(opening.partitions, before))

    def _stored(self, partitions: Sequence[Partition]) -> Marked:
        """Return the mark of whole batches, where there is one, and those of the source's partitions."""
        topic, abroad = self.sink.topic, self._abroad
        whole, others = to_claim(self.opening.pipeline, topic, partitions, abroad=abroad)
        # Where a claim reads and writes, so that both see the same: the mark at the topic that is written
        # to outlives a topic of the source that is recreated.
        asked = whole.partitions if abroad or partitions else None
        scopes = (whole, *others) if abroad else (whole,)
        marks = [stored_marks(self._target, each.group, asked) for each in scopes]
        return self._arranged(partitions, marks)

    def _arranged(
        self, partitions: Sequence[Partition], marks: list[dict[Partition, Stored]]
    ) -> Marked:
        """Return the marks by partition: on another cluster each partition has its own group."""
        if not self._abroad:
            return None, {where: one for each in marks for where, one in each.items()}
        whole, *others = (next(iter(each.values()), None) for each in marks)
        pairs = zip(partitions, others, strict=True)
        return whole, {where: one for where, one in pairs if one}

    def _write_once(self, records: DataFrame, batch: Batch) -> None:
        task = Task(
            connection=self._target,
            topic=self.sink.topic,
            label=batch.label,
            mark=batch.mark,
            settings=self._sizes(),
            addressed=self.sink.topic_column is not None or self.sink.partition is not None,
            encode=self._encodes.batch_encode(records.schema) if self._encodes else None,
        )
        run = in_worker(task.run, "write")
        sent = records.mapInArrow(run, OUTCOME)
        spans = spans_of(sent)
        if spans is None:
            sent = records.coalesce(1).mapInArrow(run, OUTCOME)
        arrange = scopes_abroad if self._abroad else scopes_of
        _run(sent, arrange(batch, self.sink.topic, spans))

    def _sizes(self) -> dict[str, Any]:
        """Let the client's limits be the topic's: it refuses then what the broker would refuse."""
        if self._limit is None or "message.max.bytes" in self._target.options:
            return {}
        return {
            "message.max.bytes": max(1000, min(self._limit, 1_000_000_000)),
            "batch.size": max(1000, min(self._limit - _OVERHEAD, 1_000_000)),
        }


def _newest(whole: Stored | None, by_partition: dict[Partition, Stored]) -> LastWrite | None:
    known = last_write_of(by_partition)
    if whole is None:
        return known
    if known is None:
        return LastWrite(whole.mark)
    return replace(known, mark=max(whole.mark, known.mark))


def _run(sent: DataFrame, scopes: list[TaskScope]) -> None:
    """Let every task write its part, and raise the gravest of their errors."""
    context = sent.sparkSession.sparkContext
    context.setLocalProperty(SCOPES, msgspec.json.encode(scopes).decode())
    try:
        failed = [from_document(msgspec.json.decode(row[0])) for row in sent.collect()]
    finally:
        context.setLocalProperty(SCOPES, None)  # type: ignore[arg-type]
    if failed:
        raise min(failed, key=_gravity)


def _gravity(error: PenstockError) -> int:
    """Return the rank of an error: wrong settings first, refused records last."""
    return 2 if isinstance(error, RefusedError) else 1 if isinstance(error, TransientError) else 0
