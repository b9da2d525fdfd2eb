"""What the tests of the embedded systems share: talking to a broker, and a home with the real cache."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer

from penstock.config import Connection
from penstock.config.directories import cache_dir

QUIET = {"log_level": 0}


def send(connection: Connection, topic: str, values: list[bytes]) -> None:
    """Write values to a topic, and be sure that they are there."""
    failed: list[str] = []
    # Without idempotence a retry, as on a topic that is just being made, may change the order.
    options = {"enable.idempotence": True}
    producer = Producer(connection.librdkafka("producer", **options) | QUIET)
    for value in values:
        producer.produce(
            topic, value, on_delivery=lambda error, _: failed.append(str(error)) if error else None
        )
    assert producer.flush(30) == 0
    assert failed == []


def read(connection: Connection, topic: str, count: int, group: str = "readers") -> list[bytes]:
    """Read the first values of a topic, within 30 seconds."""
    options = {"group.id": group, "auto.offset.reset": "earliest"}
    consumer = Consumer(connection.librdkafka("consumer", **options) | QUIET)
    consumer.subscribe([topic])
    found: list[bytes] = []
    deadline = time.monotonic() + 30
    while len(found) < count and time.monotonic() < deadline:
        message = consumer.poll(0.5)
        if message is not None and not message.error():
            found.append(message.value() or b"")
    if found:
        consumer.commit(asynchronous=False)
    consumer.close()
    return found


def eventually(condition: Callable[[], bool], within: float = 30.0) -> bool:
    deadline = time.monotonic() + within
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


@pytest.fixture
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of its own, but with the jars that are fetched already."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "cache").symlink_to(cache_dir())
    monkeypatch.setenv("PENSTOCK_HOME", str(home))
    return home
