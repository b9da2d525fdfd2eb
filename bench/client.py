"""The client against the bare library with the same settings, against its defaults, and against peers.

A bare producer loop asks for delivery reports, as ours always does: a lost record must be noticed.
The loop that asks for none stands beside it.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Iterable
from typing import Any

import confluent_kafka
import pyarrow as pa

from bench.harness import Result, Run, compare
from penstock import AsyncConsumer, AsyncProducer
from penstock.config import Connection
from penstock.kafka import Admin, Consumer, Producer

PARTITIONS = 4
BATCH = 10_000
VALUE = b"x" * 100
# What both sides of a comparison "with the same settings" use.
WRITE = {"linger.ms": 5, "queue.buffering.max.messages": 100_000}
READ = {"fetch.queue.backoff.ms": 5, "queued.min.messages": 1_000_000, "enable.auto.commit": False}
_HEADERS = pa.list_(pa.struct([("name", pa.string()), ("value", pa.binary())]))
Case = tuple[str, Run, Run, int, float | None]
_numbers = itertools.count()


def run(connection: Connection, rows: int, rounds: int) -> list[Result]:
    few = rows // 10
    with Admin(connection) as admin:
        written = _topic(admin)
        read = _topic(admin)
        small = _topic(admin)
        _fill(connection, read, rows)
        _fill(connection, small, few)
    sides = _Sides(connection, written)
    reported, silent = sides.bare_produce(rows, True), sides.bare_produce(rows, False)
    one, table = sides.produce(rows), sides.produce_table(rows)
    cases: list[Case] = [
        ("produce 100 B / bare loop", one, reported, rows, 0.9),
        ("produce 100 B / bare, no reports", one, silent, rows, None),
        ("produce_table / bare loop", table, reported, rows, 1.0),
        ("produce_table / bare, no reports", table, silent, rows, None),
        ("records / consume()", sides.records(read, rows), sides.bare_records(read, rows), rows, 0.9),
        ("Arrow / bare loop to table", sides.arrow(read, rows), sides.bare_arrow(read, rows), rows, 1.2),
        ("defaults / its defaults", sides.defaults(read, rows), sides.bare_defaults(read, rows), rows, 3),
        ("produce / kafka-python", sides.produce(few), sides.python_produce(few), few, None),
        ("read / kafka-python", sides.records(small, few), sides.python_consume(small, few), few, None),
        ("AsyncProducer / aiokafka", sides.async_produce(few), sides.aio_produce(few), few, None),
        ("AsyncConsumer / aiokafka", sides.async_read(small, few), sides.aio_read(small, few), few, None),
    ]  # fmt: skip
    return [
        compare(name, ours, raw, rows=count, rounds=rounds, wanted=wanted)
        for name, ours, raw, count, wanted in cases
    ]


def _topic(admin: Admin) -> str:
    name = f"bench-client-{next(_numbers)}"
    admin.create_topic(name, PARTITIONS)
    return name


def _fill(connection: Connection, topic: str, rows: int) -> None:
    with Producer(connection, **{"linger.ms": 50, "batch.size": 1_000_000}) as producer:
        for number in range(rows):
            producer.produce(topic, None, VALUE, partition=number % PARTITIONS)


class _Clock:
    """Counts records and gives the seconds from the first batch to the last: not the connecting."""

    def __init__(self, rows: int) -> None:
        self.left = rows
        self.began = 0.0

    def more(self, count: int) -> bool:
        """Take note of a batch; False when all have come."""
        if count and not self.began:
            self.began = time.monotonic()
        self.left -= count
        return self.left > 0

    def seconds(self) -> float:
        return time.monotonic() - self.began


class _Sides:
    """Each method gives one side of a comparison, ready to run."""

    def __init__(self, connection: Connection, topic: str) -> None:
        self.connection = connection
        self.topic = topic
        self.brokers = connection.brokers

    # -- producing

    def produce(self, rows: int) -> Run:
        def run() -> None:
            with Producer(self.connection, **WRITE) as producer:
                for _ in range(rows):
                    producer.produce(self.topic, None, VALUE)

        return run

    def bare_produce(self, rows: int, reports: bool) -> Run:
        failed: list[Any] = []

        def report(error: Any, _message: Any) -> None:
            if error is not None:
                failed.append(error)

        settings = {"on_delivery": report} if reports else {}

        def run() -> None:
            producer = confluent_kafka.Producer({"bootstrap.servers": self.brokers, **WRITE})
            for _ in range(rows):
                while True:
                    try:
                        producer.produce(self.topic, VALUE, **settings)
                        break
                    except BufferError:
                        producer.poll(0.05)
                producer.poll(0)
            producer.flush()
            assert not failed

        return run

    def produce_table(self, rows: int) -> Run:
        table = pa.table({"value": pa.array([VALUE] * rows, pa.binary())})

        def run() -> None:
            with Producer(self.connection, **WRITE) as producer:
                producer.produce_table(self.topic, table, value="value")

        return run

    # -- consuming

    def records(self, topic: str, rows: int) -> Run:
        return self._records(topic, rows, BATCH)

    def defaults(self, topic: str, rows: int) -> Run:
        return self._records(topic, rows, 1000)

    def _records(self, topic: str, rows: int, most: int) -> Run:
        def run() -> float:
            clock = _Clock(rows)
            with Consumer(self.connection) as consumer:
                consumer.assign([topic] * PARTITIONS, range(PARTITIONS), [0] * PARTITIONS)
                size = 0
                while True:
                    records = consumer.poll_batch(most)
                    for record in records:
                        size += len(record.value)
                    if not clock.more(len(records)):
                        return clock.seconds()

        return run

    def bare_records(self, topic: str, rows: int) -> Run:
        return self._bare(topic, rows, BATCH, READ)

    def bare_defaults(self, topic: str, rows: int) -> Run:
        return self._bare(topic, rows, 1000, {})

    def _bare(self, topic: str, rows: int, most: int, settings: dict[str, Any]) -> Run:
        def run() -> float:
            clock, size = _Clock(rows), 0
            consumer = self._bare_consumer(topic, settings)
            try:
                while True:
                    messages = consumer.consume(most, 1.0)
                    for message in messages:
                        if message.error() is None:
                            size += len(message.value())
                    if not clock.more(len(messages)):
                        return clock.seconds()
            finally:
                consumer.close()

        return run

    def arrow(self, topic: str, rows: int) -> Run:
        def run() -> float:
            clock = _Clock(rows)
            with Consumer(self.connection) as consumer:
                consumer.assign([topic] * PARTITIONS, range(PARTITIONS), [0] * PARTITIONS)
                while clock.more(consumer.poll_table(BATCH).num_rows):
                    pass
            return clock.seconds()

        return run

    def bare_arrow(self, topic: str, rows: int) -> Run:
        def run() -> float:
            clock = _Clock(rows)
            consumer = self._bare_consumer(topic, READ)
            try:
                while clock.more(_table(consumer.consume(BATCH, 1.0)).num_rows):
                    pass
                return clock.seconds()
            finally:
                consumer.close()

        return run

    def _bare_consumer(self, topic: str, settings: dict[str, Any]) -> Any:
        consumer = confluent_kafka.Consumer(
            {"bootstrap.servers": self.brokers, "group.id": "bench", **settings}
        )
        places = [confluent_kafka.TopicPartition(topic, n, 0) for n in range(PARTITIONS)]
        consumer.assign(places)
        return consumer

    # -- peers

    def python_produce(self, rows: int) -> Run:
        from kafka import KafkaProducer

        def run() -> None:
            producer = KafkaProducer(bootstrap_servers=self.brokers, linger_ms=5)
            for _ in range(rows):
                producer.send(self.topic, VALUE)
            producer.flush()
            producer.close()

        return run

    def python_consume(self, topic: str, rows: int) -> Run:
        from kafka import KafkaConsumer, TopicPartition

        def run() -> float:
            clock, size = _Clock(rows), 0
            consumer = KafkaConsumer(bootstrap_servers=self.brokers, enable_auto_commit=False)
            places = [TopicPartition(topic, n) for n in range(PARTITIONS)]
            consumer.assign(places)
            consumer.seek_to_beginning(*places)
            while True:
                batches = consumer.poll(timeout_ms=1000, max_records=BATCH)
                for batch in batches.values():
                    for message in batch:
                        size += len(message.value)
                if not clock.more(sum(map(len, batches.values()))):
                    break
            took = clock.seconds()
            consumer.close()
            return took

        return run

    def async_produce(self, rows: int) -> Run:
        async def write() -> None:
            async with AsyncProducer(self.connection, **WRITE) as producer:
                for _ in range(rows):
                    await producer.produce(self.topic, None, VALUE)

        return lambda: asyncio.run(write())

    def aio_produce(self, rows: int) -> Run:
        from aiokafka import AIOKafkaProducer

        async def write() -> None:
            async with AIOKafkaProducer(bootstrap_servers=self.brokers, linger_ms=5) as producer:
                for _ in range(rows):
                    await producer.send(self.topic, VALUE)
                await producer.flush()

        return lambda: asyncio.run(write())

    def async_read(self, topic: str, rows: int) -> Run:
        async def read() -> float:
            clock, size = _Clock(rows), 0
            async with AsyncConsumer(self.connection) as consumer:
                consumer.assign([topic] * PARTITIONS, range(PARTITIONS), [0] * PARTITIONS)
                async for record in consumer:
                    size += len(record.value)
                    if not clock.more(1):
                        break
            return clock.seconds()

        return lambda: asyncio.run(read())

    def aio_read(self, topic: str, rows: int) -> Run:
        from aiokafka import AIOKafkaConsumer, TopicPartition

        async def read() -> float:
            clock, size = _Clock(rows), 0
            async with AIOKafkaConsumer(bootstrap_servers=self.brokers) as consumer:
                places = [TopicPartition(topic, n) for n in range(PARTITIONS)]
                consumer.assign(places)
                await consumer.seek_to_beginning(*places)
                async for message in consumer:
                    size += len(message.value)
                    if not clock.more(1):
                        break
                return clock.seconds()

        return lambda: asyncio.run(read())


def _table(messages: Iterable[Any]) -> pa.Table:
    """What somebody would write by hand: the same columns as `poll_table`."""
    keys, values, topics, partitions, offsets, times, headers = [], [], [], [], [], [], []
    for message in messages:
        if message.error() is not None:
            continue
        keys.append(message.key())
        values.append(message.value())
        topics.append(message.topic())
        partitions.append(message.partition())
        offsets.append(message.offset())
        times.append(message.timestamp()[1])
        headers.append(message.headers() or [])
    return pa.table(
        {
            "key": pa.array(keys, pa.binary()),
            "value": pa.array(values, pa.binary()),
            "topic": pa.array(topics, pa.string()),
            "partition": pa.array(partitions, pa.int32()),
            "offset": pa.array(offsets, pa.int64()),
            "timestamp": pa.array(times, pa.timestamp("ms", "UTC")),
            "headers": pa.array(headers, _HEADERS),
        }
    )
