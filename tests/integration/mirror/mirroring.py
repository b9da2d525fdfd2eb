"""What tests of mirrors write and compare: records with everything that a record can have."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from penstock import Admin, Connection, Pipeline
from penstock.imports import ImportRunning, start
from penstock.kafka import GroupOffsets
from penstock.testing import eventually

Row = tuple[Any, ...]


class Translation(NamedTuple):
    """A group's offset in the source, and the one that it has in the target for it."""

    partition: int
    source: int
    target: int


def rows(connection: Connection, topic: str) -> dict[int, list[Row]]:
    """Return the committed records of each partition in their order: all but their offsets."""
    return {part: [row[1:] for row in each] for part, each in placed(connection, topic).items()}


def placed(
    connection: Connection, topic: str, begin: dict[int, int] | None = None
) -> dict[int, list[Row]]:
    """Return offset, key, value, time and headers of the committed records of each partition."""
    with Admin(connection) as admin:
        partitions = [number for _, number in admin.partitions([topic])]
    client = Consumer(
        {
            **connection.librdkafka("consumer", group_id="reader-of-tests"),
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
        }
    )
    starts = begin or {}
    client.assign([TopicPartition(topic, number, starts.get(number, 0)) for number in partitions])
    found: dict[int, list[Row]] = {number: [] for number in partitions}
    open_ones = set(partitions)
    try:
        while open_ones:
            for message in client.consume(1000, 0.1):
                if (error := message.error()) is not None:
                    assert error.code() == KafkaError._PARTITION_EOF, error
                    open_ones.discard(message.partition())
                    continue
                found[message.partition()].append(
                    (
                        message.offset(),
                        message.key(),
                        message.value(),
                        message.timestamp()[1],
                        tuple(message.headers() or ()),
                    )
                )
    finally:
        client.close()
    return found


def is_mirrored(source: Connection, topic: str, target: Connection, into: str) -> bool:
    """Return whether both have the same records in the same partitions, in the same order."""
    with Admin(target) as admin:
        if into not in {each.name for each in admin.topics()}:
            return False
    copied, wanted = rows(target, into), rows(source, topic)
    return all(copied.get(number, []) == each for number, each in wanted.items())


@contextmanager
def producing(connection: Connection, **settings: Any) -> Iterator[Producer]:
    """Give a producer, and wait until everything is written."""
    client = Producer({**connection.librdkafka("producer"), "linger.ms": 1, **settings})
    yield client
    assert client.flush(30) == 0


def write(connection: Connection, topic: str, count: int, dice: random.Random, at: int = 0) -> None:
    """Write records of all kinds to the three partitions of a topic."""
    with producing(connection) as client:
        for n in range(at, at + count):
            client.produce(
                topic,
                value=dice.choice([b"value %d" % n, b"", None, dice.randbytes(40)]),
                key=dice.choice([b"key %d" % n, b"", None, b"\xff\x00"]),
                partition=n % 3,
                timestamp=1_000_000 + n,
                headers=dice.choice(
                    [None, [("a", b"1"), ("a", None), ("\u00fc", b"\xff"), ("empty", b"")]]
                ),
            )


def created(connection: Connection, topic: str, partitions: int = 3, **config: Any) -> None:
    with Admin(connection) as admin:
        settings = {name.replace("_", "."): value for name, value in config.items()}
        admin.create_topic(topic, partitions, config=settings)


def settings_of(connection: Connection, topic: str) -> dict[str, str]:
    with Admin(connection) as admin:
        return admin.describe_topic(topic).config


def partitions_of(connection: Connection, topic: str) -> int:
    with Admin(connection) as admin:
        return len(admin.partitions([topic]))


def topics_of(connection: Connection) -> set[str]:
    with Admin(connection) as admin:
        return {topic.name for topic in admin.topics()}


def ran(definition: Pipeline) -> ImportRunning:
    """Run a mirror until it has copied everything."""
    with start(definition, once=True) as running:
        assert running.wait(120)
    assert isinstance(running, ImportRunning)
    return running


def caught_up(source: Connection, topic: str, target: Connection, into: str | None = None) -> None:
    eventually(lambda: is_mirrored(source, topic, target, into or topic), timeout=120, every=0.3)


def translations(target: Connection, group: str, into: str) -> list[Translation]:
    """Return the offsets of a group as they are translated now."""
    with GroupOffsets(target, group) as client:
        held = client.committed_with_metadata([(into, number) for number in range(3)])
    return [
        Translation(number, int(each.metadata.rpartition(" ")[2]), each.offset)
        for (_, number), each in held.items()
    ]


def missed(
    moments: list[Translation], source: Connection, topic: str, target: Connection, into: str
) -> list[Translation]:
    """Return the translations with which a consumer would not read all that it has not read yet."""
    wanted, copied = placed(source, topic), placed(target, into)
    return [
        each
        for each in set(moments)
        if not _ends_with(
            [row[1:] for row in copied[each.partition] if row[0] >= each.target],
            [row[1:] for row in wanted[each.partition] if row[0] >= each.source],
        )
    ]


def _ends_with(read: list[Row], wanted: list[Row]) -> bool:
    return not wanted or read[-len(wanted) :] == wanted
