"""The lag is read by a thread of its own: reading the progress never waits for a broker."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from threading import Thread

import pytest

from penstock import Connection
from penstock.engine import lag
from penstock.engine.lag import LagMonitor
from penstock.errors import TransientError
from penstock.sources.kafka import KafkaSource
from penstock.testing import eventually

POSITION = {("t", 0): 1}


@pytest.fixture
def deaf() -> Iterator[Connection]:
    """A broker that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        yield Connection.from_config({"bootstrap.servers": f"127.0.0.1:{port}"})


def test_asking_returns_at_once_while_the_broker_does_not_answer(
    deaf: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lag, "_TIMEOUT", 2.0)
    monitor = LagMonitor(KafkaSource(topics=["t"]), deaf, lambda: POSITION)
    try:
        for _ in range(1000):
            monitor.ask()
            assert monitor.ends == {}
        assert monitor.unavailable is None  # the first request still waits
        eventually(lambda: isinstance(monitor.unavailable, TransientError), 60)
    finally:
        monitor.close()


def test_a_refresh_ends_with_its_time(deaf: Connection) -> None:
    monitor = LagMonitor(KafkaSource(topics=["t"]), deaf, lambda: POSITION)
    ended = Thread(target=monitor.refresh, args=(0.2,))
    ended.start()
    ended.join(5)
    assert not ended.is_alive()
    monitor.close()
    began = time.monotonic()
    monitor.refresh(60)  # nothing reads for it any more
    assert time.monotonic() - began < 30
