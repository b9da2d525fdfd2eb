"""Spark's own writer, for the weaker promises: the Java client, which knows Kerberos, too."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from penstock.config.secrets import mask
from penstock.errors import ConfigError, PenstockError, RefusedError, TransientError
from penstock.pipeline.java_errors import causes_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from penstock.config import Connection

# The Java client's own default: below it, it divides by itself what it sends at once.
_LEAST = 1_048_576
_KAFKA = "org.apache.kafka.common.errors."
_OF_THE_RECORD = {"RecordTooLarge", "InvalidRecord", "InvalidTimestamp", "RecordBatchTooLarge"}
# The Java client waits for a place that is not there, and then calls it a time-out.
_MISSING = re.compile(r"(Partition \d+ of topic|Topic) .* not present in metadata")
_FORBIDDEN = re.compile(r"\w*Auth(orization|entication)$|Ssl\w*|UnsupportedVersion")
_AWAY = re.compile(
    r"Timeout|Network|Disconnect|NotLeaderOrFollower|LeaderNotAvailable|BrokerNotAvailable"
    r"|NotEnoughReplicas\w*|KafkaStorage|UnknownTopicOrPartition|\w*ProducerEpoch|OutOfOrderSequence"
)


def write_through_spark(
    records: DataFrame, connection: Connection, topic: str, largest: int | None
) -> None:
    """Send the records, to the topic in the column `topic` if there is one."""
    writer = records.write.format("kafka").mode("append")
    writer = writer.options(**_options(connection, largest))
    if "topic" not in records.columns:
        writer = writer.option("topic", topic)
    try:
        writer.save()
    except (PySparkException, Py4JError) as error:
        translated = _verdict(error, addressed="topic" in records.columns)
        raise translated or error from error


def stream_writer(
    records: DataFrame, connection: Connection, topic: str, largest: int | None
) -> DataStreamWriter:
    """Return the writer of a stream of records."""
    writer = records.writeStream.format("kafka").options(**_options(connection, largest))
    return writer if "topic" in records.columns else writer.option("topic", topic)


def _options(connection: Connection, largest: int | None) -> dict[str, str]:
    safe = {"kafka.acks": "all", "kafka.enable.idempotence": "true"}
    size = {"kafka.max.request.size": str(max(largest or 0, _LEAST))}
    return {**safe, **size, **connection.spark()}


def _verdict(error: Exception, *, addressed: bool) -> PenstockError | None:
    """Return the Java client's error as one of ours; None if it reported none."""
    for cause in causes_of(error):
        if not cause.names[0].startswith(_KAFKA):
            continue
        kind = cause.name.removesuffix("Exception")
        message = mask(f"{kind}: {cause.message.strip()}")
        missing = _MISSING.search(cause.message)
        # Only a row names a partition; a missing topic may be the sink's own.
        if kind in _OF_THE_RECORD or (missing and (addressed or missing[1] != "Topic")):
            return RefusedError(f"Kafka refuses a record: {message}")
        if kind == "InvalidTopic" and addressed:
            return RefusedError(f"a row names a topic that cannot be: {message}")
        if _FORBIDDEN.fullmatch(kind) or kind == "InvalidTopic":
            return ConfigError(
                f"writing to Kafka: {message}; check the connection's user and its ACLs"
            )
        if _AWAY.fullmatch(kind):
            return TransientError(f"writing to Kafka: {message}")
    return None
