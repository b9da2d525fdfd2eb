"""Queues and events under the plugin's names."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.integration.dolphindb.documented import documented

from penstock import Connection, Consumer
from penstock.compat import dolphindb as kafka
from penstock.errors import ConfigError
from penstock.kafka import Event
from penstock.testing import eventually, fill


@pytest.fixture
def two(connection: Connection, new_topic: Any) -> str:
    """A topic of two partitions: even numbers in the first, odd ones in the second."""
    topic: str = new_topic(2)
    fill(connection, topic, [f"[{number}]" for number in range(10)], partitions=2)
    return topic


def values(answers: Any) -> list[int]:
    assert [error for error, _ in answers] == [""] * len(answers)
    return [message[2][0] for _, message in answers]


@documented("getConsumerQueue", "queueLength", "queuePoll", "queuePollBatch")
def test_the_consumers_queue_has_its_messages(consumer: Consumer, two: str) -> None:
    kafka.assign(consumer, two, 0, 0)
    queue = kafka.getConsumerQueue(consumer)
    assert eventually(lambda: kafka.queueLength(queue) == 5)
    assert values([kafka.queuePoll(queue)]) == [0]
    assert values(kafka.queuePollBatch(queue, 10, 500)) == [2, 4, 6, 8]
    assert kafka.queueLength(queue) == 0


@documented("getPartitionQueue", "forToQueue", "disforToQueue")
def test_a_partitions_queue_can_be_sent_to_another_one(consumer: Consumer, two: str) -> None:
    even, odd = (kafka.getPartitionQueue(consumer, two, number) for number in (0, 1))
    kafka.forToQueue(odd, even)
    kafka.assign(consumer, [two, two], [0, 1], [0, 0])
    assert sorted(values(kafka.queuePollBatch(even, 10, 30_000))) == list(range(10))
    kafka.disforToQueue(odd)
    consumer.seek({(two, 0): 4, (two, 1): 4})
    assert values([kafka.queuePoll(odd, 30_000)]) == [9]
    assert values([kafka.queuePoll(even, 30_000)]) == [8]
    with pytest.raises(ConfigError, match="cannot be forwarded to itself"):
        kafka.forToQueue(even, even)


@documented("getPartitionQueue")
def test_the_queue_of_a_partition_that_is_not_assigned_is_empty(
    consumer: Consumer, two: str
) -> None:
    kafka.assign(consumer, two, 0, 0)
    queue = kafka.getPartitionQueue(consumer, two, 1)
    assert kafka.queuePoll(queue, 100) == ("No more message", None)
    assert kafka.queueLength(queue) == 0


@documented("getPartitionQueue")
def test_the_queues_of_partitions_are_given_for_vectors_too(consumer: Consumer, two: str) -> None:
    even, odd = kafka.getPartitionQueue(consumer, [two, two], [0, 1])
    assert kafka.getPartitionQueue(consumer, [two], np.array([1])) is odd
    assert kafka.getPartitionQueue(consumer, two, 0) is even
    with pytest.raises(ConfigError, match="must be of one length"):
        kafka.getPartitionQueue(consumer, two, [0, 1])


@documented("setQueueTime", "getQueueTime")
def test_the_time_of_a_queue_can_be_read_and_set(consumer: Consumer) -> None:
    queue = kafka.getMainQueue(consumer)
    assert kafka.getQueueTime(queue) == 1000
    kafka.setQueueTime(queue, 20)
    assert kafka.getQueueTime(queue) == 20
    assert kafka.queuePoll(queue) == ("No more message", None)
    with pytest.raises(ConfigError, match="timeout None is not allowed"):
        kafka.setQueueTime(queue, None)  # type: ignore[arg-type]


def of_name(consumer: Consumer, name: str) -> Event:
    queue = kafka.getMainQueue(consumer)
    return eventually(
        lambda: kafka.getEventName(event := kafka.queueEvent(queue)) == name and event
    )


@documented(
    "getMainQueue", "queueEvent", "getEventName", "eventGetMessage", "getEventMessageCount",
    "eventGetError", "eventGetPart", "eventGetParts", "eventBool",
)  # fmt: skip
def test_events_tell_of_messages_rebalances_and_commits(consumer: Consumer, two: str) -> None:
    kafka.subscribe(consumer, two)
    event = of_name(consumer, "Rebalance")
    assert (kafka.eventBool(event), kafka.getEventMessageCount(event)) == (True, 0)
    table = kafka.eventGetParts(event)
    assert list(table.columns) == ["topic", "partition", "offset"]
    assert sorted(zip(table["topic"], table["partition"], strict=True)) == [(two, 0), (two, 1)]
    assert kafka.eventGetPart(event) is None

    fetched = of_name(consumer, "Fetch")
    assert (kafka.getEventMessageCount(fetched), kafka.eventGetError(fetched)) == (1, "Success")
    # An event may be asked twice.
    for _ in range(2):
        ((error, message),) = kafka.eventGetMessage(fetched)
        assert message is not None
        topic, key, value, partition, _ = message
        assert (error, topic, key, value) == ("", two, None, [partition])
    assert kafka.eventGetPart(fetched) == (two, partition, 0)

    kafka.asyncCommitTopic(consumer, [two], [1], [3])
    done = of_name(consumer, "OffsetCommit")
    assert kafka.eventGetParts(done).to_dict("list") == {
        "topic": [two],
        "partition": [1],
        "offset": [3],
    }


@documented("eventGetError", "eventBool")
def test_an_error_is_an_event_and_nothing_is_one_that_is_false(unique: str) -> None:
    away = {"metadata.broker.list": "127.0.0.1:1", "group.id": unique}
    with kafka.consumer(away) as consumer:
        kafka.setQueueTime(kafka.getMainQueue(consumer), 100)
        kafka.subscribe(consumer, unique)
        event = of_name(consumer, "Error")
        assert "127.0.0.1:1" in kafka.eventGetError(event)
        nothing = kafka.queueEvent(kafka.getPartitionQueue(consumer, unique, 0))
        assert (kafka.getEventName(nothing), kafka.eventBool(nothing)) == ("None", False)
