"""What the tests of every kind of log-in share: a whole round trip, and a refusal."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from penstock.config import Connection
from penstock.embedded.tools import run_tool
from penstock.errors import ConfigError
from penstock.kafka import Admin, Consumer, Producer

LONG = 60.0  # a refusal must not wait for the time-out: these tests would run into their own
WRONG = "open-sesame"


def new_topic(connection: Connection) -> str:
    """Make a topic that no other test has."""
    name = f"secured-{uuid4().hex[:8]}"
    with Admin(connection) as admin:
        admin.create_topic(name)
        assert name in {topic.name for topic in admin.topics()}
    return name


def write(connection: Connection, topic: str, value: bytes, **overrides: Any) -> None:
    with Producer(connection, **overrides) as producer:
        producer.produce(topic, value=value)
        producer.flush(20)


def read(connection: Connection, topic: str, **overrides: Any) -> bytes | None:
    with Consumer(connection, **overrides) as consumer:
        consumer.assign({(topic, 0): 0})
        record = consumer.poll(20)
        return record.value if record else None


def round_trip(connection: Connection) -> None:
    """Administer, write and read with librdkafka; then ask Java whether it sees the topic too."""
    topic = new_topic(connection)
    write(connection, topic, b"secret message")
    assert read(connection, topic) == b"secret message"
    assert topic in run_tool("kafka-topics", connection, ["--list"]).splitlines()


def changed(connection: Connection, **changes: str | None) -> Connection:
    """The same connection with other settings; None removes one. Dots are underscores."""
    settings = {**connection.to_config(), **{k.replace("_", "."): v for k, v in changes.items()}}
    return Connection.from_config({k: v for k, v in settings.items() if v is not None})


def refused(connection: Connection, timeout: float = LONG) -> str:
    """The words with which a connection is refused."""
    with pytest.raises(ConfigError) as caught, Admin(connection, timeout=timeout) as admin:
        admin.topics()
    message = str(caught.value)
    assert connection.brokers in message
    assert WRONG not in message
    return message
