"""Loops over a consumer that end by themselves: at an offset, at the end, or never."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from penstock.kafka.consumer import Consumer
from penstock.kafka.handle import Partition
from penstock.record import Record


def read_span(
    consumer: Consumer,
    start: Mapping[Partition, int],
    stop: Mapping[Partition, int],
    most: int = 1000,
) -> Iterator[list[Record]]:
    """Batches from `start` up to, and without, `stop`. Offsets without a record are no trouble.

    The end of a partition counts as its stop too: markers of transactions take up offsets, so
    the record just before `stop` may never come.
    """
    waiting = {where for where, offset in start.items() if offset < stop[where]}
    consumer.assign({where: start[where] for where in waiting})
    while waiting:
        records = consumer.poll_batch(most)
        yield [record for record in records if record.offset < stop[_where(record)]]
        done = {_where(r) for r in records if r.offset + 1 >= stop[_where(r)]}
        done = (done | consumer.at_end) & waiting
        if done:
            waiting -= done
            consumer.pause(done)


def read_on(
    consumer: Consumer, start: Mapping[Partition, int], most: int = 1000
) -> Iterator[list[Record]]:
    """Batches from `start`, for ever; an empty one each time that nothing came for a second."""
    consumer.assign(start)
    while True:
        yield consumer.poll_batch(most)


def read_group(consumer: Consumer, topics: list[str], most: int = 1000) -> Iterator[list[Record]]:
    """Batches for a member of a group, until each partition it was given is read to its end."""
    consumer.subscribe(topics)
    while True:
        yield consumer.poll_batch(most)
        mine = consumer.assignment
        if mine and mine <= consumer.at_end:
            return


def _where(record: Record) -> Partition:
    return record.topic, record.partition
