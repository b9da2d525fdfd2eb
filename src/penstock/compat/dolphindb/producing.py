"""The plugin's chapter about producers."""

from __future__ import annotations

from typing import Any

from penstock.compat.dolphindb.arguments import format_of, milliseconds
from penstock.errors import ConfigError, QueueFullError
from penstock.kafka import Producer


def produce(  # noqa: PLR0917 - the plugin's order
    producer: Producer,
    topic: str,
    key: Any,
    value: Any,
    marshalType: str | bool | None = None,
    partition: int | bool | None = None,
    *older: int,
) -> None:
    """Send a key and a value to a topic, as "JSON", "DOLPHINDB" or "PLAIN" (text only).

    Version 1.30 has a boolean in the place of `marshalType`: True is JSON, False is DOLPHINDB, which is
    also what goes out where nothing is said. Its scripts put up to two more values behind it:
    `False, False`, `False, 0` and `False, False, 0`. They are read like this: a whole number is the
    partition, and a second boolean chooses nothing; what follows it is the partition.

    A vector or table over `getMessageSize()` goes out as several messages. The call returns at once;
    while the queue is full it waits, and raises `Local: Queue full` only when the brokers take nothing.
    """
    format, place = format_of(marshalType, "dolphindb"), _partition(partition, *older)
    try:
        producer.produce(topic, key, value, format, place)
    except QueueFullError as full:
        raise QueueFullError(f"Local: Queue full: {full}", full.retry_after) from full


def producerFlush(producer: Producer) -> None:
    """Wait until everything that was sent is delivered; raise when something was not."""
    producer.flush()


def getProducerTime(producer: Producer) -> int:
    """How long a request may take, in milliseconds."""
    return producer.timeout_ms


def setProducerTime(producer: Producer, timeout: int) -> None:
    """Set how long a request may take, in milliseconds."""
    producer.timeout_ms = milliseconds(timeout)


def _partition(given: Any, *older: Any) -> Any:
    """The partition, behind the boolean that scripts of version 1.30 may have in its place."""
    flag = type(given).__name__ in ("bool", "bool_")
    if len(older) > flag:
        raise ConfigError(
            f"{1 + len(older)} values behind the format are not allowed; allowed: a partition, "
            "or, as in version 1.30, a boolean and a partition"
        )
    if flag:
        return older[0] if older else None
    return given
