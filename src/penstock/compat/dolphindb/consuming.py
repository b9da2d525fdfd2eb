"""The plugin's chapter about consumers, as far as it is about what they read."""

from __future__ import annotations

from typing import Any

from penstock.compat.dolphindb.arguments import format_of, milliseconds, offsets_at, wait_of
from penstock.compat.dolphindb.messages import NO_MESSAGE, Answer, answer_of, answers
from penstock.kafka import Consumer
from penstock.kafka.consuming.bounds import at_least_one


def subscribe(consumer: Consumer, topic: Any) -> None:
    """Share one topic, or several, with the other consumers of the group."""
    consumer.subscribe(topic)


def unsubscribe(consumer: Consumer) -> None:
    """Read nothing more: ends a subscription, and an assignment too."""
    consumer.unsubscribe()


def assign(consumer: Consumer, topic: Any, partition: Any, offset: Any) -> None:
    """Read exactly these partitions from these offsets on: three values, or vectors of one length."""
    consumer.assign(offsets_at(topic, partition, offset))


def unassign(consumer: Consumer) -> None:
    """Give all partitions back, whether they were subscribed or assigned."""
    consumer.unassign()


def consumerPoll(
    consumer: Consumer, timeout: int | None = None, marshalType: str | None = None
) -> Answer:
    """The next message: (error, (topic, key, value, partition, timestamp)).

    The error is empty, or "No more message" when none came within `timeout` milliseconds
    (`getConsumerTime`, 1000 at first). Without a marshalType the first bytes tell JSON from DOLPHINDB.
    """
    return consumerPollBatch(consumer, 1, timeout, marshalType)[0]


def consumerPollBatch(
    consumer: Consumer, batchSize: int, timeout: int | None = None, marshalType: str | None = None
) -> list[Answer]:
    """Up to `batchSize` answers of `consumerPoll`; where no message came, the one that says so."""
    most, wait = at_least_one(batchSize), wait_of(timeout)
    format = format_of(marshalType, "auto")
    return answers(lambda: consumer.poll_batch(most, wait, format))


def pollDict(consumer: Consumer, batch_size: int, timeout: int | None = None) -> dict[Any, Any]:
    """Up to `batch_size` messages as a dictionary of key and value; of one key the last value counts.

    A message that does not decode is raised: a dictionary has no place for its error.
    """
    records = consumer.poll_batch(at_least_one(batch_size), wait_of(timeout), "auto")
    for record in records:
        if record.error is not None:
            raise record.error
    messages = [message for _, message in map(answer_of, records) if message is not None]
    return {key: value for _, key, value, _, _ in messages}


def pollByteStream(consumer: Consumer, timeout: int | None = None) -> bytes | str | None:
    """The bytes of the next message's value, whatever its format; "No more message" where none came."""
    records = consumer.poll_batch(1, wait_of(timeout))
    if not records:
        return NO_MESSAGE
    value: bytes | None = records[0].value
    return value


def getConsumerTime(consumer: Consumer) -> int:
    """How long a poll waits, in milliseconds; 1000 at first."""
    return consumer.timeout_ms


def setConsumerTime(consumer: Consumer, timeout: int) -> None:
    """Set how long a poll waits, in milliseconds."""
    consumer.timeout_ms = milliseconds(timeout)


def getMemId(consumer: Consumer) -> str:
    """The consumer's name in its group; empty until a poll has brought it in."""
    return consumer.member_id or ""


def commit(
    consumer: Consumer, topic: Any = None, partition: Any = None, offset: Any = None
) -> None:
    """Commit what was consumed in all partitions, or the offsets that are given, and wait.

    Raises where nothing was consumed since the last time.
    """
    if topic is None and partition is None and offset is None:
        consumer.commit()
    else:
        consumer.commit(offsets_at(topic, partition, offset))


def commitTopic(consumer: Consumer, topics: Any, partitions: Any, offsets: Any) -> None:
    """Commit the offsets that are given, and wait."""
    consumer.commit(offsets_at(topics, partitions, offsets))


def asyncCommit(consumer: Consumer) -> None:
    """Commit what was consumed, without waiting; an `OffsetCommit` event tells of the end."""
    consumer.commit_async()


def asyncCommitTopic(consumer: Consumer, topics: Any, partitions: Any, offsets: Any) -> None:
    """Commit the offsets that are given, without waiting."""
    consumer.commit_async(offsets_at(topics, partitions, offsets))
