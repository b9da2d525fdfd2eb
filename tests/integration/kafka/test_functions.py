"""Functions that users of other clients know, each run as its documentation tells it.

docs/functions.md links to the tests here and in the files next to it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import confluent_kafka
import pyarrow as pa
import pytest

from penstock import Connection
from penstock.errors import NoMessageError
from penstock.kafka import Admin, Consumer, Producer, cluster_metadata
from penstock.testing import eventually, fill, read_all

NewTopic = Callable[..., str]
FROM_START = {"auto_offset_reset": "earliest"}


@pytest.fixture
def ten(connection: Connection, new_topic: NewTopic) -> str:
    """A topic of one partition with the values 0 to 9."""
    topic = new_topic()
    fill(connection, topic, [str(number) for number in range(10)])
    return topic


def test_clients_are_made_from_a_configuration_with_an_error_callback(
    connection: Connection, group: str, ten: str
) -> None:
    config = {"metadata.broker.list": connection.brokers, "group.id": group, **EARLIEST}
    reported: list[tuple[str, str, str]] = []
    with (
        Producer(
            Connection.from_config(config), on_error=lambda *what: reported.append(what)
        ) as out,
        Consumer(
            Connection.from_config(config), on_error=lambda *what: reported.append(what)
        ) as back,
    ):
        out.produce(ten, "key", "10")
        out.flush()
        back.subscribe(ten)
        assert [r.value for r in back.poll_batch(11, 30)][-1] == b"10"
        assert (back.group, reported) == (group, [])
    away = {"bootstrap.servers": "127.0.0.1:1", "group.id": group}
    with Consumer(
        Connection.from_config(away), on_error=lambda *what: reported.append(what)
    ) as lost:
        lost.subscribe(ten)
        eventually(lambda: lost.poll(0.1) or {level for level, _, _ in reported} == LEVELS)
    names = {(level, name) for level, name, _ in reported}
    assert names >= {("WARNING", "_TRANSPORT"), ("ERROR", "_ALL_BROKERS_DOWN")}
    assert all("127.0.0.1:1" in message or "brokers" in message for _, _, message in reported)


EARLIEST = {"auto.offset.reset": "earliest"}
LEVELS = {"ERROR", "WARNING"}


def test_flush_sends_everything_that_waits(connection: Connection, new_topic: NewTopic) -> None:
    topic = new_topic()
    producer = Producer(connection, linger_ms=60_000)
    for number in range(3):
        producer.produce(topic, "k", str(number))
    assert len(producer) == 3
    producer.flush()
    assert (len(producer), producer.delivered) == (0, 3)
    assert [record.value for record in read_all(connection, topic)] == [b"0", b"1", b"2"]


def test_values_sent_in_every_format_are_polled_as_they_were(
    connection: Connection, group: str, new_topic: NewTopic
) -> None:
    topic = new_topic()
    table = pa.table({"c1": [1, 2, 3], "c2": ["a", "b", "c"]})
    text = '[{"c1": 1,"c2": "a"},{"c1": 2,"c2": "b"},{"c1": 3,"c2": "c"}]'
    sent: list[tuple[Any, str]] = [
        (text, "PLAIN"),
        (1, "JSON"),
        ([1, 2, 3], "JSON"),
        (table, "JSON"),
        (table, "DOLPHINDB"),
        ({"id": 1}, "JSON"),
        (table, "DOLPHINDB"),
    ]
    with Producer(connection) as producer:
        for value, format in sent:
            producer.produce(topic, "key", value, format, 0)
    raw = [record.value for record in read_all(connection, topic)]
    assert raw[:4] == [text.encode(), b"[1]", b"[1,2,3]", b'{"c1":[1,2,3],"c2":["a","b","c"]}']

    with Consumer(connection, group, **FROM_START) as consumer:
        consumer.subscribe(topic)
        first = consumer.poll(30, "PLAIN")
        assert first is not None
        assert (first.topic, first.key, first.value, first.partition) == (topic, b"key", text, 0)
        found = consumer.poll_batch(3, 30, "JSON")
        assert [record.value for record in found] == [[1], [1, 2, 3], table.to_pydict()]
        polled = consumer.poll(30, "DOLPHINDB")
        assert polled is not None
        assert polled.value.to_pydict() == table.to_pydict()
        # Without a name, by what the bytes look like.
        detected = consumer.poll_batch(2, 30, "auto")
        assert detected[0].value == {"id": 1}
        assert detected[1].value.to_pydict() == table.to_pydict()
        assert consumer.poll(0.1) is None


def test_unassign_ends_a_subscription_and_an_assignment(
    connection: Connection, group: str, ten: str
) -> None:
    with Consumer(connection, group, **FROM_START) as consumer:
        consumer.subscribe(ten)
        assert consumer.poll(30) is not None
        consumer.unassign()
        assert consumer.assignment == set()
        consumer.unsubscribe()
        consumer.assign(ten, 0, 0)
        assert consumer.assignment == {(ten, 0)}
        consumer.unassign()
        assert consumer.assignment == set()


def test_an_assignment_and_its_offsets(connection: Connection, group: str, ten: str) -> None:
    where = (ten, 0)
    with Consumer(connection, group, **FROM_START) as consumer:
        consumer.subscribe(ten)
        assert consumer.poll(30) is not None
        # Of a consumer that only subscribed, too.
        assert consumer.assignment == {where}
        assert consumer.position([where]) == {where: 1}
        assert consumer.committed([where], timeout=30) == {}
        consumer.commit()
        assert consumer.committed([where], timeout=30) == {where: 1}


def test_stored_offsets_are_what_a_commit_by_hand_commits(
    connection: Connection, group: str, ten: str
) -> None:
    with Consumer(connection, group, enable_auto_offset_store=False) as consumer:
        consumer.assign(ten, 0, 0)
        assert len(consumer.poll_batch(5, 30)) == 5
        consumer.store_offsets({(ten, 0): 4})
        assert consumer.commit() == {(ten, 0): 4}
        assert consumer.committed() == {(ten, 0): 4}


def test_poll_gives_a_message_an_event_or_nothing(
    connection: Connection, group: str, ten: str
) -> None:
    with Consumer(connection, group) as consumer:
        consumer.assign(ten, 0, 9)
        record = consumer.poll(30)
        assert record is not None
        assert (record.value, record.error) == (b"9", None)
        assert consumer.poll(0.1) is None
        events = consumer.queues.main
        consumer.seek({(ten, 0): 8})
        for value in (b"8", b"9"):
            event = eventually(lambda: events.event(0.1))
            assert (event.name, [message.value for message in event.messages]) == ("Fetch", [value])
        consumer.commit_async({(ten, 0): 9})
        reported = eventually(lambda: consumer.queues.main.event(0.1))
        assert (reported.name, reported.partition) == ("OffsetCommit", (ten, 0, 9))
        assert not events.event(0.1)


def test_read_waits_for_a_message_and_raises_when_the_time_is_up(
    connection: Connection, group: str, ten: str
) -> None:
    with Consumer(connection, group, **FROM_START) as consumer:
        # Joining the group is an event, and no message: it is dropped.
        consumer.subscribe(ten)
        assert [consumer.read(30).value for _ in range(9)] == [b"%d" % n for n in range(9)]
        assert consumer.read(-1).value == b"9"
        with pytest.raises(NoMessageError, match=r"no message came within 0\.1 s"):
            consumer.read(0.1)


def test_close_leaves_the_group_at_once(
    connection: Connection, admin: Admin, group: str, ten: str
) -> None:
    consumer = Consumer(connection, group, session_timeout_ms=45_000, **FROM_START)
    consumer.subscribe(ten)
    assert consumer.poll(30) is not None
    assert len(admin.describe_group(group).members) == 1
    consumer.close()
    assert admin.describe_group(group).members == ()


def test_a_client_names_the_cluster_whose_metadata_is_asked_for(
    connection: Connection, admin: Admin, group: str, ten: str
) -> None:
    partition = {"id": 0, "error": "Success", "leader": 1, "replicas": [1]}
    with Producer(connection) as producer, Consumer(connection, group, **FROM_START) as consumer:
        consumer.subscribe(ten)
        assert consumer.poll(30) is not None
        assert cluster_metadata(producer)["topics"][ten] == [partition]
        reported = cluster_metadata(consumer)
    assert reported["topics"][ten] == [partition]
    assert {**reported["consumerGroups"][group], "members": None} == {
        "state": "Stable",
        "protocolType": "consumer",
        "protocol": "range",
        "error": "Success",
        "members": None,
    }
    (only,) = admin.describe_topic(ten).partitions
    assert (only.leader, only.replicas, only.earliest, only.latest) == (1, (1,), 0, 10)


def test_group_metadata_lets_a_transaction_commit_the_consumers_offsets(
    connection: Connection, admin: Admin, group: str, ten: str, unique: str
) -> None:
    settings = connection.librdkafka("producer", **{"transactional.id": unique})
    producer = confluent_kafka.Producer(settings)
    with Consumer(connection, group, **FROM_START) as consumer:
        consumer.subscribe(ten)
        assert len(consumer.poll_batch(4, 30)) == 4
        producer.init_transactions(30)
        producer.begin_transaction()
        place = confluent_kafka.TopicPartition(ten, 0, 4)
        # Any producer takes it: what it is, is librdkafka's matter.
        producer.send_offsets_to_transaction([place], consumer.group_metadata(), 30)
        producer.commit_transaction(30)
        eventually(lambda: admin.committed(group) == {(ten, 0): 4})
