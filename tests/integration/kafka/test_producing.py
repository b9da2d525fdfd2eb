"""What `produce` promises, of the producer and of its asyncio twin."""

import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from penstock.config import Connection
from penstock.errors import ConfigError, FormatError, QueueFullError, RecordError, TerminalError
from penstock.kafka import Admin
from penstock.record import Record
from penstock.testing import eventually, read_all

from .twins import Twins

NewTopic = Callable[..., str]
AWAY = Connection(brokers="127.0.0.1:1")


def test_a_delivery_tells_topic_partition_and_offset(
    twins: Twins, connection: Connection, new_topic: NewTopic
) -> None:
    topic = new_topic(3)
    with twins.producer(connection) as producer:
        deliveries = [producer.produce(topic, "k", str(n), partition=2) for n in range(3)]
        found = [twins.wait(delivery) for delivery in deliveries]
    assert [(r.topic, r.partition, r.offset) for r in found] == [(topic, 2, n) for n in range(3)]
    assert all(delivery.done() for delivery in deliveries)
    assert (producer.delivered, producer.failed, len(producer)) == (3, 0, 0)


def test_a_delivery_without_a_waiter_arrives_nevertheless(
    twins: Twins, connection: Connection, new_topic: NewTopic
) -> None:
    topic = new_topic()
    with twins.producer(connection) as producer:
        for number in range(100):
            producer.produce(topic, None, str(number))
    assert [r.value for r in read_all(connection, topic)] == [str(n).encode() for n in range(100)]


def test_a_callback_receives_the_record_and_the_error(
    twins: Twins, connection: Connection, new_topic: NewTopic
) -> None:
    topic = new_topic(**{"max.message.bytes": "200"})
    reported: list[tuple[Any, Record]] = []
    with twins.producer(connection) as producer:
        producer.produce(topic, "k", "v", on_delivery=lambda *what: reported.append(what))
        producer.flush()
        producer.produce(topic, "k", "v" * 1000, on_delivery=lambda *what: reported.append(what))
    (fine, record), (error, _) = reported
    assert (fine, record.topic, record.key, record.offset) == (None, topic, b"k", 0)
    assert isinstance(error, RecordError)
    assert "MSG_SIZE_TOO_LARGE" in str(error)
    assert producer.failed == 1


def test_an_error_that_was_waited_for_is_not_raised_again_by_flush(
    twins: Twins, connection: Connection, new_topic: NewTopic
) -> None:
    topic = new_topic(**{"max.message.bytes": "200"})
    with twins.producer(connection) as producer:
        delivery = producer.produce(topic, "k", "v" * 1000)
        with pytest.raises(RecordError, match="make the record smaller"):
            twins.wait(delivery)


def test_flush_raises_once_for_unreported_failures(
    twins: Twins, connection: Connection, new_topic: NewTopic
) -> None:
    topic = new_topic(**{"max.message.bytes": "200"})
    with twins.producer(connection) as producer:
        producer.produce(topic, "k", "v" * 1000)
        with pytest.raises(TerminalError, match="1 records were not delivered"):
            producer.flush()
        producer.flush()


@pytest.mark.parametrize(
    ("format", "value", "written"),
    [
        ("PLAIN", "text", b"text"),
        ("PLAIN", b"\x00\xff", b"\x00\xff"),
        ("JSON", 1, b"[1]"),
        ("JSON", [1, 2, 3], b"[1,2,3]"),
        ("JSON", {"a": 1}, b'{"a":1}'),
        ("JSON", pa.table({"c1": [1, 2], "c2": ["a", "b"]}), b'{"c1":[1,2],"c2":["a","b"]}'),
        ("DOLPHINDB", 7, bytes.fromhex("0500 0700000000000000")),
        ("long", 7, b"\x00\x00\x00\x00\x00\x00\x00\x07"),
    ],
)
def test_a_value_is_written_in_its_format(
    twins: Twins,
    connection: Connection,
    new_topic: NewTopic,
    format: str,
    value: Any,
    written: bytes,
) -> None:
    topic = new_topic()
    with twins.producer(connection) as producer:
        producer.produce(topic, "k", value, format)
    assert [record.value for record in read_all(connection, topic)] == [written]


def test_the_producers_own_formats_serve_where_the_call_names_none(
    twins: Twins, connection: Connection, new_topic: NewTopic
) -> None:
    topic = new_topic()
    with twins.producer(connection, format="json", key_format="long") as producer:
        producer.produce(topic, 1, {"a": 1})
        producer.produce(topic, 1, "text", format="plain")
        producer.produce(topic, 1, None)
    found = [(record.key, record.value) for record in read_all(connection, topic)]
    key = b"\x00\x00\x00\x00\x00\x00\x00\x01"
    assert found == [(key, b'{"a":1}'), (key, b"text"), (key, None)]


def test_a_whole_number_as_key_is_sent_as_text(
    twins: Twins, connection: Connection, new_topic: NewTopic
) -> None:
    topic = new_topic()
    with twins.producer(connection) as producer:
        producer.produce(topic, 42, "v")
    assert [record.key for record in read_all(connection, topic)] == [b"42"]


def test_a_value_that_needs_a_format_says_so(twins: Twins) -> None:
    with pytest.raises(FormatError, match=r"value list: without a format .* give format='json'"):
        twins.producer(AWAY).produce("t", "k", [1, 2])


def test_headers_and_timestamp_are_written(
    twins: Twins, connection: Connection, new_topic: NewTopic
) -> None:
    topic = new_topic()
    with twins.producer(connection) as producer:
        producer.produce(topic, "k", "v", headers={"a": "1", "b": None}, timestamp=1234)
    assert read_all(connection, topic) == [
        Record.of(topic, 0, 0, b"k", b"v", 1234, (("a", b"1"), ("b", None)))
    ]


def test_the_same_key_stays_in_one_partition_and_no_key_spreads(
    twins: Twins, connection: Connection, admin: Admin, new_topic: NewTopic
) -> None:
    keyed, free = new_topic(4), new_topic(4)
    # Without lingering each record without a key chooses for itself.
    with twins.producer(connection, sticky_partitioning_linger_ms=0) as producer:
        for number in range(400):
            producer.produce(keyed, "same", str(number))
            producer.produce(free, None, str(number))
    assert sorted(admin.latest(admin.partitions([keyed])).values()) == [0, 0, 0, 400]
    assert min(admin.latest(admin.partitions([free])).values()) > 50


def test_a_partitioner_of_the_users_own_chooses(
    twins: Twins, connection: Connection, new_topic: NewTopic
) -> None:
    topic = new_topic(3)
    asked: list[tuple[str, bytes | None, int]] = []

    def by_length(topic: str, key: bytes | None, partitions: int) -> int:
        asked.append((topic, key, partitions))
        return len(key or b"") % partitions

    with twins.producer(connection, partitioner=by_length) as producer:
        for key in ("", "a", "bb", "ccc", "dd"):
            producer.produce(topic, key, key)
        producer.produce(topic, "bb", "given", partition=0)
    found = {(r.value, r.partition) for r in read_all(connection, topic)}
    assert found == {
        (b"", 0), (b"a", 1), (b"bb", 2), (b"ccc", 0), (b"dd", 2), (b"given", 0)
    }  # fmt: skip
    assert asked[3] == (topic, b"ccc", 3)


def test_a_partitioner_that_chooses_a_missing_partition_is_reported(
    twins: Twins, connection: Connection, new_topic: NewTopic
) -> None:
    topic = new_topic(2)
    with (
        twins.producer(connection, partitioner=lambda *_: 2) as producer,
        pytest.raises(ConfigError, match=r"the partitioner chose 2 .* allowed: 0 \.\. 1"),
    ):
        producer.produce(topic, "k", "v")


def test_a_full_queue_slows_the_caller_and_loses_nothing(
    twins: Twins, connection: Connection, new_topic: NewTopic
) -> None:
    topic = new_topic()
    with twins.producer(connection, queue_buffering_max_messages=10) as producer:
        for number in range(500):
            producer.produce(topic, None, str(number))
    assert [r.value for r in read_all(connection, topic)] == [str(n).encode() for n in range(500)]


def test_a_queue_that_stays_full_is_a_typed_error(twins: Twins) -> None:
    producer = twins.producer(AWAY, queue_timeout=0.3, queue_buffering_max_messages=1)
    producer.produce("t", None, "1")
    with pytest.raises(QueueFullError, match=r"queue is full and 127\.0\.0\.1:1 took .* for 0.3 s"):
        producer.produce("t", None, "2")


def test_a_vector_over_the_message_size_goes_out_in_pieces_that_are_whole(
    twins: Twins, connection: Connection, new_topic: NewTopic
) -> None:
    topic = new_topic()
    numbers = list(range(120))
    with twins.producer(connection) as producer:
        producer.sizes.message = 100
        delivery = producer.produce(topic, "k", numbers, "json")
        last = twins.wait(delivery)
        assert last.offset == len(delivery.parts) - 1 == len(delivery.results()) - 1
    records = read_all(connection, topic)
    assert [number for r in records for number in json.loads(r.value)] == numbers
    assert max(len(record.value) for record in records) <= 100
    assert {record.key for record in records} == {b"k"}
    assert len(records) > 3


@pytest.mark.by_turns
@pytest.mark.parametrize("format", ["json", "arrow", "dolphindb"])
def test_a_table_over_the_message_size_goes_out_in_rows(
    twins: Twins, connection: Connection, new_topic: NewTopic, format: str
) -> None:
    topic = new_topic()
    table = pa.table({"n": list(range(2000)), "s": [f"row {n}" for n in range(2000)]})
    with twins.producer(connection) as producer:
        producer.produce(topic, None, table, format)
    with twins.consumer(connection) as consumer:
        consumer.assign(topic, 0, 0)
        records = consumer.poll_batch(100, 3, format)
    assert len(records) > 1
    assert all(record.error is None for record in records)
    pieces = [r.value if isinstance(r.value, pa.Table) else pa.table(r.value) for r in records]
    assert pa.concat_tables(pieces).to_pydict() == table.to_pydict()


def test_a_single_value_over_the_buffer_is_a_clear_error(twins: Twins) -> None:
    producer = twins.producer(AWAY)
    producer.sizes.message = producer.sizes.buffer = 100
    with pytest.raises(
        FormatError, match="202 bytes cannot be split and is over the buffer size of 100"
    ):
        producer.produce("t", None, {"a": "x" * 194}, "json")


def test_sizes_can_be_read_and_set_and_the_message_fits_the_buffer(twins: Twins) -> None:
    sizes = twins.producer(AWAY).sizes
    assert (sizes.buffer, sizes.message) == (900_000, 10_000)
    sizes.message, sizes.buffer = 20, 100
    assert (sizes.buffer, sizes.message) == (100, 20)
    with pytest.raises(ConfigError, match=r"message size 101 is not allowed; allowed: 1 \.\. 100"):
        sizes.message = 101
    with pytest.raises(ConfigError, match="buffer size 19 is not allowed"):
        sizes.buffer = 19


def test_the_time_out_can_be_read_and_set(twins: Twins) -> None:
    producer = twins.producer(AWAY, request_timeout_ms=5000)
    assert producer.timeout == 5.0
    producer.timeout = 0.3
    assert producer.timeout == 0.3


def test_a_table_becomes_one_record_for_each_row(
    twins: Twins, connection: Connection, new_topic: NewTopic
) -> None:
    topic = new_topic(3)
    table = pa.table(
        {
            "id": [7, 8, None],
            "body": [b"a", b"b", None],
            "place": pa.array([0, 1, 2], pa.int32()),
            "time": pa.array([1000, 2000, 3000], pa.timestamp("ms", "UTC")),
        }
    )
    with twins.producer(connection) as producer:
        count = producer.produce_table(
            topic, table, value="body", key="id", partition="place", timestamp="time"
        )
    assert count == 3
    assert sorted(read_all(connection, topic), key=lambda r: r.partition) == [
        Record.of(topic, 0, 0, b"7", b"a", 1000),
        Record.of(topic, 1, 0, b"8", b"b", 2000),
        Record.of(topic, 2, 0, None, None, 3000),
    ]


def test_whole_rows_become_json_objects(
    twins: Twins, connection: Connection, new_topic: NewTopic
) -> None:
    topic = new_topic()
    frame = pa.table({"id": [1, 2], "name": ["a", None]}).to_pandas()
    with twins.producer(connection) as producer:
        assert producer.produce_table(topic, frame, key="name") == 2
        assert producer.produce_table(topic, ({"id": n} for n in (3,))) == 1
    assert [(r.key, json.loads(r.value)) for r in read_all(connection, topic)] == [
        (b"a", {"id": 1, "name": "a"}),
        (None, {"id": 2, "name": None}),
        (None, {"id": 3}),
    ]


def test_a_column_that_is_not_there_is_named(twins: Twins) -> None:
    with pytest.raises(ConfigError, match=r"no column 'nme'; did you mean 'name'\?"):
        twins.producer(AWAY).produce_table("t", pa.table({"name": ["a"]}), key="nme")


def test_rows_that_are_not_delivered_are_reported_by_flush(
    twins: Twins, connection: Connection, new_topic: NewTopic
) -> None:
    topic = new_topic(**{"max.message.bytes": "200"})
    producer = twins.producer(connection)
    producer.produce_table(topic, [{"v": "x" * 1000}] * 3, value="v")
    with pytest.raises(TerminalError, match="3 records were not delivered"):
        producer.flush()


@pytest.mark.parametrize("acks", ["0", "1", "all"])
@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_compression_and_every_acks_delivers(
    connection: Connection, new_topic: NewTopic, acks: str, codec: str
) -> None:
    topic = new_topic()
    with Twins("sync").producer(connection, acks=acks, compression_type=codec) as producer:
        for number in range(50):
            producer.produce(topic, "k", f"{number:0100}")
    # With acks=0 there is no acknowledgement.
    found = eventually(lambda: (f := read_all(connection, topic)) and len(f) == 50 and f)
    assert [int(record.value) for record in found] == list(range(50))


def test_the_error_callback_hears_of_a_broker_that_is_away(twins: Twins) -> None:
    heard: list[tuple[str, str, str]] = []
    producer = twins.producer(
        AWAY, on_error=lambda *what: heard.append(what), message_timeout_ms=1000
    )
    delivery = producer.produce("t", None, "1")
    with pytest.raises(Exception, match=r"no broker answers at 127\.0\.0\.1:1"):
        twins.wait(delivery)
    assert {level for level, _, _ in heard} <= {"ERROR", "WARNING"}
    assert "_TRANSPORT" in {name for _, name, _ in heard}
    assert any("Connection refused" in message for _, _, message in heard)
