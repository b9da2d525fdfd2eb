"""Transactions of the producer and its asyncio twin: all of it, or nothing."""

from collections.abc import Callable

import pytest

from penstock.config import Connection
from penstock.errors import ConfigError, FencedError
from penstock.kafka import Admin, Consumer, Producer
from penstock.testing import eventually, fill

from .twins import Twins

NewTopic = Callable[..., str]


def seen(connection: Connection, topic: str, isolation: str = "read_committed") -> list[bytes]:
    with Consumer(connection, isolation_level=isolation) as consumer:
        consumer.assign(topic, 0, 0)
        found: list[bytes] = []
        eventually(
            lambda: (
                found.extend(r.value for r in consumer.poll_batch(100, 0.2))
                or (topic, 0) in consumer.at_end
            )
        )
        return found


def test_a_transaction_becomes_visible_when_it_is_committed(
    twins: Twins, connection: Connection, new_topic: NewTopic, unique: str
) -> None:
    topic = new_topic()
    with twins.producer(connection, transactional_id=unique) as producer:
        with producer.transaction():
            producer.produce(topic, "k", "1")
            producer.flush()
            assert seen(connection, topic, "read_uncommitted") == [b"1"]
            assert seen(connection, topic) == []
        eventually(lambda: seen(connection, topic) == [b"1"])
        with producer.transaction():
            producer.produce(topic, "k", "2")
        eventually(lambda: seen(connection, topic) == [b"1", b"2"])


def test_a_block_that_raises_leaves_nothing_behind(
    twins: Twins, connection: Connection, new_topic: NewTopic, unique: str
) -> None:
    topic = new_topic()
    with twins.producer(connection, transactional_id=unique) as producer:
        with pytest.raises(ZeroDivisionError), producer.transaction():
            producer.produce(topic, "k", "gone")
            raise ZeroDivisionError
        with producer.transaction():
            producer.produce(topic, "k", "kept")
    eventually(lambda: seen(connection, topic) == [b"kept"])


def test_begin_commit_and_abort_by_hand(
    twins: Twins, connection: Connection, new_topic: NewTopic, unique: str
) -> None:
    topic = new_topic()
    with twins.producer(connection, transactional_id=unique) as producer:
        producer.begin_transaction()
        producer.produce(topic, "k", "gone")
        producer.abort_transaction()
        producer.begin_transaction()
        producer.produce(topic, "k", "kept")
        producer.commit_transaction()
    eventually(lambda: seen(connection, topic) == [b"kept"])


def test_a_consumers_offsets_are_part_of_the_transaction(
    twins: Twins, connection: Connection, admin: Admin, new_topic: NewTopic, group: str, unique: str
) -> None:
    source, target = new_topic(), new_topic()
    fill(connection, source, ["1", "2", "3"])
    with (
        twins.consumer(connection, group, auto_offset_reset="earliest") as consumer,
        twins.producer(connection, transactional_id=unique) as producer,
    ):
        consumer.subscribe(source)
        records = consumer.poll_batch(2, 30)
        with pytest.raises(ZeroDivisionError), producer.transaction():
            producer.send_offsets_to_transaction(consumer)
            raise ZeroDivisionError
        assert admin.committed(group) == {}
        with producer.transaction():
            for record in records:
                producer.produce(target, record.key, record.value)
            producer.send_offsets_to_transaction(consumer)
        assert eventually(lambda: admin.committed(group)) == {(source, 0): 2}
        with producer.transaction():
            producer.send_offsets_to_transaction(consumer, {(source, 0): 1})
        eventually(lambda: admin.committed(group) == {(source, 0): 1})
    eventually(lambda: seen(connection, target) == [b"1", b"2"])


def test_a_second_producer_of_the_same_name_fences_the_first(
    twins: Twins, connection: Connection, new_topic: NewTopic, unique: str
) -> None:
    topic = new_topic()
    zombie = twins.producer(connection, transactional_id=unique)
    zombie.begin_transaction()
    zombie.produce(topic, "k", "zombie")
    with twins.producer(connection, transactional_id=unique) as second:
        with second.transaction():
            second.produce(topic, "k", "second")
        with pytest.raises(FencedError, match=r"_FENCED|INVALID_PRODUCER_EPOCH"):
            zombie.commit_transaction()
    eventually(lambda: seen(connection, topic) == [b"second"])


def test_a_transaction_without_a_name_is_refused(twins: Twins, connection: Connection) -> None:
    with pytest.raises(ConfigError, match="transactional_id=NAME"):
        twins.producer(connection).begin_transaction()


def test_an_idempotent_producer_writes_in_order_without_doubles(
    connection: Connection, new_topic: NewTopic
) -> None:
    topic = new_topic()
    with Producer(connection, enable_idempotence=True, linger_ms=0) as producer:
        for number in range(1000):
            producer.produce(topic, "k", str(number))
    assert [int(value) for value in seen(connection, topic)] == list(range(1000))
