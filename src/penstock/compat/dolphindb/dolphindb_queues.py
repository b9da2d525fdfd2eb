"""The plugin's functions for queues and events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.compat.dolphindb.consuming import Answer, answers
from penstock.compat.dolphindb.dolphindb_arguments import checked, partitions_at, seconds, wait_of
from penstock.compat.dolphindb.dolphindb_offsets import place_table
from penstock.errors import ConfigError
from penstock.kafka import Consumer, Event, Queue
from penstock.kafka.consuming.decoding import Decoder
from penstock.kafka.consuming.poller import at_least_one
from penstock.record import Record

if TYPE_CHECKING:
    from pandas import DataFrame


@checked()
def getMainQueue(consumer: Consumer) -> Queue:
    """Return the queue of all events of a consumer."""
    return consumer.queues.main


@checked()
def getConsumerQueue(consumer: Consumer) -> Queue:
    """Return the queue of a consumer's messages."""
    return consumer.queues.consumer


@checked()
def getPartitionQueue(consumer: Consumer, topic: Any, partition: Any) -> Any:
    """Return the queue of one partition; an empty queue if the partition is not assigned.

    Topic and partition may be vectors: of one partition its queue, of several a list of queues.
    """
    queues = [consumer.queues.partition(*where) for where in partitions_at(topic, partition)]
    return queues[0] if len(queues) == 1 else queues


@checked()
def queueLength(queue: Queue) -> int:
    """Return the number of events in a queue."""
    return len(queue)


@checked()
def forToQueue(queue: Queue, forward_queue: Queue) -> None:
    """Forward a queue to another one."""
    queue.forward_to(forward_queue)


@checked()
def disforToQueue(queue: Queue) -> None:
    """Stop forwarding a queue."""
    queue.stop_forwarding()


@checked()
def setQueueTime(queue: Queue, timeout: int) -> None:
    """Set how long a poll of a queue waits, in milliseconds."""
    queue.timeout = seconds(timeout)


@checked()
def getQueueTime(queue: Queue) -> int:
    """Return how long a poll of a queue waits, in milliseconds; initially 1000."""
    return round(queue.timeout * 1000)


@checked()
def queuePoll(queue: Queue, timeout: int | None = None) -> Answer:
    """Return the next message of a queue, like `consumerPoll`."""
    return queuePollBatch(queue, 1, timeout)[0]


@checked()
def queuePollBatch(queue: Queue, batch_size: int, timeout: int | None = None) -> list[Answer]:
    """Return up to `batch_size` messages of a queue, like `consumerPollBatch`."""
    max_records, wait = at_least_one(batch_size), wait_of(timeout)
    return answers(lambda: queue.poll_batch(max_records, wait, "auto"))


@checked()
def queueEvent(queue: Queue) -> Event:
    """Return the next event of a queue; after a timeout one that is false."""
    return queue.event()


@checked()
def getEventName(event: Event) -> str:
    """Return the name: Fetch, Rebalance, OffsetCommit, Error, or None for no event."""
    return event.name


@checked()
def eventGetMessage(event: Event) -> list[Answer]:
    """Return all messages of an event, like `consumerPollBatch`; raise if it has none.

    >>> eventGetMessage(Event("None"))
    Traceback (most recent call last):
    penstock.errors.ConfigError: event None has no message; check getEventMessageCount(event) first
    """
    if not event.messages:
        raise ConfigError(
            f"event {event.name} has no message; check getEventMessageCount(event) first"
        )
    copies = [_copy(record) for record in event.messages]
    return answers(lambda: Decoder("auto")(copies))


@checked()
def getEventMessageCount(event: Event) -> int:
    """Return the number of messages of an event."""
    return event.message_count


@checked()
def eventGetError(event: Event) -> str:
    """Return the error of an event; "Success" if there is none."""
    return "Success" if event.error is None else str(event.error)


@checked()
def eventGetPart(event: Event) -> tuple[str, int, int] | None:
    """Return topic, partition and offset of an event with one partition, or None.

    >>> eventGetPart(Event("OffsetCommit", partitions=[("test", 0, 7)]))
    ('test', 0, 7)
    """
    return event.partition


@checked()
def eventGetParts(event: Event) -> DataFrame:
    """Return all partitions of an event as a table of topic, partition and offset."""
    return place_table(event.partitions)


@checked()
def eventBool(event: Event) -> bool:
    """Return whether there is an event."""
    return bool(event)


def _copy(record: Record) -> Any:
    """Return copies of the event's records: they may be read twice, and decoding changes a record."""
    where = (record.topic, record.partition, record.offset)
    return Record.of(*where, record.key, record.value, record.timestamp).message
