"""The plugin's chapters about queues and events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.compat.dolphindb.arguments import milliseconds, wait_of
from penstock.compat.dolphindb.messages import Answer, answers
from penstock.compat.dolphindb.offsets import place_table
from penstock.formats import find_format
from penstock.kafka import Consumer, Event, Queue
from penstock.kafka.consuming.bounds import at_least_one
from penstock.kafka.consuming.decoding import decode_all
from penstock.record import Record

if TYPE_CHECKING:
    from pandas import DataFrame


def getMainQueue(consumer: Consumer) -> Queue:
    """The queue of all events of a consumer."""
    return consumer.queues.main


def getConsumerQueue(consumer: Consumer) -> Queue:
    """The queue of a consumer's messages."""
    return consumer.queues.consumer


def getPartitionQueue(consumer: Consumer, topic: str, partition: int) -> Queue:
    """The queue of one partition; an empty one where the partition is not assigned."""
    return consumer.queues.partition(topic, partition)


def queueLength(queue: Queue) -> int:
    """How many events wait in a queue."""
    return len(queue)


def forToQueue(queue: Queue, forward_queue: Queue) -> None:
    """Send what comes to a queue to another one."""
    queue.forward_to(forward_queue)


def disforToQueue(queue: Queue) -> None:
    """Stop sending what comes to a queue to another one."""
    queue.stop_forwarding()


def setQueueTime(queue: Queue, timeout: int) -> None:
    """Set how long a poll of a queue waits, in milliseconds."""
    queue.timeout_ms = milliseconds(timeout)


def getQueueTime(queue: Queue) -> int:
    """How long a poll of a queue waits, in milliseconds; 1000 at first."""
    return queue.timeout_ms


def queuePoll(queue: Queue, timeout: int | None = None) -> Answer:
    """The next message of a queue, as `consumerPoll` gives it."""
    return queuePollBatch(queue, 1, timeout)[0]


def queuePollBatch(queue: Queue, batch_size: int, timeout: int | None = None) -> list[Answer]:
    """Up to so many messages of a queue, as `consumerPollBatch` gives them."""
    most, wait = at_least_one(batch_size), wait_of(timeout)
    return answers(lambda: queue.poll_batch(most, wait, "auto"))


def queueEvent(queue: Queue) -> Event:
    """The next event of a queue; one that is false when none came in time."""
    return queue.event()


def getEventName(event: Event) -> str:
    """The name: Fetch, Rebalance, OffsetCommit, Error, or None for no event.

    >>> getEventName(Event("OffsetCommit"))
    'OffsetCommit'
    """
    return event.name


def eventGetMessage(event: Event) -> list[Answer]:
    """All messages of an event, as `consumerPollBatch` gives them.

    >>> eventGetMessage(Event("None"))
    [('No more message', None)]
    """
    copies = [_copy(record) for record in event.messages]
    return answers(lambda: decode_all(copies, find_format("auto"), None))


def getEventMessageCount(event: Event) -> int:
    """How many messages an event has.

    >>> getEventMessageCount(Event("None"))
    0
    """
    return event.message_count


def eventGetError(event: Event) -> str:
    """The error of an event; empty where there is none.

    >>> eventGetError(Event("None"))
    ''
    """
    return "" if event.error is None else str(event.error)


def eventGetPart(event: Event) -> tuple[str, int, int] | None:
    """Topic, partition and offset of the one partition that an event is about, or None.

    >>> eventGetPart(Event("OffsetCommit", partitions=[("test", 0, 7)]))
    ('test', 0, 7)
    """
    return event.partition


def eventGetParts(event: Event) -> DataFrame:
    """All partitions that an event is about, as a table of topic, partition and offset."""
    return place_table(event.partitions)


def eventBool(event: Event) -> bool:
    """Whether there is an event.

    >>> eventBool(Event("None"))
    False
    """
    return bool(event)


def _copy(record: Record) -> Any:
    """An event may be asked for its messages twice, and decoding changes a message."""
    where = (record.topic, record.partition, record.offset)
    return Record.of(*where, record.key, record.value, record.timestamp).message
