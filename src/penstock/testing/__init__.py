"""What users, and we, test with: waiting for a condition, records into a topic, Kafka's own tools."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

import orjson

from penstock.config import Connection
from penstock.embedded.tools import run_tool
from penstock.kafka import Admin, Consumer, Producer
from penstock.kafka.consuming.loops import read_span
from penstock.record import Record

T = TypeVar("T")


def eventually(condition: Callable[[], T], timeout: float = 60.0, every: float = 0.05) -> T:
    """Wait until a condition gives something true, and return that; fail at the deadline.

    >>> eventually(lambda: 42)
    42
    """
    deadline = time.monotonic() + timeout
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {timeout:.0f} s; the last value was {value!r}")
        time.sleep(every)
    return value


def fill(
    connection: Connection,
    topic: str,
    values: Iterable[bytes | str | Mapping[str, object] | None],
    *,
    partitions: int = 1,
    key: Callable[[int], bytes] | None = None,
) -> None:
    """Write values to a topic, made where it is missing: bytes and text as they are, mappings as JSON."""
    with Admin(connection) as admin:
        if topic not in {found.name for found in admin.topics()}:
            admin.create_topic(topic, partitions)
    with Producer(connection) as producer:
        for index, value in enumerate(values):
            data = orjson.dumps(value) if isinstance(value, Mapping) else value
            raw = data.encode() if isinstance(data, str) else data
            producer.produce(
                topic,
                key(index) if key else None,
                raw,
                partition=None if key else index % partitions,
            )


def read_all(connection: Connection, topic: str) -> list[Record]:
    """Return every record that a topic holds now."""
    with Admin(connection) as admin, Consumer(connection) as consumer:
        ends = admin.latest(admin.partitions([topic]))
        spans = read_span(consumer, admin.earliest(ends), ends)
        return [record for batch in spans for record in batch]


def consumer_groups_tool(connection: Connection, *arguments: str) -> str:
    """Run `kafka-consumer-groups`, Kafka's own, and return what it prints."""
    return run_tool("kafka-consumer-groups", connection, list(arguments))
