"""A poll is disturbed with half a batch in hand: what it has is neither lost nor committed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from penstock import Admin, AsyncConsumer, Connection, Consumer
from penstock.errors import OffsetOutOfRangeError, WakeupError
from penstock.record import Record
from penstock.testing import eventually, fill

VALUES = [b"%d" % number for number in range(10)]
Places = dict[tuple[str, int], int]
EARLY = {"auto_offset_reset": "earliest"}


def values(records: list[Record]) -> list[bytes]:
    return sorted(record.value for record in records)


def gathering(consumer: Consumer) -> Callable[[], bool]:
    """Whether the poll of another thread has all there is, and waits for more."""
    return lambda: len(consumer._buffer.ended) > 0


def test_a_wakeup_loses_nothing_of_a_batch(connection: Connection, unique: str) -> None:
    fill(connection, unique, VALUES)
    with (
        Consumer(connection, group=unique, **EARLY) as consumer,
        ThreadPoolExecutor(1) as pool,
    ):
        consumer.subscribe(unique)
        waiting = pool.submit(consumer.poll_batch, 100, 60)
        eventually(gathering(consumer))
        consumer.wakeup()
        with pytest.raises(WakeupError):
            waiting.result()
        assert consumer.position() == {(unique, 0): 0}
        assert consumer.commit() == {(unique, 0): 0}
        assert values(consumer.poll_batch(4, 10)) == VALUES[:4]
        assert consumer.commit() == {(unique, 0): 4}
        assert values(consumer.poll_batch(100, 0.3)) == VALUES[4:]
        assert consumer.commit() == {(unique, 0): 10}


def test_a_commit_at_revocation_takes_nothing_that_was_not_handed_out(
    connection: Connection, unique: str
) -> None:
    fill(connection, unique, VALUES)
    seen: list[Places] = []
    with (
        Consumer(connection, group=unique, **EARLY) as first,
        Consumer(connection, group=unique, **EARLY) as second,
        ThreadPoolExecutor(1) as pool,
    ):
        first.subscribe(unique, on_revoked=lambda consumer, _: seen.append(consumer.position()))
        waiting = pool.submit(first.poll_batch, 100, 60)
        eventually(gathering(first))
        second.subscribe(unique)
        eventually(lambda: seen or second.poll(0.1))
        first.wakeup()
        with pytest.raises(WakeupError):
            waiting.result()
        assert seen == [{(unique, 0): 0}]
        found = eventually(lambda: first.poll_batch(100, 0.1) + second.poll_batch(100, 0.1))
        more = first.poll_batch(100, 0.5) + second.poll_batch(100, 0.5)
    assert values(found + more) == VALUES


def test_a_bad_offset_in_one_partition_loses_nothing_of_another(
    connection: Connection, unique: str
) -> None:
    fill(connection, unique, VALUES * 2, partitions=2)
    with (
        Consumer(connection, auto_offset_reset="error") as consumer,
        ThreadPoolExecutor(1) as pool,
    ):
        consumer.assign({(unique, 0): 0, (unique, 1): 500})
        found = []
        waiting = pool.submit(consumer.poll_batch, 100, 60)
        with pytest.raises(OffsetOutOfRangeError):
            waiting.result()
        found += consumer.poll_batch(10, 10)
    assert values(found) == values_of_partition(connection, unique)


def values_of_partition(connection: Connection, topic: str) -> list[bytes]:
    with Admin(connection) as admin:
        end = admin.latest([(topic, 0)])[topic, 0]
    with Consumer(connection) as consumer:
        consumer.assign(topic, 0, 0)
        return values(consumer.poll_batch(end, 10))


async def leave_after_one(connection: Connection, topic: str) -> tuple[list[Record], Places]:
    """Deliver one of many records; commit the position at the revocation, as the guide does."""
    committed: list[Places] = []
    async with AsyncConsumer(connection, group=topic, **EARLY) as consumer:
        consumer.subscribe(
            topic,
            on_revoked=lambda sync, places: committed.append(sync.commit(sync.position(places))),
        )
        found = await consumer.poll_batch(1, 20)
    return found, committed[0]


def test_what_asyncio_read_ahead_is_not_committed_at_revocation(
    connection: Connection, unique: str
) -> None:
    fill(connection, unique, VALUES)
    found, committed = asyncio.run(leave_after_one(connection, unique))
    assert (values(found), committed) == (VALUES[:1], {(unique, 0): 1})
    with Consumer(connection, group=unique, **EARLY) as consumer:
        consumer.subscribe(unique)
        assert values(consumer.poll_batch(9, 20)) == VALUES[1:]


async def pause_and_resume(connection: Connection, topic: str) -> list[bytes]:
    async with AsyncConsumer(connection) as consumer:
        consumer.assign(topic, 0, 0)
        found = await consumer.poll_batch(1, 20)
        consumer.pause([(topic, 0)])
        assert await consumer.poll_batch(9, 0.5) == []
        consumer.resume([(topic, 0)])
        return values(found + await consumer.poll_batch(9, 20))


def test_a_pause_holds_back_what_asyncio_read_ahead_and_loses_none_of_it(
    connection: Connection, unique: str
) -> None:
    fill(connection, unique, VALUES)
    assert asyncio.run(pause_and_resume(connection, unique)) == VALUES


def test_what_waits_in_a_queue_is_not_committed(connection: Connection, unique: str) -> None:
    fill(connection, unique, VALUES)
    with Consumer(connection, group=unique, **EARLY) as consumer:
        consumer.subscribe(unique)
        queue = consumer.queues.partition(unique, 0)
        eventually(lambda: len(queue) == len(VALUES))
        record = queue.poll()
        assert record is not None and record.value == VALUES[0]
        assert consumer.commit() == {(unique, 0): 1}
