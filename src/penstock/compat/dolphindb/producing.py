"""The plugin's functions for producers, and the maximum size of values for all of them."""

from __future__ import annotations

from typing import Any

from penstock.compat.dolphindb.dolphindb_arguments import (
    anything,
    check_text,
    checked,
    format_of,
    seconds,
)
from penstock.errors import ConfigError, FormatError, QueueFullError
from penstock.formats import find_format
from penstock.kafka import Producer
from penstock.kafka.partitions import whole
from penstock.kafka.producing.arguments import partition_of
from penstock.kafka.producing.record_splitting import Sizes

SIZES = Sizes()
"""Shared by all producers of this module, as in the plugin."""


@checked(topic=check_text, partition=anything)
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
    also the default. Its scripts pass up to two more values after it:
    `False, False`, `False, 0` and `False, False, 0`. They are read like this: a whole number is the
    partition, and a second boolean is ignored; the value after it is the partition.

    None is a value like any other (JSON: `[null]`); a tombstone, which deletes a key, is
    `producer.produce(topic, key)` of the handle itself.

    A vector or table over `getMessageSize()` is sent as several messages. The call returns immediately;
    while the queue is full it waits, and raises `Local: Queue full` only when the brokers accept nothing.
    """
    format, place = format_of(marshalType, "dolphindb"), _partition(partition, *older)
    partition_of(place)
    try:
        if value is None:
            producer.produce(topic, key, find_format(format).encode(None, topic), None, place)
        else:
            producer.produce(topic, key, value, format, place)
    except QueueFullError as full:
        raise QueueFullError(f"Local: Queue full: {full}", full.retry_after) from full
    except FormatError as error:
        raise FormatError(f"value: {error}") from error


@checked()
def producerFlush(producer: Producer) -> None:
    """Wait until all records are delivered; raise if one was not."""
    producer.flush()


@checked()
def getProducerTime(producer: Producer) -> int:
    """Return how long a request may take, in milliseconds."""
    return round(producer.timeout * 1000)


@checked()
def setProducerTime(producer: Producer, timeout: int) -> None:
    """Set how long a request may take, in milliseconds."""
    producer.timeout = seconds(timeout)


def getBufferSize() -> int:
    """Return the maximum size of one value in bytes; initially 900 000."""
    return SIZES.buffer


@checked()
def setBufferSize(size: int) -> None:
    """Set the maximum size of one value in bytes; a larger message size is reduced to it."""
    wanted = _bytes(size, "buffer")
    SIZES.message = min(SIZES.message, wanted)
    SIZES.buffer = wanted


def getMessageSize() -> int:
    """Return the maximum size of a message before it is split, in bytes; initially 10 000."""
    return SIZES.message


@checked()
def setMessageSize(size: int) -> None:
    """Set the maximum size of a message in bytes, at most the buffer size."""
    SIZES.message = _bytes(size, "message")


def _bytes(size: Any, what: str) -> int:
    number = whole(size)
    if number is None or number < 1:
        raise ConfigError(
            f"{what} size {size!r} is not allowed; allowed: bytes, a whole number from 1 on"
        )
    return number


def _partition(given: Any, *older: Any) -> Any:
    """Return the partition, after the boolean that scripts of version 1.30 may have in its place."""
    flag = type(given).__name__ in ("bool", "bool_")
    if len(older) > flag:
        raise ConfigError(
            f"{1 + len(older)} values after the format are not allowed; allowed: a partition, "
            "or, as in version 1.30, a boolean and a partition"
        )
    if flag:
        return older[0] if older else None
    return given
