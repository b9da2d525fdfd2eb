"""Loops over a consumer that end by themselves: at an offset, at the end, or never."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from penstock.kafka.consuming.buffer import partition_of
from penstock.kafka.consuming.consumer import Consumer
from penstock.kafka.handle import Partition
from penstock.record import Record

# A loop that looks for the end looks often: a batch that is not full waits for its whole time.
_SOON = 0.1


def read_span(
    consumer: Consumer,
    start: Mapping[Partition, int],
    stop: Mapping[Partition, int],
    max_records: int = 1000,
) -> Iterator[list[Record]]:
    """Yield batches from `start` up to, and without, `stop`. Offsets without a record are allowed.

    The end of a partition counts as its stop too: markers of transactions take up offsets, so
    the record just before `stop` may never come.
    """
    waiting = {where for where, offset in start.items() if offset < stop[where]}
    consumer.assign({where: start[where] for where in waiting})
    while waiting:
        records = consumer.poll_batch(max_records, _SOON)
        if not records:
            consumer._poller.raise_if_unreachable()
        yield [record for record in records if record.offset < stop[partition_of(record.message)]]
        done = {
            partition_of(r.message)
            for r in records
            if r.offset + 1 >= stop[partition_of(r.message)]
        }
        done = (done | consumer.at_end) & waiting
        if done:
            waiting -= done
            consumer.pause(done)


def read_on(consumer: Consumer, max_records: int = 1000) -> Iterator[list[Record]]:
    """Yield batches forever; an empty one each time that nothing came for a second."""
    while True:
        yield consumer.poll_batch(max_records)


def read_to_end(consumer: Consumer, max_records: int = 1000) -> Iterator[list[Record]]:
    """Yield batches until the consumer has partitions, and has read each of them to its end."""
    while True:
        yield consumer.poll_batch(max_records, _SOON)
        mine = consumer.assignment
        if mine and mine <= consumer.at_end:
            return
