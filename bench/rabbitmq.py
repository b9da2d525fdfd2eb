"""RabbitMQ in and out of Kafka: ours against programs written by hand with pika and confluent-kafka.

Both sides have the same broker and the same RabbitMQ. Spark's session is up and warm; starting a pipeline
counts. The programs by hand are simple and right: the source acknowledges after Kafka has the records,
the sink waits for confirms, in bulk (SelectConnection) or for each message (BlockingConnection).
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from itertools import count
from typing import Any

import pika
from confluent_kafka import Consumer, Producer
from tests.services.rabbitmq import PASSWORD, USER, RabbitMq

from bench.harness import GaveUpError, Result, Side, race
from penstock import Broker, Connection, Pipeline, start
from penstock.engine import spark_session
from penstock.pipeline import SparkOptions
from penstock.sinks.rabbitmq.amqp_values import write_properties
from penstock.sinks.rabbitmq.broker_options import BrokerOptions
from penstock.sinks.rabbitmq.publisher import Message, Publisher
from penstock.testing import read_all

MOST, FEWER = 200_000, 20
BATCH = 20_000
WANTED = 0.8
_numbers = count()


def run(rows: int, rounds: int) -> list[Result]:
    """Measure both ways."""
    rows = min(rows, MOST)
    with Broker() as broker, RabbitMq() as server:
        spark_session(SparkOptions())
        stage = Stage(broker.connection, server, rows)
        return [*_source(stage, rounds), *_sink(stage, rounds)]


def _source(stage: Stage, rounds: int) -> list[Result]:
    ours = Side("ours", stage.rows, stage.turn_in(stage.read_ours))
    hand = Side("by hand", stage.rows, stage.turn_in(stage.read_by_hand))
    best = race("RabbitMQ to Kafka", [ours, hand], rounds)
    return [Result("RabbitMQ to Kafka", stage.rows, best["ours"], best["by hand"], WANTED)]


def _sink(stage: Stage, rounds: int) -> list[Result]:
    few = stage.rows // FEWER
    sides = [
        Side("ours", stage.rows, stage.turn_out(stage.write_ours, stage.rows)),
        Side("by hand, bulk", stage.rows, stage.turn_out(stage.write_in_bulk, stage.rows)),
        Side("by hand, each", few, stage.turn_out(stage.write_each, few)),
    ]
    best = race("Kafka to RabbitMQ", sides, rounds)
    return [
        Result(
            f"Kafka to RabbitMQ / {side.name}",
            stage.rows,
            best["ours"],
            best[side.name],
            WANTED,
            side.rows,
        )
        for side in sides[1:]
    ]


class Stage:
    """The servers, and the work of each side."""

    def __init__(self, connection: Connection, server: RabbitMq, rows: int) -> None:
        self.rows = rows
        self._connection = connection
        self._server = server
        self._state = tempfile.mkdtemp(prefix="penstock_bench_")
        self._bodies = [
            b'{"id":%d,"customer":"c-%d","amount":12.5,"text":"%s"}' % (n, n % 977, b"x" * 60)
            for n in range(rows)
        ]
        producer = Producer({"bootstrap.servers": connection.brokers, "linger.ms": 20})
        for body in self._bodies:
            _produced(producer, "bench-out", body, None)
        producer.flush()

    def turn_in(self, work: Callable[[str], None]) -> Callable[[], float]:
        """Fill a queue, time the work, count the records."""

        def turn() -> float:
            name = f"in-{next(_numbers)}"
            self._fill(name)
            took = _timed(lambda: work(name))
            if (found := len(read_all(self._connection, name))) != self.rows:
                raise GaveUpError(f"{found:,} records instead of {self.rows:,}")
            return took

        return turn

    def turn_out(self, work: Callable[[str, int], None], rows: int) -> Callable[[], float]:
        """Make a queue, time the work, count the messages."""

        def turn() -> float:
            name = f"out-{next(_numbers)}"
            self._server.declare(name)
            took = _timed(lambda: work(name, rows))
            if (found := self._server.depth(name)) != rows:
                raise GaveUpError(f"{found:,} messages instead of {rows:,}")
            with self._server.channel() as channel:
                channel.queue_delete(name)
            return took

        return turn

    # -- RabbitMQ to Kafka

    def read_ours(self, name: str) -> None:
        """Import the queue."""
        source = {**self._server.options, "queues": name}
        self._run(
            Pipeline(name=name, source={"rabbitmq": source}, sink={"kafka": name}, **self._on)
        )

    def read_by_hand(self, name: str) -> None:
        """Consume, produce, flush, acknowledge."""
        producer = Producer(
            {
                "bootstrap.servers": self._connection.brokers,
                "linger.ms": 20,
                "enable.idempotence": True,
            }
        )
        with self._server.channel() as channel:
            channel.basic_qos(prefetch_count=BATCH)
            taken, tag = 0, 0
            for method, properties, body in channel.consume(name, inactivity_timeout=1):
                if method is None:
                    continue
                _produced(producer, name, body, properties.message_id)
                taken, tag = taken + 1, method.delivery_tag
                if taken % BATCH == 0 or taken == self.rows:
                    producer.flush()
                    channel.basic_ack(tag, multiple=True)
                if taken == self.rows:
                    break

    # -- Kafka to RabbitMQ

    def write_ours(self, name: str, _rows: int) -> None:
        """Publish the topic."""
        sink = {**self._server.options, "routing_key": name, "value": "value"}
        self._run(
            Pipeline(
                name=name,
                source={"kafka": "bench-out"},
                decode="text",
                sink={"rabbitmq": sink},
                **self._on,
            )
        )

    def write_in_bulk(self, name: str, rows: int) -> None:
        """Publish with pika's SelectConnection, as fast as it takes messages; wait for all confirms."""
        Bulk(self._server, name, self._records(rows), rows).run()

    def write_each(self, name: str, rows: int) -> None:
        """Publish with pika's BlockingConnection: it waits for the confirm of each message."""
        with self._server.channel() as channel:
            channel.confirm_delivery()
            for body in self._records(rows):
                channel.basic_publish("", name, body, _persistent(), mandatory=True)

    def _records(self, rows: int) -> Any:
        consumer = Consumer(
            {
                "bootstrap.servers": self._connection.brokers,
                "group.id": f"hand-{next(_numbers)}",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
            }
        )
        consumer.subscribe(["bench-out"])
        given = 0
        while given < rows:
            for message in consumer.consume(min(1000, rows - given), 1.0):
                given += 1
                yield message.value()
        consumer.commit(asynchronous=False)
        consumer.close()

    @property
    def _on(self) -> dict[str, Any]:
        return {"connection": self._connection, "state": self._state}

    def _run(self, pipeline: Pipeline) -> None:
        with start(pipeline, once=True) as running:
            running.wait()

    def _fill(self, name: str) -> None:
        self._server.declare(name)
        broker = BrokerOptions(**self._server.options).broker()
        with broker.connection("bench") as connection:
            publisher = Publisher(connection, "", mandatory=True)
            publisher.begin()
            for first in range(0, self.rows, BATCH):
                publisher.send(
                    [
                        Message(name, _id(first + n), body)
                        for n, body in enumerate(self._bodies[first : first + BATCH])
                    ]
                )


class Bulk:
    """A publisher with pika's callbacks: messages first, confirms as they come."""

    def __init__(self, server: RabbitMq, queue: str, records: Any, rows: int) -> None:
        self._queue, self._records, self._rows = queue, records, rows
        self._confirmed = self._sent = 0
        self._channel: Any = None
        parameters = pika.ConnectionParameters(
            server.host, server.port, "/", pika.PlainCredentials(USER, PASSWORD)
        )
        self._connection = pika.SelectConnection(parameters, on_open_callback=self._opened)

    def run(self) -> None:
        self._connection.ioloop.start()

    def _opened(self, connection: Any) -> None:
        connection.channel(on_open_callback=self._ready)

    def _ready(self, channel: Any) -> None:
        self._channel = channel
        channel.confirm_delivery(self._confirm)
        self._more()

    def _more(self) -> None:
        while self._sent < self._rows and self._sent - self._confirmed < BATCH:
            body = next(self._records)
            self._channel.basic_publish("", self._queue, body, _persistent(), mandatory=True)
            self._sent += 1
            if self._sent % 1000 == 0:
                break
        if self._sent < self._rows:
            self._connection.ioloop.call_later(0, self._more)

    def _confirm(self, frame: Any) -> None:
        method = frame.method
        if method.multiple:
            self._confirmed = max(self._confirmed, method.delivery_tag)
        else:
            self._confirmed += 1
        if self._confirmed >= self._rows:
            next(self._records, None)
            self._connection.ioloop.stop()
            self._connection.close()


def _persistent() -> pika.BasicProperties:
    return pika.BasicProperties(delivery_mode=2, content_type="application/json")


def _id(number: int) -> bytes:
    return write_properties(
        {"delivery_mode": 2, "message_id": str(number), "content_type": "application/json"}
    )


def _produced(producer: Any, topic: str, value: bytes, key: str | None) -> None:
    while True:
        try:
            producer.produce(topic, value, key)
        except BufferError:
            producer.poll(0.05)
            continue
        producer.poll(0)
        return


def _timed(work: Callable[[], None]) -> float:
    import time

    began = time.monotonic()
    work()
    return time.monotonic() - began
