"""Queues and events of a consumer: what librdkafka's own queues promise."""

from collections.abc import Callable, Iterator

import pytest

from penstock.config import Connection
from penstock.errors import ConfigError
from penstock.kafka import Consumer, Event
from penstock.retry import wait_for
from penstock.testing import eventually, fill

NewTopic = Callable[..., str]


@pytest.fixture
def two(connection: Connection, new_topic: NewTopic) -> str:
    """A topic of two partitions: even numbers in the first, odd ones in the second."""
    topic = new_topic(2)
    fill(connection, topic, [str(number) for number in range(10)], partitions=2)
    return topic


@pytest.fixture
def consumer(connection: Connection, group: str) -> Iterator[Consumer]:
    with Consumer(connection, group, auto_offset_reset="earliest") as made:
        yield made


def test_the_consumers_queue_gives_its_records(consumer: Consumer, two: str) -> None:
    consumer.assign({(two, 0): 0})
    queue = consumer.queues.consumer
    assert eventually(lambda: len(queue) == 5)
    assert queue.poll().value == b"0"
    assert [record.value for record in queue.poll_batch(10, 0.5)] == [b"2", b"4", b"6", b"8"]
    assert (len(queue), queue.poll(0.05)) == (0, None)


def test_a_partitions_queue_takes_its_records_away_from_the_consumers(
    consumer: Consumer, two: str
) -> None:
    odd = consumer.queues.partition(two, 1)
    consumer.assign({(two, 0): 0, (two, 1): 0})
    assert [r.value for r in odd.poll_batch(5, 30)] == [b"1", b"3", b"5", b"7", b"9"]
    assert [r.value for r in consumer.poll_batch(10, 1)] == [b"0", b"2", b"4", b"6", b"8"]
    assert consumer.queues.partition(two, 1) is odd


def test_the_queue_of_a_partition_that_is_not_assigned_is_empty(
    consumer: Consumer, two: str
) -> None:
    consumer.assign({(two, 0): 0})
    queue = consumer.queues.partition(two, 1)
    assert (len(queue), queue.poll(0.2), bool(queue.event(0.1))) == (0, None, False)


def test_a_queue_can_be_forwarded_and_stopped(consumer: Consumer, two: str) -> None:
    even, odd = consumer.queues.partition(two, 0), consumer.queues.partition(two, 1)
    odd.forward_to(even)
    consumer.assign({(two, 0): 0, (two, 1): 0})
    assert eventually(lambda: len(even) == 10)
    # What is forwarded is the other queue: it has its length and its records.
    assert len(odd) == 10
    assert sorted(r.value for r in even.poll_batch(10)) == [str(n).encode() for n in range(10)]
    odd.stop_forwarding()
    consumer.seek({(two, 0): 4, (two, 1): 4})
    assert [r.value for r in odd.poll_batch(1, 30)] == [b"9"]
    assert [r.value for r in even.poll_batch(1, 30)] == [b"8"]


def test_a_queue_cannot_be_forwarded_to_itself(consumer: Consumer, two: str) -> None:
    one, other = consumer.queues.partition(two, 0), consumer.queues.partition(two, 1)
    one.forward_to(other)
    with pytest.raises(ConfigError, match="cannot be forwarded to itself"):
        other.forward_to(one)


def test_the_time_out_of_a_queue_can_be_read_and_set(consumer: Consumer) -> None:
    queue = consumer.queues.consumer
    assert queue.timeout == 1.0
    queue.timeout = 0.02
    assert queue.timeout == 0.02
    assert queue.poll() is None


def test_a_full_queue_holds_its_partition_back_and_loses_nothing(
    connection: Connection, new_topic: NewTopic, consumer: Consumer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.kafka.consuming.queues._MOST", 10)
    topic = new_topic(2)
    fill(connection, topic, [str(number) for number in range(200)], partitions=2)
    slow = consumer.queues.partition(topic, 1)
    consumer.assign({(topic, 0): 0, (topic, 1): 0})
    fast = consumer.poll_batch(100, 30)
    assert [int(record.value) for record in fast] == list(range(0, 200, 2))
    assert len(slow) <= 10 + 10
    assert [int(r.value) for r in slow.poll_batch(100, 30)] == list(range(1, 200, 2))


@pytest.fixture
def full(
    connection: Connection, new_topic: NewTopic, consumer: Consumer, monkeypatch: pytest.MonkeyPatch
) -> str:
    """A topic of 200 numbers in one partition that is held: ten wait in the consumer's queue."""
    monkeypatch.setattr("penstock.kafka.consuming.queues._MOST", 10)
    topic = new_topic()
    fill(connection, topic, [str(number) for number in range(200)])
    consumer.assign({(topic, 0): 0})
    queue = consumer.queues.consumer
    assert eventually(lambda: len(queue) >= 10)
    assert len(queue) < 30
    return topic


def numbers(consumer: Consumer, count: int, wait: float = 30) -> list[int]:
    return [int(record.value) for record in consumer.poll_batch(count, wait)]


def test_a_paused_partition_stays_paused_though_its_queue_was_full(
    consumer: Consumer, full: str
) -> None:
    first = numbers(consumer, 3)
    consumer.pause([(full, 0)])
    assert numbers(consumer, 1, 1) == []
    consumer.resume([(full, 0)])
    assert first + numbers(consumer, 197) == list(range(200))


def test_resuming_does_not_let_a_full_queue_grow(consumer: Consumer, full: str) -> None:
    queue = consumer.queues.consumer
    before = len(queue)
    consumer.resume([(full, 0)])
    assert not wait_for(lambda: len(queue) > before, within=1, every=0.05)
    assert numbers(consumer, 200) == list(range(200))


def test_a_held_partition_that_is_assigned_again_is_read(consumer: Consumer, full: str) -> None:
    consumer.unassign()
    consumer.assign({(full, 0): 0})
    assert numbers(consumer, 200) == list(range(200))


def of_name(consumer: Consumer, name: str) -> Event:
    queue = consumer.queues.main
    return eventually(lambda: (event := queue.event(0.2)).name == name and event)


def test_events_tell_of_fetch_rebalance_and_commit(consumer: Consumer, two: str) -> None:
    assert consumer.queues is consumer.queues
    consumer.subscribe(two)
    event = of_name(consumer, "Rebalance")
    assert (event.change, bool(event), event.message_count) == ("Assigned", True, 0)
    assert sorted((topic, n) for topic, n, _ in event.partitions) == [(two, 0), (two, 1)]
    assert event.table().column_names == ["topic", "partition", "offset"]
    assert event.partition is None

    fetched = of_name(consumer, "Fetch")
    (record,) = fetched.messages
    assert (fetched.message_count, fetched.error) == (1, None)
    assert fetched.partition == (two, record.partition, record.offset)

    consumer.commit_async(record)
    committed = of_name(consumer, "OffsetCommit")
    assert committed.error is None
    assert committed.partitions == [(two, record.partition, 1)]
    assert committed.table().to_pylist() == [
        {"topic": two, "partition": record.partition, "offset": 1}
    ]


def test_an_error_is_an_event_of_the_main_queue() -> None:
    with Consumer(Connection(brokers="127.0.0.1:1"), "g") as consumer:
        assert consumer.queues.main
        consumer.subscribe("t")
        event = of_name(consumer, "Error")
        assert "127.0.0.1:1" in str(event.error)
        assert (event.name, event.messages, bool(event)) == ("Error", [], True)


def test_no_event_in_time_is_one_that_is_false(consumer: Consumer, two: str) -> None:
    event = consumer.queues.partition(two, 0).event(0.05)
    assert (event.name, bool(event), event.message_count, event.error) == ("None", False, 0, None)


def test_other_events_are_dropped_by_poll(consumer: Consumer, two: str) -> None:
    assert consumer.queues.main._end is consumer.queues.consumer
    consumer.subscribe(two)
    found = consumer.poll_batch(10, 30)
    assert sorted(int(record.value) for record in found) == list(range(10))
