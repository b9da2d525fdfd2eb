"""The ways in which people write partitions and offsets, brought into one form."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import index
from typing import Any, TypeVar

from confluent_kafka import KafkaException, TopicPartition

from penstock.errors import ConfigError
from penstock.formats.format_values import kind
from penstock.kafka.handle import Partition
from penstock.record import Record

T = TypeVar("T")
OffsetsLike = Record | Mapping[Partition, int]
NO_OFFSET = -1001
"""librdkafka's "none": as the start of a partition, what the group committed, else auto.offset.reset."""


def offsets_of(what: OffsetsLike) -> list[TopicPartition]:
    """Return the offset after a record, or offsets by partition, as librdkafka takes them.

    >>> offsets_of(Record.of("trades", 0, 41))
    [TopicPartition{topic=trades,partition=0,offset=42,leader_epoch=None,error=None}]
    """
    if isinstance(what, Record):
        if what.message.error() is not None:
            raise ConfigError("this is not a record but an error: it has no offset to commit")
        return [TopicPartition(what.topic, what.partition, what.offset + 1)]
    if not isinstance(what, Mapping):
        raise ConfigError(
            f"{kind(what)} is not an offset; allowed: a record, or offsets by partition, "
            "e.g. {('trades', 0): 42}"
        )
    return [TopicPartition(*_pair(where), _offset(offset)) for where, offset in what.items()]


def places_of(partitions: Iterable[Partition]) -> list[TopicPartition]:
    """Return partitions as librdkafka takes them.

    >>> places_of([("trades", 0)])
    [TopicPartition{topic=trades,partition=0,offset=-1001,leader_epoch=None,error=None}]
    """
    if isinstance(partitions, str) or not isinstance(partitions, Iterable):
        raise _no_partition(partitions)
    return [TopicPartition(*_pair(where)) for where in partitions]


def whole(given: Any) -> int | None:
    """Return a whole number of Python or numpy; None for anything else, and for True and False.

    >>> whole(7), whole(True), whole(1.0)
    (7, None, None)
    """
    if isinstance(given, int) and not isinstance(given, bool):
        return given
    if type(given).__name__ in ("bool", "bool_") or getattr(given, "ndim", None):
        return None
    try:
        return index(given)
    except TypeError:
        return None


def _pair(where: Any) -> Partition:
    if isinstance(where, tuple | list) and len(where) == 2 and isinstance(where[0], str):
        number = whole(where[1])
        if number is not None:
            return where[0], number
    raise _no_partition(where)


def _offset(given: Any) -> int:
    offset = whole(given)
    if offset is None:
        raise ConfigError(f"offset {given!r} is not allowed; allowed: a whole number")
    return offset


def _no_partition(given: Any) -> ConfigError:
    return ConfigError(
        f"{given!r} is not a partition; allowed: topic and number, e.g. ('trades', 0), "
        "and a list of them where several may be given"
    )


def raise_errors_of(answer: T) -> T:
    """Return an answer of librdkafka; raise the error of the first partition that has one."""
    for place in answer if isinstance(answer, list) else ():
        if place.error is not None:
            raise KafkaException(place.error)
    return answer


def aligned(topics: Any, partitions: Any, offsets: Any) -> dict[Partition, int]:
    """Return topics, partitions and offsets, each one value or a list of the same length.

    Without offsets each partition begins where the group committed, else as auto.offset.reset says.

    >>> aligned(["a", "b"], [0, 1], [5, 6])
    {('a', 0): 5, ('b', 1): 6}
    >>> aligned("a", 0, 5)
    {('a', 0): 5}
    """
    if partitions is None:
        raise ConfigError("topics alone are not enough: give the partitions too, e.g. 'trades', 0")
    names = _vector(topics)
    starts = [NO_OFFSET] * len(names) if offsets is None else _vector(offsets)
    columns = [names, _vector(partitions), starts]
    lengths = [len(column) for column in columns]
    if len(set(lengths)) > 1:
        raise ConfigError(
            f"topics, partitions and offsets must be of one length; "
            f"{lengths[0]}, {lengths[1]} and {lengths[2]} were given"
        )
    rows = zip(*columns, strict=True)
    return {_pair((topic, partition)): _offset(offset) for topic, partition, offset in rows}


def _vector(given: Any) -> list[Any]:
    if isinstance(given, str) or not isinstance(given, Iterable):
        return [given]
    return list(given)
