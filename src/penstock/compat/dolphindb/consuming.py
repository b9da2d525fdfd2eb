"""The plugin's consumer functions for subscribing, polling and committing.

The result of every poll is (error, message).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from penstock.compat.dolphindb.dolphindb_arguments import (
    checked,
    format_of,
    offsets_at,
    seconds,
    wait_of,
)
from penstock.compat.dolphindb.dolphindb_values import to_python
from penstock.errors import FormatError, PenstockError, WakeupError
from penstock.formats import find_format
from penstock.kafka import Consumer
from penstock.kafka.consuming.poller import at_least_one
from penstock.record import Record

Message = tuple[str, Any, Any, int, np.datetime64]
"""Topic, key, value, partition, timestamp."""
Answer = tuple[str, "Message | None"]
"""The error, empty if there is none, and the message."""

NO_MESSAGE = "No more message"


@checked()
def subscribe(consumer: Consumer, topic: Any) -> None:
    """Share one topic, or several, with the other consumers of the group."""
    consumer.subscribe(topic)


@checked()
def unsubscribe(consumer: Consumer) -> None:
    """End a subscription or an assignment."""
    consumer.unsubscribe()


@checked()
def assign(consumer: Consumer, topic: Any, partition: Any, offset: Any) -> None:
    """Read exactly these partitions from these offsets: three values, or vectors of one length."""
    consumer.assign(offsets_at(topic, partition, offset))


@checked()
def unassign(consumer: Consumer) -> None:
    """Release all partitions, whether they were subscribed or assigned."""
    consumer.unassign()


@checked()
def consumerPoll(
    consumer: Consumer, timeout: int | None = None, marshalType: str | None = None
) -> Answer:
    """Return the next message: (error, (topic, key, value, partition, timestamp)).

    The error is empty, or "No more message" when none arrived within `timeout` milliseconds
    (`getConsumerTime`, initially 1000). Without a marshalType the first bytes select JSON or DOLPHINDB.
    """
    return consumerPollBatch(consumer, 1, timeout, marshalType)[0]


@checked()
def consumerPollBatch(
    consumer: Consumer, batchSize: int, timeout: int | None = None, marshalType: str | None = None
) -> list[Answer]:
    """Return up to `batchSize` results of `consumerPoll`; without a message, the one that says so."""
    max_records, wait = at_least_one(batchSize), wait_of(timeout)
    format = format_of(marshalType, "auto")
    return answers(lambda: consumer.poll_batch(max_records, wait, format))


@checked()
def pollDict(consumer: Consumer, batch_size: int, timeout: int | None = None) -> dict[Any, Any]:
    """Return up to `batch_size` messages as a dictionary of key and value; the last value of a key wins.

    Raises for a message that does not decode: a dictionary has no place for its error.
    """
    records = consumer.poll_batch(at_least_one(batch_size), wait_of(timeout), "auto")
    for record in records:
        if record.error is not None:
            raise record.error
    messages = {}
    for error, message in map(answer_of, records):
        if error:
            raise FormatError(error)
        messages[message[1]] = message[2]
    return messages


@checked()
def pollByteStream(consumer: Consumer, timeout: int | None = None) -> bytes | str | None:
    """Return the bytes of the next message's value, or "No more message" after the timeout."""
    records = consumer.poll_batch(1, wait_of(timeout))
    if not records:
        return NO_MESSAGE
    value: bytes | None = records[0].value
    return value


@checked()
def getConsumerTime(consumer: Consumer) -> int:
    """Return how long a poll waits, in milliseconds; initially 1000."""
    return round(consumer.timeout * 1000)


@checked()
def setConsumerTime(consumer: Consumer, timeout: int) -> None:
    """Set how long a poll waits, in milliseconds."""
    consumer.timeout = seconds(timeout)


@checked()
def getMemId(consumer: Consumer) -> str:
    """Return the consumer's member id; empty until a poll has joined the group."""
    return consumer.member_id or ""


@checked()
def commit(
    consumer: Consumer, topic: Any = None, partition: Any = None, offset: Any = None
) -> None:
    """Commit what was consumed in all partitions, or the given offsets, and wait.

    Raises if nothing was consumed since the last commit.
    """
    if topic is None and partition is None and offset is None:
        consumer.commit()
    else:
        consumer.commit(offsets_at(topic, partition, offset))


@checked()
def commitTopic(consumer: Consumer, topics: Any, partitions: Any, offsets: Any) -> None:
    """Commit the given offsets, and wait."""
    consumer.commit(offsets_at(topics, partitions, offsets))


@checked()
def asyncCommit(consumer: Consumer) -> None:
    """Commit what was consumed, without waiting; an `OffsetCommit` event reports the result."""
    consumer.commit_async()


@checked()
def asyncCommitTopic(consumer: Consumer, topics: Any, partitions: Any, offsets: Any) -> None:
    """Commit the given offsets, without waiting."""
    consumer.commit_async(offsets_at(topics, partitions, offsets))


def answer_of(record: Record) -> tuple[str, Message]:
    """Return one record in the plugin's form; one that does not decode keeps its bytes.

    >>> error, message = answer_of(Record.of("test", 0, 7, key=b"k", value=[1], timestamp=1))
    >>> error, message[:4], str(message[4])
    ('', ('test', 'k', [1], 0), '1970-01-01T00:00:00.001')
    """
    error = "" if record.error is None else str(record.error)
    value = record.value
    try:
        value = to_python(value)
    except FormatError as problem:
        error = str(problem)
    key = find_format("plain").decode(record.key) if isinstance(record.key, bytes) else record.key
    moment = np.datetime64("NaT" if record.timestamp is None else record.timestamp, "ms")
    return error, (record.topic, key, value, record.partition, moment)


def answers(poll: Callable[[], list[Record]]) -> list[Answer]:
    """Poll, and return a result for each record, or one that says that there was none.

    Errors while reading are returned, as in the plugin. A wakeup is raised: it must end
    the caller's loop.
    """
    try:
        records = poll()
    except WakeupError:
        raise
    except PenstockError as error:
        return [(str(error), None)]
    return list(map(answer_of, records)) or [(NO_MESSAGE, None)]
