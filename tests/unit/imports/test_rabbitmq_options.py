"""Wrong options of the source rabbitmq are refused: what was given, what is allowed, what to do."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.errors import DefinitionError
from penstock.imports.rabbitmq.rabbitmq_import import QueuePart, RabbitMqImport
from penstock.pipeline import Pipeline, parse_pipeline

GOOD = {"url": "amqp://app@mq", "queues": ["orders"]}
# Those of the connection: the sink has the same.
WRONG_CONNECTION: list[tuple[dict[str, Any], str]] = [
    ({"url": "http://mq"}, "given 'http://...'; allowed: amqp://user@host:5672/vhost, or amqps://"),
    ({"url": "mq:5672"}, "allowed: amqp://user@host:5672/vhost"),
    ({"url": "amqp://"}, "given 'amqp://...'"),
    ({"url": "amqp://mq:port"}, "the address cannot be read"),
    ({"url": "amqp://mq?heartbeat=5"}, "heartbeat, timeout and TLS are own options"),
    ({"url": "amqp://mq/a/b"}, "contains '/'; write it as %2F, or give 'vhost'"),
    ({"url": "amqp://a:hunter2@mq", "password": "x"}, "the password is in 'url' and in 'password'"),
    ({"url": "amqp://mq/a", "vhost": "b"}, "the virtual host is in 'url' and in 'vhost'"),
    ({"vhost": "v" * 256}, "the virtual host has more than 255 bytes"),
    ({"ca": "ca.pem"}, "'ca' is about TLS: give an address with amqps://"),
    ({"certificate": "c.pem"}, "'certificate' is about TLS"),
    (
        {"url": "amqps://mq", "certificate": "c.pem"},
        "'certificate' and 'key_file' belong together: give both or neither",
    ),
    ({"url": "amqps://mq", "key_password": "x"}, "'key_password' is given without 'key_file'"),
    ({"heartbeat": "1s"}, "greater than or equal to 5"),
    ({"heartbeat": "often"}, "given 'often'; a duration is a number with ms, s, m, h or d"),
    ({"timeout": 0}, "greater than 0"),
    ({"user": "app"}, "user: is not an option here; allowed: "),
]
WRONG = [
    *WRONG_CONNECTION,
    ({"queues": []}, "at least 1 item"),
    ({"queues": [""]}, "given ''; the name of a queue has 1 to 255 bytes"),
    ({"queues": ["q" * 256]}, "the name of a queue has 1 to 255 bytes"),
    ({"queues": ["a", "b", "a"]}, "'a' is given twice"),
    ({"queue": "a"}, "did you mean 'queues'?"),
    (
        {"key": "id"},
        "given 'id'; allowed: message_id, correlation_id, routing_key, header:NAME, none",
    ),
    ({"key": "header:"}, "given 'header:'; allowed: message_id"),
    ({"prefetch": 0}, "greater than or equal to 1"),
    ({"prefetch": 65_536}, "less than or equal to 65535"),
    ({"max_bytes": 10}, "greater than or equal to 1000"),
    ({"bad": "drop"}, "input should be 'dead_letters' or 'reject'"),
    ({"properties": "some"}, "given 'some'"),
    ({"topic": "a.{vhost}"}, "a topic cannot have {vhost} in its name here; allowed: {queue}"),
]


@pytest.mark.parametrize(("given", "message"), WRONG, ids=lambda value: str(value)[:40])
def test_wrong_options_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        Pipeline(name="p", source={"rabbitmq": {**GOOD, **given}}, sink={"kafka": "t"})
    assert message in str(caught.value)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("delivery", ["exactly-once", "at-most-once"])
def test_other_deliveries_are_refused_with_the_reason(delivery: str) -> None:
    with pytest.raises(DefinitionError, match="makes RabbitMQ deliver messages again"):
        Pipeline(name="p", source={"rabbitmq": GOOD}, sink={"kafka": "t"}, delivery=delivery)


def test_a_definition_in_yaml_shows_no_password() -> None:
    text = """\
name: orders
source:
  rabbitmq:
    url: amqps://app:hunter2-secret@mq.example/shop%2Feu
    queues: orders
    key: header:customer
    tasks.max: 2
sink: {kafka: orders}
"""
    source = parse_pipeline(text).source
    assert isinstance(source, RabbitMqImport)
    assert (source.url, source.vhost) == ("amqps://app@mq.example", "shop/eu")
    assert "hunter2-secret" not in repr(source) + repr(source.broker()) + source.model_dump_json()
    broker = source.broker()
    assert (broker.host, broker.port, broker.user) == ("mq.example", 5671, "app")
    assert broker.password == "hunter2-secret"
    part = QueuePart(source, "orders")
    assert part.place == {"queue": "orders", "vhost": "shop/eu"}
    assert part.names == {"queue": "orders"}


def test_what_is_not_given_is_as_in_amqp() -> None:
    broker = RabbitMqImport(url="amqp://mq/", queues="q").broker()
    assert (broker.port, broker.vhost, broker.user, broker.password) == (
        5672,
        "/",
        "guest",
        "guest",
    )


def test_a_transaction_has_no_more_messages_than_may_be_unacknowledged() -> None:
    assert RabbitMqImport(**GOOD, max_records=500).unacknowledged == 500
    assert RabbitMqImport(**GOOD, max_records=500, prefetch=100).unacknowledged == 100
    assert RabbitMqImport(**GOOD, max_records=100_000).unacknowledged == 65_535
