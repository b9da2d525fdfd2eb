"""Topics of one cluster into another: a mirror, and a consumer with a transactional producer."""

from __future__ import annotations

import time
from itertools import count

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from bench.harness import Result, compare
from penstock import Admin, Broker, Connection, Pipeline
from penstock.engine import stop_session
from penstock.imports import start

PARTITIONS = 4
VALUE = b"x" * 200
HEADERS = {"plain": None, "headers": [("trace", b"0123456789abcdef"), ("kind", b"order")]}
# What the loop by hand writes in one transaction, as a mirror does by default.
TRANSACTION = 100_000
_numbers = count()


def run(rows: int, rounds: int) -> list[Result]:
    """Copy topics with both, once without and once with headers."""
    with Broker() as east, Broker() as west:
        try:
            return [_case(kind, east.connection, west.connection, rows, rounds) for kind in HEADERS]
        finally:
            stop_session()


def _case(kind: str, east: Connection, west: Connection, rows: int, rounds: int) -> Result:
    topic = f"orders-{kind}"
    _fill(east, topic, kind, rows)

    def ours() -> float:
        return _mirrored(east, west, topic, rows)

    def raw() -> float:
        return _by_hand(east, west, topic, rows)

    return compare(f"mirror, {kind}", ours, raw, rows=rows, rounds=rounds, wanted=0.8)


def _fill(connection: Connection, topic: str, kind: str, rows: int) -> None:
    with Admin(connection) as admin:
        admin.create_topic(topic, PARTITIONS)
    client = Producer({**connection.librdkafka("producer"), "linger.ms": 20})
    for n in range(rows):
        while True:
            try:
                headers = HEADERS[kind]
                client.produce(topic, VALUE, b"key %d" % n, n % PARTITIONS, headers=headers)
                break
            except BufferError:
                client.poll(0.1)
    client.flush()


def _mirrored(east: Connection, west: Connection, topic: str, rows: int) -> float:
    name = f"mirror-{next(_numbers)}"
    definition = Pipeline(
        name=name,
        connection=west,
        source={"mirror": {"cluster": east, "topics": [topic]}},
        sink={"kafka": f"{name}.{{topic}}"},
        delivery="exactly-once",
    )
    began = time.perf_counter()
    with start(definition, once=True) as running:
        running.wait()
    took = time.perf_counter() - began
    assert running.progress().rows == rows
    _clean(west, f"{name}.{topic}")
    return took


def _by_hand(east: Connection, west: Connection, topic: str, rows: int) -> float:
    into = f"by-hand-{next(_numbers)}.{topic}"
    with Admin(west) as admin:
        admin.create_topic(into, PARTITIONS)
    began = time.perf_counter()
    consumer = Consumer(
        {
            **east.librdkafka("consumer", group_id="by-hand"),
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "fetch.queue.backoff.ms": 5,
            "queued.min.messages": 1_000_000,
        }
    )
    producer = Producer(
        {**west.librdkafka("producer"), "transactional.id": into, "linger.ms": 20}
        | {"queue.buffering.max.messages": 200_000}
    )
    producer.init_transactions()
    consumer.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
    copied, in_transaction, ended = 0, 0, 0
    producer.begin_transaction()
    while ended < PARTITIONS:
        for message in consumer.consume(10_000, 0.1):
            error = message.error()
            if error is not None:
                assert error.code() == KafkaError._PARTITION_EOF, error
                ended += 1
                continue
            while True:
                try:
                    producer.produce(
                        into,
                        message.value(),
                        message.key(),
                        message.partition(),
                        timestamp=message.timestamp()[1],
                        headers=message.headers(),
                    )
                    break
                except BufferError:
                    producer.poll(0.1)
            copied += 1
            in_transaction += 1
        producer.poll(0)
        if in_transaction >= TRANSACTION:
            producer.commit_transaction()
            producer.begin_transaction()
            in_transaction = 0
    producer.commit_transaction()
    took = time.perf_counter() - began
    consumer.close()
    assert copied == rows
    _clean(west, into)
    return took


def _clean(connection: Connection, topic: str) -> None:
    with Admin(connection) as admin:
        admin.delete_topic(topic)
