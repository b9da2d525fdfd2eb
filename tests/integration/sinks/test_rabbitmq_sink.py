"""Rows as messages of a real RabbitMQ: confirmed, with properties; what is refused or waited for."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Any

import pyarrow as pa
import pytest
from tests.services.rabbitmq import RabbitMq

import penstock
from penstock import Connection, Pipeline
from penstock.errors import ConfigError, TransientError
from penstock.sinks.messages import Refusal
from penstock.sinks.rabbitmq.rabbitmq_outlet import Publishing, RabbitMqOutlet
from penstock.sinks.rabbitmq.rabbitmq_sink import RabbitMqSink
from penstock.testing import eventually, fill, read_all

HEADERS = pa.list_(pa.struct({"key": pa.string(), "value": pa.binary()}))


@pytest.fixture
def queue(rabbitmq: RabbitMq, unique: str) -> str:
    rabbitmq.declare(unique)
    return unique


def publishing(rabbitmq: RabbitMq, **options: Any) -> Publishing:
    sink = RabbitMqSink(**{**rabbitmq.options, **options})
    return Publishing(
        sink.broker(), sink.exchange, sink.fixed_routing_key, sink.mandatory, sink.properties()
    )


@contextmanager
def outlet(rabbitmq: RabbitMq, **options: Any) -> Iterator[RabbitMqOutlet]:
    with publishing(rabbitmq, **options)() as opened:
        yield opened


def rows(values: list[bytes | None], **columns: Any) -> pa.RecordBatch:
    origin = {
        "_penstock_topic": pa.array(["t"] * len(values)),
        "_penstock_partition": pa.array([0] * len(values), pa.int32()),
        "_penstock_offset": pa.array(range(len(values)), pa.int64()),
    }
    return pa.record_batch({"value": pa.array(values, pa.binary()), **columns, **origin})


def send(rabbitmq: RabbitMq, batch: pa.RecordBatch, **options: Any) -> list[Refusal]:
    with outlet(rabbitmq, **options) as opened:
        return [*opened.send(batch)]


def test_every_message_is_in_the_queue_when_send_returns(rabbitmq: RabbitMq, queue: str) -> None:
    bodies = [b"%d" % n for n in range(30_000)]
    assert send(rabbitmq, rows(bodies), routing_key=queue) == []
    assert rabbitmq.depth(queue) == 30_000
    with rabbitmq.channel() as channel:
        _, properties, body = channel.basic_get(queue, auto_ack=True)
    assert (body, properties.message_id, properties.delivery_mode) == (b"0", "t-0-0", 2)
    assert properties.content_type == "application/json"


def test_large_and_empty_bodies(rabbitmq: RabbitMq, queue: str) -> None:
    bodies = [None, b"", b"x" * 131_064, b"y" * 131_065, b"z" * 3_000_000]
    assert send(rabbitmq, rows(bodies), routing_key=queue, content_type="text/plain") == []
    assert [body for _, _, body in rabbitmq.drain(queue)] == [b"", *bodies[1:]]


def test_properties_and_headers_come_from_columns(rabbitmq: RabbitMq, queue: str) -> None:
    headers = [[{"key": "a", "value": b"1"}, {"key": "b", "value": b"\xff"}], [], None]
    batch = rows(
        [b"0", b"1", b"2"],
        headers=pa.array(headers, HEADERS),
        message_id=pa.array(["m0", "m1", None]),
        correlation_id=pa.array(["c0", None, "ä"]),
        priority=pa.array([1, None, 200], pa.int32()),
        expiration=pa.array(["60000", None, None]),
        timestamp=pa.array([1_700_000_000, None, 5], pa.int64()),
        type=pa.array(["order", None, None]),
    )
    fixed = {"type": "other", "priority": 7, "app_id": "penstock", "expiration": "10m"}
    assert send(rabbitmq, batch, routing_key=queue, persistent=False, **fixed) == []
    found = [properties for _, properties, _ in rabbitmq.drain(queue)]
    assert [each.headers for each in found] == [{"a": "1", "b": b"\xff"}, {}, None]
    assert [each.message_id for each in found] == ["m0", "m1", None]
    assert [each.correlation_id for each in found] == ["c0", None, "ä"]
    assert [each.priority for each in found] == [1, 7, 200]
    assert [each.expiration for each in found] == ["60000", "600000", "600000"]
    assert [each.timestamp for each in found] == [1_700_000_000, None, 5]
    assert [each.type for each in found] == ["order", "other", "other"]
    assert {(each.app_id, each.delivery_mode) for each in found} == {("penstock", 1)}


def test_routing_keys_of_rows_and_messages_that_no_queue_gets(
    rabbitmq: RabbitMq, unique: str
) -> None:
    with rabbitmq.channel() as channel:
        channel.exchange_declare(unique, "topic")
        channel.queue_declare(unique)
        channel.queue_bind(unique, unique, "good.*")
    keys = ["good.a", "bad.b", None, "good.c", "k" * 300, "bad.b"]
    batch = rows([b"%d" % n for n in range(6)], routing_key=pa.array(keys))
    refused = send(rabbitmq, batch, exchange=unique, routing_key_column="r")
    assert [body for _, _, body in rabbitmq.drain(unique)] == [b"0", b"3"]
    assert sorted((each.row, each.error_type) for each in refused) == [
        (1, "UnroutableError"),
        (2, "WrongValueError"),
        (4, "WrongValueError"),
        (5, "UnroutableError"),
    ]
    reasons = {each.row: each.error for each in refused}
    assert reasons[1].startswith("312 NO_ROUTE")
    assert "the routing key 'bad.b'" in reasons[1]
    assert "the routing key is null" in reasons[2]
    assert "the routing key has 300 bytes, and AMQP allows 255" in reasons[4]


def test_without_mandatory_what_no_queue_gets_is_dropped(rabbitmq: RabbitMq, unique: str) -> None:
    assert send(rabbitmq, rows([b"x"]), routing_key=f"{unique}.missing", mandatory=False) == []


def test_many_returned_messages_are_each_found(rabbitmq: RabbitMq, queue: str) -> None:
    keys = [queue if n % 3 else f"{queue}.none" for n in range(9_000)]
    batch = rows([b"same"] * 9_000, routing_key=pa.array(keys))
    refused = send(rabbitmq, batch, routing_key_column="r")
    assert sorted(each.row for each in refused) == [*range(0, 9_000, 3)]
    assert rabbitmq.depth(queue) == 6_000


def test_a_message_for_which_the_server_closes_the_channel_is_found_and_refused(
    rabbitmq: RabbitMq, queue: str
) -> None:
    expiration = [None] * 200
    expiration[77], expiration[150] = "soon", "-5"
    batch = rows([b"%d" % n for n in range(200)], expiration=pa.array(expiration, pa.string()))
    refused = send(rabbitmq, batch, routing_key=queue)
    assert sorted(each.row for each in refused) == [77, 150]
    assert all("expiration" in each.error for each in refused)
    # At least once: what was on its way when the channel was closed may have been sent again.
    found = {int(body) for _, _, body in rabbitmq.drain(queue)}
    assert found == {*range(200)} - {77, 150}


def test_a_full_queue_is_waited_for(rabbitmq: RabbitMq, unique: str) -> None:
    rabbitmq.declare(unique, **{"x-max-length": 5, "x-overflow": "reject-publish"})
    with pytest.raises(
        TransientError, match=r"did not take \d+ messages \(nack\): a queue is full"
    ):
        send(rabbitmq, rows([b"x"] * 50), routing_key=unique)


def test_a_missing_exchange_is_a_mistake(rabbitmq: RabbitMq, unique: str) -> None:
    with pytest.raises(ConfigError, match=f"no exchange '{unique}' in vhost '/'; declare it first"):
        send(rabbitmq, rows([b"x"]), exchange=unique)


def test_a_blocked_connection_is_waited_for(rabbitmq: RabbitMq, queue: str) -> None:
    rabbitmq.control("set_vm_memory_high_watermark", "0.000001")
    try:
        with outlet(rabbitmq, routing_key=queue) as opened:
            sending = Thread(target=lambda: [*opened.send(rows([b"x"] * 10))])
            sending.start()
            eventually(lambda: opened._connection.blocked is not None)
            assert sending.is_alive()
            rabbitmq.control("set_vm_memory_high_watermark", "0.4")
            eventually(lambda: not sending.is_alive())
    finally:
        rabbitmq.control("set_vm_memory_high_watermark", "0.4")
    eventually(lambda: rabbitmq.depth(queue) == 10)


# -- pipelines


@pytest.fixture
def numbers(
    connection: Connection, rabbitmq: RabbitMq, topic: Any, pipeline: Any, queue: str
) -> Callable[..., Pipeline]:
    def make(count: int = 300, schema: str = "n int", **options: Any) -> Pipeline:
        fill(connection, topic(), [{"n": n} for n in range(count)], partitions=2)
        return pipeline(
            source={"kafka": topic()},
            decode={"json": {"schema": schema}},
            steps=options.pop("steps", []),
            sink={"rabbitmq": {**rabbitmq.options, "routing_key": queue, **options}},
            restart={"wait": "100ms", "longest": "1s"},
        )

    return make


def run_once(definition: Pipeline) -> Any:
    with penstock.start(definition, once=True) as running:
        assert running.wait(240)
        return running.progress()


def test_rows_of_a_topic_are_messages_with_the_place_of_their_record_as_id(
    rabbitmq: RabbitMq, numbers: Callable[..., Pipeline], queue: str, topic: Any
) -> None:
    progress = run_once(numbers())
    assert (progress.rows, progress.failed) == (300, 0)
    found = rabbitmq.drain(queue)
    assert Counter(json.loads(body)["n"] for _, _, body in found) == dict.fromkeys(range(300), 1)
    ids = {properties.message_id for _, properties, _ in found}
    assert len(ids) == 300
    assert all(each.startswith(f"{topic()}-") for each in ids)


def test_columns_that_route_and_rows_that_are_refused(
    rabbitmq: RabbitMq,
    connection: Connection,
    numbers: Callable[..., Pipeline],
    queue: str,
    unique: str,
) -> None:
    query = (
        f"SELECT n, IF(n % 100 = 7, 'nowhere-{unique}', '{queue}') AS target, n % 5 AS urgent, "
        "array(named_struct('key', 'n', 'value', CAST(CAST(n AS STRING) AS BINARY))) AS extra, "
        "CAST(n AS STRING) AS text FROM rows"
    )
    definition = numbers(
        steps=[{"sql": query}],
        routing_key_column="target",
        priority_column="urgent",
        headers="extra",
        value="text",
        message_id_column="n",
    )
    progress = run_once(definition)
    assert (progress.rows, progress.failed) == (297, 3)
    found = {int(body): properties for _, properties, body in rabbitmq.drain(queue)}
    assert found.keys() == {n for n in range(300) if n % 100 != 7}
    assert (found[13].priority, found[13].message_id) == (3, "13")
    assert (found[13].headers, found[13].content_type) == ({"n": "13"}, None)
    letters = read_all(connection, f"{unique}.dead-letters")
    assert sorted(json.loads(each.value)["n"] for each in letters) == [7, 107, 207]
    assert b"312 NO_ROUTE" in dict(letters[0].headers)["penstock.error"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"exchange": "no-such-exchange"}, "no exchange 'no-such-exchange' in vhost '/'; declare"),
        ({"routing_key": "no-such-queue"}, "no queue 'no-such-queue' in vhost '/'; declare it"),
        ({"password": "wrong"}, "refuses the user 'penstock' or the password"),
        ({"value": "m"}, "the sink 'rabbitmq' is configured to use the column 'm'; allowed: n"),
        ({"headers": "n"}, "'headers' of the sink 'rabbitmq' names the column 'n', which is int"),
        ({"routing_key_column": "n"}, "'routing_key_column' of the sink 'rabbitmq' names the colu"),
        ({"timestamp_column": "n"}, "it must be a timestamp; a step can make it so"),
    ],
)
def test_wrong_settings_end_the_pipeline_before_a_record_is_read(
    numbers: Callable[..., Pipeline], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        run_once(numbers(1, **options))
