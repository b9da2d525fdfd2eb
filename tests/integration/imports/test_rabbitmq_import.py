"""Queues of a real RabbitMQ into topics: records, headers, refusals, and what holds when things fail."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timezone
from decimal import Decimal
from typing import Any

import pika
import pytest
from tests.services.rabbitmq import PASSWORD, RabbitMq

import penstock
from penstock import Connection, Pipeline, State
from penstock.errors import ConfigError, FencedError, PenstockError, TransientError
from penstock.imports.rabbitmq.rabbitmq_import import QueuePart, RabbitMqImport
from penstock.testing import eventually, read_all

Definition = Callable[..., Pipeline]


@pytest.fixture
def queue(rabbitmq: RabbitMq, unique: str) -> str:
    rabbitmq.declare(unique)
    return unique


@pytest.fixture
def definition(connection: Connection, rabbitmq: RabbitMq, unique: str) -> Definition:
    def make(*queues: str, into: str = unique, **options: Any) -> Pipeline:
        given = {**rabbitmq.options, "queues": [*queues], "poll": 0.1, **options}
        return Pipeline(
            name=unique,
            connection=connection,
            source={"rabbitmq": given},
            sink={"kafka": into},
            restart={"wait": "100ms", "longest": "1s"},
        )

    return make


def run_once(definition: Pipeline) -> Any:
    with penstock.start(definition, once=True) as running:
        assert running.wait(120)
        return running.progress()


def values(connection: Connection, topic: str) -> list[bytes | None]:
    return [record.value for record in read_all(connection, topic)]


def test_messages_of_classic_and_quorum_queues_are_records_and_leave_the_queues(
    connection: Connection, rabbitmq: RabbitMq, unique: str, definition: Definition
) -> None:
    kinds: dict[str, dict[str, Any]] = {
        "classic": {},
        "quorum": {"x-queue-type": "quorum"},
        "lazy": {"x-queue-mode": "lazy"},
    }
    for kind, arguments in kinds.items():
        rabbitmq.declare(f"{unique}.{kind}", **arguments)
        rabbitmq.publish(f"{unique}.{kind}", [f"{kind} {n}".encode() for n in range(2500)])
    queues = [f"{unique}.{kind}" for kind in kinds]
    progress = run_once(definition(*queues, max_records=1000, tasks_max=2))
    assert progress.rows == 7500
    found = values(connection, unique)
    assert sorted(found) == sorted(f"{k} {n}".encode() for k in kinds for n in range(2500))
    for kind, queue in zip(kinds, queues, strict=True):
        own = [value for value in found if value.startswith(kind.encode())]
        assert own == [f"{kind} {n}".encode() for n in range(2500)], "in the order of the queue"
        assert rabbitmq.depth(queue) == 0
    # Not only out of sight: they were acknowledged.
    assert run_once(definition(*queues)).rows == 0


def test_a_record_has_the_key_the_time_the_headers_and_the_properties_of_its_message(
    connection: Connection, rabbitmq: RabbitMq, queue: str, unique: str, definition: Definition
) -> None:
    headers = {
        "text": "ä",
        "bytes": b"\xff\0",
        "number": 5,
        "large": 2**40,
        "yes": True,
        "nothing": None,
        "decimal": Decimal("1.50"),
        "time": datetime(2024, 5, 6, tzinfo=timezone.utc),
        "far": 1,
        "nested": {"a": [1, "b", {"c": b"\xff"}]},
        "rabbitmq.exchange": "not this",
    }
    rabbitmq.publish(
        queue,
        [b"\0\xff{"],
        headers=headers,
        content_type="text/plain",
        correlation_id="c-1",
        timestamp=1_700_000_000,
        priority=3,
        app_id="shop",
        type="order",
        reply_to="r",
        expiration="600000",
    )
    rabbitmq.publish(queue, [b""], message_id=None, timestamp=99_999_999_999)
    run_once(definition(queue))
    first, second = read_all(connection, unique)
    assert (first.key, first.value) == (b"0", b"\0\xff{")
    assert first.timestamp == 1_700_000_000_000
    assert dict(first.headers) == {
        "text": "ä".encode(),
        "bytes": b"\xff\0",
        "number": b"5",
        "large": str(2**40).encode(),
        "yes": b"true",
        "nothing": None,
        "decimal": b"1.5",
        "time": b"2024-05-06T00:00:00Z",
        "far": b"1",
        "nested": b'{"a":[1,"b",{"c":"base64:/w=="}]}',
        "rabbitmq.content_type": b"text/plain",
        "rabbitmq.delivery_mode": b"2",
        "rabbitmq.priority": b"3",
        "rabbitmq.correlation_id": b"c-1",
        "rabbitmq.reply_to": b"r",
        "rabbitmq.expiration": b"600000",
        "rabbitmq.message_id": b"0",
        "rabbitmq.timestamp": b"1700000000",
        "rabbitmq.type": b"order",
        "rabbitmq.app_id": b"shop",
        "rabbitmq.exchange": b"",
        "rabbitmq.routing_key": queue.encode(),
        "rabbitmq.redelivered": b"false",
        "rabbitmq.queue": queue.encode(),
    }
    # An empty body is an empty value; a time in the future, which Kafka would refuse, is a header only.
    assert (second.key, second.value) == (None, b"")
    assert abs(second.timestamp / 1000 - time.time()) < 3600
    assert dict(second.headers)["rabbitmq.timestamp"] == b"99999999999"


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("correlation_id", b"c-7"),
        ("header:customer", b"42"),
        ("header:missing", None),
        ("none", None),
    ],
)
def test_the_key_is_what_the_option_names(
    rabbitmq: RabbitMq, queue: str, key: str, expected: bytes | None
) -> None:
    rabbitmq.publish(queue, [b"x"], correlation_id="c-7", headers={"customer": 42})
    source = RabbitMqImport(**rabbitmq.options, queues=queue, key=key, properties=False)
    with QueuePart(source, queue).open(None) as reader:
        (portion,) = reader.take(10)
    assert portion.records["key"].to_pylist() == [expected]
    assert portion.records["headers"].to_pylist() == [[{"key": "customer", "value": b"42"}]]


def test_messages_that_went_through_a_dead_letter_exchange_say_why(
    connection: Connection, rabbitmq: RabbitMq, queue: str, unique: str, definition: Definition
) -> None:
    rabbitmq.declare(
        f"{queue}.first",
        **{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": queue, "x-message-ttl": 1},
    )
    rabbitmq.publish(f"{queue}.first", [b"late"])
    eventually(lambda: rabbitmq.depth(queue) == 1)
    run_once(definition(queue))
    (record,) = read_all(connection, unique)
    (death,) = json.loads(dict(record.headers)["x-death"])
    assert (death["reason"], death["queue"], death["count"]) == ("expired", f"{queue}.first", 1)
    assert death["time"].endswith("Z")


def test_messages_that_are_too_large_are_dead_letters(
    connection: Connection, rabbitmq: RabbitMq, queue: str, unique: str, definition: Definition
) -> None:
    bodies = [b"a", b"x" * 3_000_000, b"b", b"y" * 989_000]
    rabbitmq.publish(queue, bodies)
    rabbitmq.publish(queue, [b"z" * 989_500], headers={"h": "1" * 5000})
    progress = run_once(definition(queue))
    assert (progress.rows, progress.failed) == (3, 2)
    assert values(connection, unique) == [b"a", b"b", b"y" * 989_000]
    letters = read_all(connection, f"{unique}.dead-letters")
    assert [letter.value[:1] for letter in letters] == [b"x", b"z"]
    reason = dict(letters[0].headers)["penstock.error"]
    assert b"bytes with its headers, and 'max_bytes' allows 990000" in reason
    assert json.loads(dict(letters[0].headers)["penstock.place"])["queue"] == queue
    assert rabbitmq.depth(queue) == 0


def test_messages_that_are_too_large_are_rejected_into_the_dead_letter_exchange(
    connection: Connection, rabbitmq: RabbitMq, unique: str, definition: Definition
) -> None:
    rabbitmq.declare(f"{unique}.dead")
    rabbitmq.declare(
        unique,
        **{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": f"{unique}.dead"},
    )
    rabbitmq.publish(unique, [b"a", b"x" * 2000, b"b", b"y" * 2000])
    run_once(definition(unique, bad="reject", max_bytes=1500))
    assert values(connection, unique) == [b"a", b"b"]
    dead = rabbitmq.drain(f"{unique}.dead")
    assert [body for _, _, body in dead] == [b"x" * 2000, b"y" * 2000]
    assert dead[0][1].headers["x-death"][0]["reason"] == "rejected"


def test_a_topic_for_each_queue_and_another_virtual_host(
    connection: Connection, rabbitmq: RabbitMq, unique: str, definition: Definition
) -> None:
    vhost = f"{unique}/a b"
    rabbitmq.control("add_vhost", vhost)
    rabbitmq.control("set_permissions", "-p", vhost, "penstock", ".*", ".*", ".*")
    with rabbitmq.channel(vhost) as channel:
        for queue in ("one", "two"):
            channel.queue_declare(queue)
            channel.basic_publish("", queue, queue.encode())
    topics = f"{{queue}}-of-{unique}"
    run_once(definition("one", "two", url=rabbitmq.url(vhost=vhost), into=topics))
    assert values(connection, f"one-of-{unique}") == [b"one"]
    assert values(connection, f"two-of-{unique}") == [b"two"]


def test_tls_with_a_client_certificate(
    connection: Connection, rabbitmq: RabbitMq, queue: str, unique: str, definition: Definition
) -> None:
    rabbitmq.publish(queue, [b"x" * n for n in range(1, 3000)])
    own = rabbitmq.client_certificate
    tls = {
        "url": rabbitmq.url("amqps"),
        "ca": str(rabbitmq.authority.ca),
        "certificate": str(own.certificate),
        "key_file": str(own.key),
    }
    assert run_once(definition(queue, **tls)).rows == 2999
    assert rabbitmq.depth(queue) == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"password": "wrong"}, "refuses the user 'penstock' or the password; check 'url'"),
        ({"vhost": "nowhere"}, "has no virtual host 'nowhere' for the user 'penstock'"),
        ({"queues": ["missing-queue"]}, "no queue 'missing-queue' in vhost '/'; declare it first"),
    ],
)
def test_wrong_settings_end_the_import(
    definition: Definition, queue: str, options: dict[str, Any], message: str
) -> None:
    with (
        pytest.raises(ConfigError, match=message) as caught,
        penstock.start(definition(**{"queues": [queue], **options})) as running,
    ):
        running.wait(60)
    assert PASSWORD not in str(caught.value)


def test_a_server_that_is_not_trusted_is_refused(
    definition: Definition, rabbitmq: RabbitMq
) -> None:
    source = definition("q", url=rabbitmq.url("amqps")).source
    with pytest.raises(ConfigError, match=r"has a certificate that is not trusted: .*; check 'ca'"):
        source.system().pending({})
    with pytest.raises(ConfigError, match=r"'ca' names '/no/ca.pem', which cannot be used"):
        definition("q", url=rabbitmq.url("amqps"), ca="/no/ca.pem").source.system()


def test_a_queue_that_another_consumer_has_for_itself_is_named(
    rabbitmq: RabbitMq, unique: str
) -> None:
    rabbitmq.declare(unique, **{"x-single-active-consumer": True})
    rabbitmq.declare(f"{unique}.exclusive")
    with rabbitmq.channel() as other:
        other.basic_qos(prefetch_count=1)
        other.basic_consume(unique, lambda *_: None)
        other.basic_consume(f"{unique}.exclusive", lambda *_: None, exclusive=True)
        for queue in (unique, f"{unique}.exclusive"):
            rabbitmq.publish(queue, [b"1", b"2", b"3"])
        with pytest.raises(TransientError, match="x-single-active-consumer"):
            _take(rabbitmq, unique)
        with pytest.raises(TransientError, match="another consumer has the queue for itself"):
            _take(rabbitmq, f"{unique}.exclusive")
        own = other.queue_declare("", exclusive=True).method.queue
        with pytest.raises(ConfigError, match="belongs to the connection that declared it"):
            RabbitMqImport(**rabbitmq.options, queues=own).system().pending({})


def _take(rabbitmq: RabbitMq, queue: str) -> None:
    with QueuePart(RabbitMqImport(**rabbitmq.options, queues=queue), queue).open(None) as reader:
        list(reader.take(10))


def test_what_was_taken_and_not_settled_is_delivered_again(rabbitmq: RabbitMq, queue: str) -> None:
    rabbitmq.publish(queue, [b"%d" % n for n in range(100)])
    source = RabbitMqImport(**rabbitmq.options, queues=queue, prefetch=30)
    part = QueuePart(source, queue)
    with part.open({"messages": 7}) as reader:
        (first,) = reader.take(1000)
        assert first.records.num_rows == 30, "no more than may be unacknowledged"
        assert first.position == {"messages": 37}
        reader.settle()
        assert sum(each.records.num_rows for each in reader.take(20)) == 20
        assert sum(each.records.num_rows for each in reader.take(20)) == 10
    eventually(lambda: rabbitmq.depth(queue) == 70)
    with part.open(None) as reader:
        (again,) = reader.take(1000)
    assert again.records["value"].to_pylist() == [b"%d" % n for n in range(30, 60)]
    redelivered = [dict(_pairs(each))["rabbitmq.redelivered"] for each in again.records["headers"]]
    assert redelivered == [b"true"] * 30


def _pairs(headers: Any) -> list[tuple[str, bytes]]:
    return [(each["key"], each["value"]) for each in headers.as_py()]


def test_a_second_process_takes_over_and_the_first_one_ends(
    connection: Connection, rabbitmq: RabbitMq, queue: str, unique: str, definition: Definition
) -> None:
    rabbitmq.publish(queue, [b"%d" % n for n in range(100)])
    first = penstock.start(definition(queue))
    eventually(lambda: first.progress().rows == 100)
    with penstock.start(definition(queue)) as second:
        rabbitmq.publish(queue, [b"%d" % n for n in range(100, 300)])
        with pytest.raises(FencedError, match="started by another process"):
            eventually(lambda: first.wait(1))
        eventually(lambda: second.progress().rows == 200)
    assert sorted(map(int, values(connection, unique))) == [*range(300)]


@pytest.mark.usefixtures("no_memory_tables")
def test_a_second_pipeline_with_the_message_ids_has_each_message_once(
    connection: Connection,
    rabbitmq: RabbitMq,
    queue: str,
    unique: str,
    definition: Definition,
    pipeline: Any,
) -> None:
    for _ in range(2):  # as if all were delivered again after a crash
        rabbitmq.publish(queue, [b"%d" % n for n in range(200)])
    assert run_once(definition(queue)).rows == 400
    exact = pipeline(
        name=f"{unique}-once",
        source={"kafka": unique},
        decode="raw",
        steps=[
            {"deduplicate": {"by": ["key"], "time": "timestamp", "within": "1h"}},
            {"sql": "SELECT key, value FROM rows"},
        ],
        sink={"kafka": {"topic": f"{unique}-once", "key": "key", "value": "value"}},
        delivery="exactly-once",
    )
    run_once(exact)
    assert sorted(map(int, values(connection, f"{unique}-once"))) == [*range(200)]


def test_a_deleted_queue_is_waited_for_and_the_others_are_read(
    connection: Connection, rabbitmq: RabbitMq, queue: str, unique: str, definition: Definition
) -> None:
    other = f"{queue}.other"
    rabbitmq.declare(other)
    rabbitmq.publish(queue, [b"1"])
    with penstock.start(definition(queue, other)) as running:
        eventually(lambda: running.progress().rows == 1)
        with rabbitmq.channel() as channel:
            channel.queue_delete(queue)
        eventually(lambda: running.progress().state is State.RETRYING)
        assert "a queue that was read before is gone" in str(running.progress().last_error)
        rabbitmq.publish(other, [b"2"])
        eventually(lambda: running.progress().rows == 2)
        rabbitmq.declare(queue)
        rabbitmq.publish(queue, [b"3"])
        eventually(lambda: running.progress().rows == 3)
        eventually(lambda: running.progress().state is State.RUNNING)
    assert sorted(values(connection, unique)) == [b"1", b"2", b"3"]


def test_a_queue_with_more_than_fits_in_memory_is_taken_in_portions(
    rabbitmq: RabbitMq, queue: str
) -> None:
    rabbitmq.publish(queue, [b"x" * 900_000] * 60)
    with QueuePart(RabbitMqImport(**rabbitmq.options, queues=queue), queue).open(None) as reader:
        sizes = []
        while sum(sizes) < 60:
            sizes += [portion.records.num_rows for portion in reader.take(20_000)]
    assert max(sizes) <= 12, sizes


def test_hostile_headers_are_records_like_others(rabbitmq: RabbitMq, queue: str) -> None:
    nested: Any = "end"
    for _ in range(60):
        nested = {"n": nested}
    odd = [{"a\0b": "x"}, {"t": datetime(9999, 12, 31, tzinfo=timezone.utc)}, {"": ""}]
    with rabbitmq.channel() as channel:
        for headers in (*odd, {"deep": nested}, None):
            with suppress(PenstockError):
                channel.basic_publish("", queue, b"v", pika.BasicProperties(headers=headers))
        channel.queue_declare(queue, passive=True)
    with QueuePart(RabbitMqImport(**rabbitmq.options, queues=queue), queue).open(None) as reader:
        (portion,) = reader.take(100)
    assert portion.records.num_rows == 4
    (bad,) = portion.bad
    assert "nested more than 50 times" in bad.error
