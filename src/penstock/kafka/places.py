"""The ways in which people write partitions and offsets, brought into one form."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from confluent_kafka import KafkaException, TopicPartition

from penstock.errors import ConfigError
from penstock.kafka.handle import Partition
from penstock.record import Record

OffsetsLike = Record | Mapping[Partition, int]


def offsets_of(what: OffsetsLike) -> list[TopicPartition]:
    """What is behind a record, or offsets by partition, as librdkafka takes them.

    >>> offsets_of(Record.of("trades", 0, 41))
    [TopicPartition{topic=trades,partition=0,offset=42,leader_epoch=None,error=None}]
    """
    if isinstance(what, Record):
        if what.message.error() is not None:
            raise ConfigError("this is no record but an error: it has no offset to commit")
        return [TopicPartition(what.topic, what.partition, what.offset + 1)]
    return [TopicPartition(*where, offset) for where, offset in what.items()]


def raise_errors_of(answer: Any) -> None:
    """Raise librdkafka's error of the first partition that has one: such an answer is no answer."""
    for place in answer if isinstance(answer, list) else ():
        if place.error is not None:
            raise KafkaException(place.error)


def aligned(topics: Any, partitions: Any, offsets: Any) -> dict[Partition, int]:
    """Topics, partitions and offsets, each one value or a list of the same length.

    >>> aligned(["a", "b"], [0, 1], [5, 6])
    {('a', 0): 5, ('b', 1): 6}
    >>> aligned("a", 0, 5)
    {('a', 0): 5}
    """
    columns = [_vector(each) for each in (topics, partitions, offsets)]
    lengths = [len(column) for column in columns]
    if len(set(lengths)) > 1:
        raise ConfigError(
            f"topics, partitions and offsets must be of one length; "
            f"{lengths[0]}, {lengths[1]} and {lengths[2]} were given"
        )
    rows = zip(*columns, strict=True)
    return {(str(topic), int(partition)): int(offset) for topic, partition, offset in rows}


def _vector(given: Any) -> list[Any]:
    if isinstance(given, str) or not isinstance(given, Iterable):
        return [given]
    return list(given)
