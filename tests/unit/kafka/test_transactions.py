"""How transactions start, with the brokers that librdkafka has in itself for tests."""

from __future__ import annotations

import logging

import pytest
from confluent_kafka import Producer

from penstock import Connection
from penstock.kafka.handle import Handle
from penstock.kafka.producing.transactions import Transactions

_UNANSWERED = "Unable to query for transaction coordinator"


@pytest.mark.parametrize("number", range(3))
def test_the_coordinator_is_asked_when_a_broker_is_connected(
    number: int, caplog: pytest.LogCaptureFixture
) -> None:
    cluster = Producer({"test.mock.num.brokers": 3, "bootstrap.servers": "ignored"})
    first = next(iter(cluster.list_topics(timeout=30).brokers.values()))
    connection = Connection(brokers=f"{first.host}:{first.port}")
    handle = Handle(connection, "producer", {}, transactional_id=f"name-{number}", debug="eos")
    log = logging.getLogger(f"eos-{number}")
    with caplog.at_level(logging.DEBUG, log.name):
        client = Producer({**handle.settings(), "logger": log})
        Transactions(client, handle).init(60)
        client.poll(0)
    assert "Starting PID FSM timer" in caplog.text
    assert _UNANSWERED not in caplog.text  # it would be asked again after half a second
    client.close()
