"""The dead letter queue of a connector: bad records as they were, and Connect's headers.

Headers `penstock.*` are there in any case: with them `penstock dead-letters` lists and replays records.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from penstock.config import Connection
from penstock.kafka import Admin
from penstock.pipeline import Batch, Opening, Writer
from penstock.sinks.connect_errors.error_stages import class_of, exception_of, stage_of
from penstock.sinks.kafka.topic_store import RecordWriter, TopicStore

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from penstock.sinks.connect_errors.connect_errors_sink import ConnectErrors
    from penstock.sinks.kafka.kafka_sink import KafkaSink

PREFIX = "__connect.errors."
_OWN = "penstock."
_DEFAULT_COPIES = 3


class ErrorQueue(TopicStore):
    """The records of the queue."""

    def __init__(self, sink: KafkaSink, source: Connection, errors: ConnectErrors) -> None:
        super().__init__(sink, source)
        self._errors = errors

    def open(self, opening: Opening) -> Writer:
        """Return what writes whole records."""
        return QueueWriter(self.record_sink, opening, self._errors)


class QueueWriter(RecordWriter):
    """Sends bad records."""

    def __init__(self, sink: KafkaSink, opening: Opening, errors: ConnectErrors) -> None:
        super().__init__(sink, opening)
        self._errors = errors

    def write(self, batch: Batch) -> None:
        """Send the records, then log them where that is asked for."""
        failures = _described(batch.rows)
        rows = self._with_context(failures) if self._errors.context else batch.rows
        super().write(replace(batch, rows=rows))  # first: they are counted as they pass by
        self._errors.reporter().report(failures)

    def create_topic(self, admin: Admin, topic: str) -> None:
        """Make the queue, with as many copies as are asked for, or as there are brokers."""
        copies = self._errors.replication
        if copies is None:
            copies = min(_DEFAULT_COPIES, len(admin.cluster().brokers))
        admin.create_topic(topic, replication=copies, config=self.topic_config())

    def _with_context(self, failures: DataFrame) -> DataFrame:
        """Put Connect's headers between those of the record and Penstock's, which are the last ones."""
        made = [_header(f"{PREFIX}{name}", text) for name, text in self._context().items()]
        own = f.filter("headers", lambda header: ~header["key"].startswith(_OWN))
        ours = f.filter("headers", lambda header: header["key"].startswith(_OWN))
        headers = f.concat(own, f.array(*made), ours)
        return failures.select("key", "value", headers.alias("headers"))

    def _context(self) -> dict[str, Column]:
        stage, error, classes = f.col("stage"), f.col("error"), self._errors.classes
        exception = exception_of(stage)
        message = f.concat_ws(": ", "error_type", "error")
        return {
            "topic": f.col("topic"),
            "partition": f.col("partition"),
            "offset": f.col("offset"),
            "connector.name": f.lit(self._errors.connector),
            "task.id": f.lit("0"),
            "stage": stage_of(stage, error, classes),
            "class.name": class_of(stage, error, classes),
            "exception.class.name": exception,
            "exception.message": message,
            "exception.stacktrace": f.concat(exception, f.lit(": "), message, f.lit("\n")),
        }


def _header(name: str, text: Column) -> Column:
    return f.struct(f.lit(name).alias("key"), text.cast("binary").alias("value"))


def _described(rows: DataFrame) -> DataFrame:
    """Return the records with what their headers say of them as columns."""
    names = ("topic", "partition", "offset", "timestamp", "stage", "error_type", "error")
    return rows.withColumns({name: _text_of(f"{_OWN}{name}") for name in names})


def _text_of(name: str) -> Column:
    found = f.filter("headers", lambda header: header["key"] == f.lit(name))
    return f.try_element_at(found, f.lit(-1))["value"].cast("string")
