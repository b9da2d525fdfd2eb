"""Helpers for tests: waiting for a condition, records into a topic and out of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

import orjson

from penstock.config import Connection
from penstock.kafka import Admin, Consumer, Producer
from penstock.kafka.consuming.loops import read_span
from penstock.record import Record
from penstock.retry import wait_for

T = TypeVar("T")

# A broker that tests share with others may need more time for an answer than an operator would wait.
_PATIENCE = 60.0


def eventually(condition: Callable[[], T], timeout: float = 60.0, every: float = 0.05) -> T:
    """Wait until a condition returns something true, and return that; fail at the deadline."""
    if not (value := wait_for(condition, within=timeout, every=every)):
        raise AssertionError(f"not within {timeout:.0f} s; the last value was {value!r}")
    return value


def fill(
    connection: Connection,
    topic: str,
    values: Iterable[bytes | str | Mapping[str, object] | None],
    *,
    partitions: int = 1,
    key: Callable[[int], bytes] | None = None,
) -> None:
    """Write values to a topic, created if missing: bytes and text unchanged, mappings as JSON."""
    with Admin(connection, timeout=_PATIENCE) as admin:
        if not admin.topic_ids([topic]):
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
    """Return all current records of a topic."""
    with Admin(connection, timeout=_PATIENCE) as admin, Consumer(connection) as consumer:
        ends = admin.latest(admin.partitions([topic]))
        spans = read_span(consumer, admin.earliest(ends), ends)
        return [record for batch in spans for record in batch]
