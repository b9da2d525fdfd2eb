"""Handles made by the plugin's own functions, on the shared broker; a group and topics for each test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from penstock import Admin, Connection, Consumer, Producer
from penstock.compat import dolphindb as kafka
from penstock.testing import fill


@pytest.fixture
def config(connection: Connection, unique: str) -> dict[str, Any]:
    """What a script writes into its dictionary; a topic is read from its start."""
    brokers = connection.brokers
    return {"metadata.broker.list": brokers, "group.id": unique, "auto.offset.reset": "earliest"}


@pytest.fixture
def new_topic(connection: Connection, topic: Callable[..., str]) -> Callable[..., str]:
    def make(partitions: int = 1, suffix: str = "topic") -> str:
        with Admin(connection) as admin:
            admin.create_topic(topic(suffix), partitions)
        return topic(suffix)

    return make


@pytest.fixture
def ten(connection: Connection, new_topic: Callable[..., str]) -> str:
    """A topic of one partition with ten messages, which are JSON: [0] to [9]."""
    name = new_topic(suffix="ten")
    fill(connection, name, [f"[{number}]" for number in range(10)], key=lambda n: b"k%d" % n)
    return name


@pytest.fixture
def producer(connection: Connection) -> Iterator[Producer]:
    with kafka.producer({"bootstrap.servers": connection.brokers}) as made:
        yield made


@pytest.fixture
def consumer(config: dict[str, Any]) -> Iterator[Consumer]:
    """Waits long enough for a machine that is busy."""
    with kafka.consumer(config) as made:
        kafka.setConsumerTime(made, 30_000)
        yield made


@pytest.fixture
def sizes() -> Iterator[None]:
    """The global sizes are put back for the next test."""
    yield
    kafka.setBufferSize(900_000)
    kafka.setMessageSize(10_000)
