"""The edges of the clients: odd arguments, callbacks that raise, ends in the middle of work."""

import asyncio
import gc
import re
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from penstock.config import Connection
from penstock.errors import (
    AbortableError,
    BrokerUnavailableError,
    ConfigError,
    FormatError,
    PenstockError,
    RecordError,
    TerminalError,
    WakeupError,
)
from penstock.kafka import Admin, AsyncConsumer, AsyncProducer, Consumer, Producer
from penstock.testing import eventually, fill, read_all

from .twins import Twins

NewTopic = Callable[..., str]
UNREACHABLE = "127.0.0.1:1"


# -- what a producer is given


@pytest.mark.parametrize(
    ("wrong", "error", "says"),
    [
        ({"partition": 2**40}, ConfigError, "partition 1099511627776 is not allowed"),
        ({"partition": "0"}, ConfigError, "partition '0' is not allowed"),
        ({"partition": 1.5}, ConfigError, "partition 1.5 is not allowed"),
        ({"timestamp": 2**70}, RecordError, "cannot be written: give milliseconds"),
        ({"timestamp": 1.5}, RecordError, "timestamp 1.5 cannot be written"),
        ({"timestamp": "now"}, RecordError, "timestamp 'now' cannot be written"),
        ({"key": True}, FormatError, "key bool: without a format"),
        ({"key": 1.5}, FormatError, "key float: without a format"),
        ({"key": "\ud800"}, FormatError, "no UTF-8 form"),
        ({"value": np.int64(3)}, FormatError, "value numpy.int64: without a format"),
        ({"value": np.array([1, 2])}, FormatError, "value numpy.ndarray: without a format"),
        ({"headers": 5}, ConfigError, "headers of int are not allowed"),
        ({"headers": {"a": 5}}, ConfigError, "headers of str with int are not allowed"),
        ({"headers": {5: b"a"}}, ConfigError, "headers of int with bytes are not allowed"),
        ({"headers": [("a",)]}, ConfigError, "headers of list are not allowed"),
        ({"on_delivery": 5}, ConfigError, "on_delivery 5 is not allowed"),
        ({"topic": "a\0b"}, ConfigError, "is not allowed; allowed: the name of a topic"),
        ({"topic": 5}, ConfigError, "topic 5 is not allowed"),
    ],
    ids=str,
)
def test_a_wrong_argument_is_named_and_nothing_is_sent(
    twins: Twins,
    connection: Connection,
    wrong: dict[str, Any],
    error: type[PenstockError],
    says: str,
) -> None:
    producer = twins.producer(connection)
    with pytest.raises(error, match=says):
        producer.produce(**{"topic": "t", "key": "k", "value": "v", **wrong})
    assert (len(producer), producer.delivered) == (0, 0)


def test_keys_partitions_and_timestamps_may_be_of_numpy(
    twins: Twins, connection: Connection, new_topic: NewTopic
) -> None:
    topic = new_topic(2)
    moment = datetime(2020, 1, 1, tzinfo=timezone(timedelta(hours=9)))
    with twins.producer(connection) as producer:
        producer.produce(topic, np.int64(3), "a", partition=np.int32(1), timestamp=np.int64(5000))
        producer.produce(topic, 0, bytearray(b"b"), partition=0, timestamp=moment)
    found = {(r.key, r.value, r.partition, r.timestamp) for r in read_all(connection, topic)}
    assert found == {(b"3", b"a", 1, 5000), (b"0", b"b", 0, int(moment.timestamp()) * 1000)}


def test_every_piece_of_a_split_value_has_the_headers(
    twins: Twins, connection: Connection, new_topic: NewTopic
) -> None:
    topic = new_topic()
    with twins.producer(connection) as producer:
        producer.sizes.message = 10
        headers = iter([("a", b"1"), ("a", None)])
        producer.produce(topic, None, list(range(9)), format="json", headers=headers)
    records = read_all(connection, topic)
    assert len(records) > 1
    assert {record.headers for record in records} == {(("a", b"1"), ("a", None))}


def test_a_partitioner_gets_a_whole_number_as_the_bytes_that_are_sent(
    twins: Twins, connection: Connection, new_topic: NewTopic
) -> None:
    seen: list[bytes | None] = []

    def first(_topic: str, key: bytes | None, _count: int) -> int:
        seen.append(key)
        return 0

    topic = new_topic()
    with twins.producer(connection, partitioner=first) as producer:
        producer.produce(topic, 5, "v")
        producer.produce_table(topic, [{"k": 6, "v": "x"}], key="k", value="v")
    assert seen == [b"5", b"6"]


# -- tables


def _table_of(
    twins: Twins, connection: Connection, topic: str, rows: Any, **columns: str
) -> list[tuple[Any, ...]]:
    with twins.producer(connection) as producer:
        producer.produce_table(topic, rows, **columns)
    return [(r.key, r.value, r.timestamp) for r in read_all(connection, topic)]


def test_the_index_of_a_dataframe_is_no_column(
    twins: Twins, connection: Connection, new_topic: NewTopic
) -> None:
    frame = pd.DataFrame({"a": [1, 2]})
    found = _table_of(twins, connection, new_topic(), frame[frame.a > 1])
    assert [value for _, value, _ in found] == [b'{"a":2}']


def test_mappings_with_different_names_stay_as_they_are(
    twins: Twins, connection: Connection, new_topic: NewTopic
) -> None:
    found = _table_of(twins, connection, new_topic(), [{"a": 1}, {"b": 2}, {}])
    assert [value for _, value, _ in found] == [b'{"a":1}', b'{"b":2}', b"{}"]


def test_a_key_column_goes_through_the_key_format(
    twins: Twins, connection: Connection, new_topic: NewTopic
) -> None:
    topic = new_topic()
    with twins.producer(connection, key_format="long") as producer:
        producer.produce_table(topic, [{"k": 7, "v": "x"}], key="k", value="v")
    assert [record.key for record in read_all(connection, topic)] == [(7).to_bytes(8, "big")]


def test_a_time_without_a_zone_is_utc(
    twins: Twins, connection: Connection, new_topic: NewTopic
) -> None:
    times = pa.array([datetime(2020, 1, 1)], pa.timestamp("us"))
    rows = pa.table({"v": ["x"], "at": times})
    found = _table_of(twins, connection, new_topic(), rows, value="v", timestamp="at")
    assert found == [(None, b"x", 1_577_836_800_000)]


@pytest.mark.parametrize(
    ("rows", "columns", "error", "says"),
    [
        ([{"v": "x", "at": 0}], {"timestamp": "at"}, RecordError, "timestamp 0 cannot"),
        ([{"v": "x", "at": -5}], {"timestamp": "at"}, RecordError, "timestamp -5 cannot"),
        ([{"v": "x", "k": True}], {"key": "k"}, FormatError, "key bool"),
        ([{"v": np.float64(1)}], {}, FormatError, "value numpy.float64"),
        (None, {}, ConfigError, "rows are a table or mappings .* given: NoneType"),
        (pd.DataFrame({"v": [1, "x"]}), {}, FormatError, "different types"),
        (pa.Table.from_arrays([[1], [2]], ["v", "v"]), {}, ConfigError, "two columns of one name"),
    ],
    ids=str,
)
def test_a_row_that_cannot_be_a_message_is_named(
    twins: Twins,
    connection: Connection,
    rows: Any,
    columns: dict[str, str],
    error: type[PenstockError],
    says: str,
) -> None:
    producer = twins.producer(connection)
    with pytest.raises(error, match=says):
        producer.produce_table("t", rows, value="v", **columns)
    assert len(producer) == 0


def test_what_a_broken_off_table_has_sent_is_counted(connection: Connection) -> None:
    producer = Producer(connection, queue_buffering_max_messages=5, queue_timeout=0, linger_ms=9000)
    with pytest.raises(PenstockError, match="the local queue is full"):
        producer.produce_table("t", [{"v": str(number)} for number in range(9)], value="v")
    assert (len(producer), producer.delivered) == (5, 0)


def test_an_error_after_a_full_queue_is_ours_too(
    connection: Connection, new_topic: NewTopic
) -> None:
    topic = new_topic()
    producer = Producer(connection, queue_buffering_max_messages=1, linger_ms=300)
    producer.produce(topic, None, "v").result(30)
    producer.produce(topic, None, "fills the queue")
    with pytest.raises(ConfigError, match="_UNKNOWN_PARTITION"):
        producer.produce(topic, None, "v", partition=77)
    producer.close()


# -- callbacks that raise, and deliveries


def _broken(*reported: object) -> None:
    raise ValueError("mine")


def test_what_a_delivery_callback_raises_comes_out_of_flush_and_costs_nothing(
    twins: Twins, connection: Connection, new_topic: NewTopic
) -> None:
    topic = new_topic()
    with twins.producer(connection) as producer:
        producer.produce(topic, None, "a", on_delivery=_broken)
        assert twins.wait(producer.produce(topic, None, "b")).offset == 1
        with pytest.raises(ValueError, match="mine"):
            producer.flush()
        producer.produce(topic, None, "c")
    assert [record.value for record in read_all(connection, topic)] == [b"a", b"b", b"c"]


def test_two_tasks_can_await_one_delivery(connection: Connection, new_topic: NewTopic) -> None:
    topic = new_topic()

    async def write() -> list[int]:
        async with AsyncProducer(connection, linger_ms=100) as producer:
            delivery = await producer.produce(topic, None, "v")

            async def offset() -> int:
                return (await delivery).offset

            return await asyncio.wait_for(asyncio.gather(offset(), offset()), 30)

    assert asyncio.run(write()) == [0, 0]


def test_a_loop_may_end_while_a_record_is_on_its_way(
    connection: Connection, new_topic: NewTopic
) -> None:
    topic = new_topic()
    producer = Producer(connection, linger_ms=500)

    async def give_up() -> None:
        delivery = producer.produce(topic, None, "v")
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(delivery._awaited(), 0.05)

    asyncio.run(give_up())
    producer.close()
    assert [record.value for record in read_all(connection, topic)] == [b"v"]


class _Large:
    """Stands for what a caller has in its hands when an error comes up."""


def test_an_error_that_was_raised_holds_nothing_for_ever() -> None:
    kept: list[weakref.ref[_Large]] = []

    def fail() -> None:
        large = _Large()
        kept.append(weakref.ref(large))
        producer = Producer(Connection(bootstrap_servers=UNREACHABLE), message_timeout_ms=100)
        producer.produce("t", None, "v").result(30)

    with pytest.raises(BrokerUnavailableError) as caught:
        fail()
    del caught
    gc.collect()
    assert kept[0]() is None


def test_a_callback_may_hold_its_own_delivery(connection: Connection, new_topic: NewTopic) -> None:
    def write() -> weakref.ref[_Large]:
        large, sent = _Large(), []
        with Producer(connection) as producer:
            reported = lambda *_: (large, sent)  # noqa: E731
            sent.append(producer.produce(topic, None, "v", on_delivery=reported))
        return weakref.ref(large)

    topic = new_topic()
    held = write()
    gc.collect()
    assert held() is None


def test_a_producer_and_its_classes_are_freed(connection: Connection, new_topic: NewTopic) -> None:
    def use() -> list[weakref.ref[Any]]:
        with Producer(connection) as producer:
            producer.produce(new_topic(), None, "v").result(30)
        return [weakref.ref(producer), weakref.ref(producer._sender.receipt)]

    held = use()
    gc.collect()
    assert [each() for each in held] == [None, None]


# -- ends


def test_a_closed_producer_says_so(
    twins: Twins, connection: Connection, new_topic: NewTopic
) -> None:
    topic = new_topic()
    with twins.producer(connection) as producer:
        delivery = producer.produce(topic, None, "v")
        producer.close()
        for call in (
            lambda: producer.produce(topic, None, "late"),
            lambda: producer.produce(topic, None, ["late"], format="json"),
            lambda: producer.produce_table(topic, [{"v": "late"}]),
        ):
            with pytest.raises(TerminalError, match=r"this producer is closed .* make a new one"):
                call()
    assert (twins.wait(delivery).offset, len(producer), producer.delivered) == (0, 0, 1)
    assert [record.value for record in read_all(connection, topic)] == [b"v"]


def test_a_closed_consumer_says_so(
    twins: Twins, connection: Connection, new_topic: NewTopic, group: str
) -> None:
    topic = new_topic()
    with twins.consumer(connection, group) as consumer:
        consumer.assign(topic, 0, 0)
        consumer.close()
        for call in (
            lambda: consumer.poll(0.01),
            lambda: consumer.poll_table(10, 0.01),
            lambda: next(iter(consumer)),
            lambda: consumer.commit({(topic, 0): 1}),
            lambda: consumer.assign(topic, 0, 0),
            lambda: consumer.subscribe(topic),
            lambda: consumer.seek({(topic, 0): 0}),
            lambda: consumer.position([(topic, 0)]),
            lambda: consumer.watermarks([(topic, 0)]),
            lambda: consumer.assignment,
            lambda: consumer.member_id,
        ):
            with pytest.raises(TerminalError, match=r"this consumer is closed .* make a new one"):
                call()


def test_a_polling_task_gets_an_error_when_its_consumer_is_closed(
    connection: Connection, new_topic: NewTopic
) -> None:
    async def read() -> None:
        consumer = AsyncConsumer(connection)
        consumer.assign(new_topic(), 0, 0)
        waiting = asyncio.create_task(consumer.poll(60))
        await asyncio.sleep(0)
        await consumer.close()
        with pytest.raises(TerminalError, match="this consumer is closed"):
            await waiting

    asyncio.run(read())


# -- what a consumer is asked for


@pytest.fixture
def ten(connection: Connection, new_topic: NewTopic) -> str:
    """A topic with ten records in one partition."""
    topic = new_topic()
    fill(connection, topic, [str(number) for number in range(10)])
    return topic


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda c: c.poll_batch(0, 0.01), "a batch of 0 records is not allowed"),
        (lambda c: c.poll_table(-1, 0.01), "a batch of -1 records is not allowed"),
        (lambda c: c.assign("t"), "give the partitions too"),
        (lambda c: c.assign("t", "x", 0), "is not a partition; allowed: topic and number"),
        (lambda c: c.assign("t", 0, "x"), "offset 'x' is not allowed"),
        (lambda c: c.assign({"trades": 0}), "'trades' is not a partition"),
        (lambda c: c.pause(("t", 0)), "'t' is not a partition"),
        (lambda c: c.resume("trades"), "'trades' is not a partition"),
        (
            lambda c: c.commit([]),
            "list is not an offset; allowed: a record, or offsets by partition",
        ),
        (lambda c: c.subscribe([]), r"topics \[\] are not allowed"),
        (lambda c: c.subscribe(5), "topics 5 are not allowed"),
        (lambda c: c.subscribe(re.compile("A", re.IGNORECASE)), "the flags of .* not allowed"),
    ],
)
def test_a_wrong_question_is_named(
    twins: Twins, connection: Connection, group: str, call: Callable[[Any], Any], says: str
) -> None:
    with twins.consumer(connection, group) as consumer, pytest.raises(ConfigError, match=says):
        call(consumer)


def test_a_client_is_made_from_an_address_or_a_mapping(
    twins: Twins, connection: Connection
) -> None:
    for given in (connection.brokers, {"metadata.broker.list": connection.brokers}):
        with twins.producer(given) as producer, twins.consumer(given) as consumer:
            assert producer.connection.brokers == consumer.connection.brokers == connection.brokers
        with Admin(given) as admin:
            assert admin.connection.brokers == connection.brokers


def test_a_wrong_connection_type_is_reported(twins: Twins) -> None:
    for make in (twins.consumer, twins.producer):
        with pytest.raises(ConfigError, match="or 'host:port'; int was given"):
            make(9092)


def test_without_a_group_nothing_is_committed(
    twins: Twins, connection: Connection, admin: Admin, ten: str
) -> None:
    with twins.consumer(connection, enable_auto_commit=True) as consumer:
        consumer.assign(ten, 0, 0)
        assert consumer.poll(30).offset == 0
        for call in (consumer.commit, consumer.committed, consumer.commit_async):
            with pytest.raises(ConfigError, match="need a consumer group"):
                call()
    assert (ten, 0) not in admin.committed("penstock-without-group")


def test_without_an_offset_an_assignment_begins_where_the_group_was(
    twins: Twins, connection: Connection, ten: str, group: str
) -> None:
    with twins.consumer(connection, group, auto_offset_reset="earliest") as consumer:
        consumer.assign(ten, 0)
        assert consumer.poll(30).offset == 0
        consumer.commit({(ten, 0): 7})
        consumer.assign(ten, 0)
        assert consumer.poll(30).offset == 7


def test_a_negative_time_out_waits_until_a_record_or_a_wakeup_comes(
    twins: Twins, connection: Connection, ten: str
) -> None:
    with twins.consumer(connection) as consumer:
        consumer.assign(ten, 0, 9)
        assert consumer.poll(-1).offset == 9
        timer = threading.Timer(
            0.3, consumer.client.wakeup if twins.kind == "asyncio" else consumer.wakeup
        )
        timer.start()
        with pytest.raises(WakeupError):
            consumer.poll(-1)


def test_a_batch_may_be_larger_than_librdkafka_takes_at_once(
    twins: Twins, connection: Connection, ten: str
) -> None:
    with twins.consumer(connection) as consumer:
        consumer.assign(ten, 0, 0)
        assert len(consumer.poll_batch(2_000_000, 2)) == 10


def test_a_wrong_format_costs_no_record(twins: Twins, connection: Connection, ten: str) -> None:
    class Broken:
        name = "broken"

        def encode(self, value: Any, topic: str = "") -> bytes:
            raise NotImplementedError

        def decode(self, data: bytes, topic: str = "") -> Any:
            raise ValueError("mine")

    with twins.consumer(connection) as consumer:
        consumer.assign(ten, 0, 0)
        with pytest.raises(ConfigError, match="did you mean 'json'"):
            consumer.poll(30, "jsno")
        first = consumer.poll(30, Broken())
        assert (first.offset, first.value) == (0, b"0")
        with pytest.raises(FormatError, match="a format raised ValueError: mine"):
            raise first.error
        assert consumer.poll(30).offset == 1


def test_keys_that_cannot_be_keys_of_a_mapping_are_reported(
    twins: Twins, connection: Connection, new_topic: NewTopic
) -> None:
    topic = new_topic()
    fill(connection, topic, ["v"], key=lambda _: b"[1]")
    with twins.consumer(connection, key_format="json") as consumer:
        consumer.assign(topic, 0, 0)
        with pytest.raises(FormatError, match="a key cannot be one of a mapping"):
            consumer.poll_mapping(1, 30)


def test_a_seek_may_follow_an_assignment_at_once(
    twins: Twins, connection: Connection, ten: str
) -> None:
    with twins.consumer(connection) as consumer:
        for offset in (5, 6, 7):
            consumer.assign(ten, 0, 0)
            consumer.seek({(ten, 0): offset})
            assert consumer.poll(30).offset == offset


# -- callbacks, wakeups and queues of a consumer


def test_what_a_consumers_callbacks_raise_comes_out_of_poll_and_costs_no_record(
    twins: Twins, connection: Connection, ten: str, group: str
) -> None:
    settings = {"auto_offset_reset": "earliest", "on_commit": _broken}
    # The last commit may be answered by the close, which then raises too.
    with suppress(ValueError), twins.consumer(connection, group, **settings) as consumer:
        consumer.subscribe(ten, on_assigned=_broken)
        found: list[int] = []
        raised = 0

        def read() -> bool:
            nonlocal raised
            try:
                batch = consumer.poll_batch(2, 0.1)
            except ValueError:
                raised += 1
                return False
            found.extend(record.offset for record in batch)
            if batch:
                consumer.commit_async()
            return len(found) == 10 and raised > 1

        eventually(read)
    assert found == list(range(10))


def test_a_wakeup_and_a_close_commit_nothing_that_was_not_handed_out(
    twins: Twins, connection: Connection, admin: Admin, ten: str, group: str
) -> None:
    settings = {"auto_offset_reset": "earliest", "enable_auto_commit": True}
    with twins.consumer(connection, group, **settings) as consumer:
        consumer.subscribe(ten)
        assert consumer.poll(30).offset == 0
        sync = consumer.client.sync if twins.kind == "asyncio" else consumer
        timer = threading.Timer(0.5, sync.wakeup)
        timer.start()
        with pytest.raises(WakeupError):
            consumer.poll_batch(100, 60)
        assert (len(sync._buffer.messages), consumer.at_end) == (9, set())
    assert admin.committed(group) == {(ten, 0): 1}


def test_a_wakeup_of_a_queues_poll_loses_nothing(connection: Connection, ten: str) -> None:
    with Consumer(connection) as consumer:
        consumer.assign(ten, 0, 0)
        queue = consumer.queues.partition(ten, 0)
        timer = threading.Timer(0.5, consumer.wakeup)
        timer.start()
        with pytest.raises(WakeupError):
            queue.poll_batch(100, 60)
        assert [record.offset for record in queue.poll_batch(10, 30)] == list(range(10))


def test_what_was_taken_out_of_a_queue_and_not_handed_out_is_the_place(
    connection: Connection, ten: str
) -> None:
    with Consumer(connection) as consumer:
        consumer.assign(ten, 0, 0)
        queue = consumer.queues.consumer
        timer = threading.Timer(0.5, consumer.wakeup)
        timer.start()
        with pytest.raises(WakeupError):
            consumer.poll_batch(100, 60)
        fill(connection, ten, ["10", "11"])
        assert eventually(lambda: len(queue) == 2)
        assert consumer.position() == {(ten, 0): 0}
        assert [record.offset for record in consumer.poll_batch(12, 30)] == list(range(12))


def test_a_queue_forgets_what_is_read_once_more_or_not_at_all(
    connection: Connection, ten: str
) -> None:
    with Consumer(connection) as consumer:
        consumer.assign(ten, 0, 0)
        queue = consumer.queues.partition(ten, 0)
        assert eventually(lambda: len(queue) == 10)
        consumer.seek({(ten, 0): 8})
        assert [record.offset for record in queue.poll_batch(2, 30)] == [8, 9]
        consumer.seek({(ten, 0): 3})
        assert eventually(lambda: len(queue) == 7)
        consumer.unassign()
        assert queue.poll(0.1) is None


def test_an_unread_queue_does_not_stop_the_others(
    connection: Connection, new_topic: NewTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.kafka.consuming.queues._MOST", 5)
    topic = new_topic(2)
    fill(connection, topic, [str(number) for number in range(40)], partitions=2)
    with Consumer(connection) as consumer:
        consumer.assign({(topic, 0): 0})
        odd = consumer.queues.partition(topic, 1)
        assert eventually(lambda: len(consumer.queues.consumer) >= 5)
        consumer.assign({(topic, 0): 0, (topic, 1): 0})
        found = odd.poll_batch(20, 30)
        assert [int(record.value) for record in found] == list(range(1, 40, 2))
        rest = consumer.poll_batch(20, 30)
        assert [int(record.value) for record in rest] == list(range(0, 40, 2))


def test_a_begin_that_is_cancelled_leaves_no_transaction_open(
    connection: Connection, new_topic: NewTopic, group: str
) -> None:
    topic = new_topic()

    async def write() -> None:
        async with AsyncProducer(connection, transactional_id=group) as producer:
            await producer.init_transactions()
            begun = asyncio.create_task(producer.transaction().__aenter__())
            await asyncio.sleep(0)
            begun.cancel()
            with pytest.raises(asyncio.CancelledError):
                await begun
            async with producer.transaction():
                await producer.produce(topic, None, "v")

    asyncio.run(write())
    assert [record.value for record in read_all(connection, topic)] == [b"v"]


def test_a_transaction_that_is_not_there_says_what_to_do(
    twins: Twins, connection: Connection, group: str
) -> None:
    with twins.producer(connection) as producer:
        for call in (producer.commit_transaction, producer.abort_transaction):
            with pytest.raises(ConfigError, match="give Producer"):
                call()
    with twins.producer(connection, transactional_id=group) as producer:
        producer.init_transactions()
        with pytest.raises(TerminalError, match=r"outside of a transaction \(begin one"):
            producer.produce("t", None, "v")
        with pytest.raises(TerminalError, match="committing a transaction of"):
            producer.commit_transaction()
        with producer.transaction(), pytest.raises(TerminalError, match="InTransaction"):
            producer.begin_transaction()


def test_a_transaction_with_a_failed_record_can_be_aborted_and_begun_again(
    twins: Twins, connection: Connection, new_topic: NewTopic, group: str
) -> None:
    topic, narrow = new_topic(), new_topic(**{"max.message.bytes": "200"})
    with twins.producer(connection, transactional_id=group, message_timeout_ms=5000) as producer:
        producer.begin_transaction()
        producer.produce(narrow, None, "x" * 1000)
        with pytest.raises(AbortableError, match="abort the transaction and begin it again"):
            producer.commit_transaction()
        producer.abort_transaction()
        with producer.transaction():
            producer.produce(topic, None, "kept")
    assert [record.value for record in read_all(connection, topic)] == [b"kept"]
