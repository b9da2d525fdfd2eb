"""A topic as a store of whole records, for dead letters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from penstock.config import Connection
from penstock.encode.format_options import JSON_FORMAT
from penstock.kafka import Admin
from penstock.kafka.topic_records import TopicRecords
from penstock.pipeline import Batch, Opening, Writer
from penstock.pipeline.record_store import NewRecord, RecordStore, StoredRecord
from penstock.sinks.kafka.kafka_writer import KafkaWriter

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from penstock.sinks.kafka.kafka_sink import KafkaSink

# What the headers that are added to a record may take.
_HEADERS = 65_536


class TopicStore(RecordStore):
    """The records of the topic of a sink; `source` is the cluster whose records come to it."""

    def __init__(self, sink: KafkaSink, source: Connection) -> None:
        self._sink = sink
        self._records = TopicRecords(sink.connection or source, sink.topic)

    def open(self, opening: Opening) -> Writer:
        """Return what writes whole records."""
        return RecordWriter(self.record_sink, opening)

    @property
    def record_sink(self) -> KafkaSink:
        """Return the sink that writes the columns of a record as they are."""
        parts = {"key": "key", "value": "value", "headers": "headers"}
        update = {**parts, "value_format": JSON_FORMAT, "key_format": JSON_FORMAT}
        return self._sink.model_copy(update=update)

    def read(self) -> Iterator[StoredRecord]:
        """Return records as far as transactions have ended, then the others."""
        return (StoredRecord(*each) for each in self._records.read())

    def append(self, records: Iterable[NewRecord]) -> None:
        """Send records, and wait until all in-sync replicas have them."""
        self._records.append(records)


class RecordWriter(KafkaWriter):
    """Sends whole records, into a topic that takes what the topics of the source take."""

    def prepare(self, _schema: StructType) -> None:
        """Make the topic where it is missing."""
        self.make_topic()

    def write(self, batch: Batch) -> None:
        """Send the records, to a topic that may have been deleted since the last ones."""
        self.make_topic()
        super().write(batch)

    def topic_config(self) -> dict[str, Any]:
        """Leave space for the headers that are added to a record."""
        topics = {topic for topic, _ in self.opening.partitions}
        with Admin(self.opening.connection) as admin:
            largest = max((admin.largest_record(topic) or 0 for topic in topics), default=0)
        return {"max.message.bytes": largest + _HEADERS} if largest else {}
