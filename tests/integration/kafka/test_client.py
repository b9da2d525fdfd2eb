from collections.abc import Callable

import pytest
from confluent_kafka import Producer as RawProducer

from penstock.config import Connection
from penstock.errors import ConfigError, RecordError, TerminalError, TransientError
from penstock.kafka import Admin, Consumer, Position, Producer
from penstock.kafka.consuming.loops import read_span, read_to_end
from penstock.record import Record
from penstock.testing import eventually

NewTopic = Callable[..., str]


def values(batches: object) -> list[bytes]:
    return [record.value for batch in batches for record in batch]  # type: ignore[attr-defined]


def filled(connection: Connection, topic: str, count: int, partition: int = 0) -> None:
    with Producer(connection) as producer:
        for number in range(count):
            producer.produce(
                topic, value=str(number), partition=partition, timestamp=1000 + number * 1000
            )


def test_a_record_comes_back_as_it_was_written(connection: Connection, new_topic: NewTopic) -> None:
    topic = new_topic(2)
    with Producer(connection) as producer:
        producer.produce(
            topic,
            b"k",
            b"\x00\xff",
            partition=1,
            headers=[("a", b"1"), ("a", None)],
            timestamp=1234,
        )
        producer.produce(topic, partition=1, timestamp=5)
    assert producer.delivered == 2
    with Consumer(connection) as consumer:
        consumer.assign({(topic, 1): 0})
        records = [consumer.poll(20), consumer.poll(20)]
    assert records == [
        Record.of(topic, 1, 0, b"k", b"\x00\xff", 1234, (("a", b"1"), ("a", None))),
        Record.of(topic, 1, 1, None, None, 5),
    ]


def test_the_same_key_goes_to_the_same_partition(
    admin: Admin, connection: Connection, new_topic: NewTopic
) -> None:
    topic = new_topic(4)
    with Producer(connection) as producer:
        for number in range(40):
            producer.produce(topic, key="same", value=str(number))
    assert sorted(admin.latest(admin.partitions([topic])).values()) == [0, 0, 0, 40]


def test_a_timestamp_that_librdkafka_would_not_write_is_refused(connection: Connection) -> None:
    with Producer(connection) as producer, pytest.raises(RecordError, match="timestamp 0"):
        producer.produce("t", value="x", timestamp=0)


def test_a_full_queue_slows_the_caller_and_drops_nothing(
    admin: Admin, connection: Connection, new_topic: NewTopic
) -> None:
    topic = new_topic()
    small = {"queue.buffering.max.messages": 10, "linger.ms": 0}
    with Producer(connection, **small) as producer:
        for number in range(1000):
            producer.produce(topic, value=str(number))
    assert producer.delivered == 1000
    assert admin.latest([(topic, 0)]) == {(topic, 0): 1000}


def test_a_queue_that_stays_full_is_an_error_that_says_so() -> None:
    unreachable = Connection.from_config({"bootstrap.servers": "127.0.0.1:1"})
    producer = Producer(unreachable, queue_timeout=0.2, **{"queue.buffering.max.messages": 1})
    producer.produce("t", value="1")
    with pytest.raises(TransientError, match=r"queue is full .*127.0.0.1:1"):
        producer.produce("t", value="2")


def test_a_delivery_that_fails_is_raised_by_flush(
    connection: Connection, new_topic: NewTopic
) -> None:
    topic = new_topic(**{"max.message.bytes": "100"})
    producer = Producer(connection)
    producer.produce(topic, value="x")
    producer.flush()
    producer.produce(topic, value="x" * 1000)
    with pytest.raises(TerminalError, match=f"1 records were not delivered.*{topic}"):
        producer.flush()
    assert (producer.delivered, producer.failed) == (1, 1)


def test_an_error_in_the_block_is_not_hidden_and_what_was_handed_over_arrives(
    admin: Admin, connection: Connection, new_topic: NewTopic
) -> None:
    topic = new_topic()
    with pytest.raises(KeyError), Producer(connection) as producer:
        producer.produce(topic, value="1")
        raise KeyError
    assert admin.latest([(topic, 0)]) == {(topic, 0): 1}


def test_no_record_in_time_is_none(connection: Connection, new_topic: NewTopic) -> None:
    with Consumer(connection) as consumer:
        consumer.assign({(new_topic(), 0): 0})
        assert consumer.poll(0.1) is None


def test_subscribe_without_a_group_is_refused(connection: Connection) -> None:
    with Consumer(connection) as consumer, pytest.raises(ConfigError, match="group"):
        consumer.subscribe("t")


def test_the_group_may_stand_in_the_connection(
    connection: Connection, group: str, new_topic: NewTopic
) -> None:
    settings = connection.librdkafka() | {"group.id": group, "auto.offset.reset": "earliest"}
    topic = new_topic()
    filled(connection, topic, 2)
    with Consumer(Connection.from_config(settings)) as consumer:
        assert consumer.group == group
        consumer.subscribe(topic)
        assert values(read_to_end(consumer)) == [b"0", b"1"]


def test_a_span_ends_at_its_stop_offset_while_more_records_arrive(
    connection: Connection, new_topic: NewTopic
) -> None:
    topic = new_topic(2)
    filled(connection, topic, 10, partition=0)
    filled(connection, topic, 3, partition=1)
    start, stop = {(topic, 0): 2, (topic, 1): 0}, {(topic, 0): 5, (topic, 1): 3}
    with Consumer(connection) as consumer:
        read = values(read_span(consumer, start, stop, max_records=4))
    assert sorted(read) == [b"0", b"1", b"2", b"2", b"3", b"4"]


def test_a_span_without_records_ends_at_once(connection: Connection, new_topic: NewTopic) -> None:
    topic = new_topic()
    with Consumer(connection) as consumer:
        assert values(read_span(consumer, {(topic, 0): 0}, {(topic, 0): 0})) == []


def test_the_marker_of_a_transaction_at_the_end_does_not_stop_a_span_from_ending(
    admin: Admin, connection: Connection, new_topic: NewTopic
) -> None:
    topic = new_topic()
    raw = RawProducer(connection.librdkafka("producer", **{"transactional.id": topic}))
    raw.init_transactions(20)
    raw.begin_transaction()
    raw.produce(topic, b"in a transaction")
    raw.commit_transaction(20)
    stop = {(topic, 0): 2}  # the record and the marker, which the broker writes a moment later
    eventually(lambda: admin.latest([(topic, 0)]) == stop)
    with Consumer(connection) as consumer:
        assert values(read_span(consumer, {(topic, 0): 0}, stop)) == [b"in a transaction"]


@pytest.mark.parametrize(
    ("text", "offset"),
    [
        ("earliest", 0),
        ("latest", 10),
        ("4", 4),
        ("99", 10),
        ("-3", 7),
        ("-99", 0),
        ("1970-01-01T00:00:05Z", 4),
        ("@5500", 5),
    ],
)
def test_a_position_means_an_offset_that_is_there(
    admin: Admin, connection: Connection, new_topic: NewTopic, text: str, offset: int
) -> None:
    topic = new_topic()
    filled(connection, topic, 10)
    assert Position.parse(text).offsets(admin, [(topic, 0)]) == {(topic, 0): offset}


def test_a_group_goes_on_where_it_committed(
    connection: Connection, group: str, new_topic: NewTopic
) -> None:
    topic = new_topic()
    filled(connection, topic, 6)
    earliest = {"auto.offset.reset": "earliest"}
    with Consumer(connection, group, **earliest) as consumer:
        consumer.subscribe([topic])
        assert consumer.poll(20).offset == 0  # type: ignore[union-attr]
        consumer.commit({(topic, 0): 4})
    with Consumer(connection, group, **earliest) as consumer:
        consumer.subscribe([topic])
        assert values(read_to_end(consumer)) == [b"4", b"5"]
