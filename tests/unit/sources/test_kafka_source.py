"""The options for the Kafka connector of Spark."""

from __future__ import annotations

from typing import Any

from penstock.config import Connection
from penstock.pipeline import Reading
from penstock.sources.kafka import KafkaSource

WAIT = "kafka.fetch.max.wait.ms"


def connector_options(*, in_real_time: bool = False, **options: Any) -> dict[str, str]:
    nowhere: Any = None
    connection = Connection(brokers="nowhere:1", **options)
    reading = Reading(nowhere, connection, {("t", 0): 5}, in_real_time=in_real_time)
    return KafkaSource(topics=["t"]).options(reading)


def test_a_batch_does_not_wait_for_records_behind_its_end() -> None:
    assert connector_options()[WAIT] == "10"
    assert WAIT not in connector_options(in_real_time=True)


def test_what_the_connection_says_wins() -> None:
    assert connector_options(fetch_wait_max_ms=200)[WAIT] == "200"
