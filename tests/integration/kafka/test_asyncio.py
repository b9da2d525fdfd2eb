"""What only the asyncio twins promise: a cancelled caller loses nothing, and the loop stays free."""

import asyncio
from collections.abc import Callable

import pytest

from penstock.config import Connection
from penstock.errors import WakeupError
from penstock.kafka import Admin, AsyncConsumer, AsyncProducer, Producer
from penstock.testing import fill, read_all

NewTopic = Callable[..., str]


def test_a_poll_that_is_cancelled_again_and_again_loses_no_record(
    connection: Connection, admin: Admin, new_topic: NewTopic, group: str
) -> None:
    topic = new_topic()
    count = 2000
    fill(connection, topic, [str(number) for number in range(count)])

    async def read() -> list[int]:
        found: list[int] = []
        async with AsyncConsumer(connection, group, auto_offset_reset="earliest") as consumer:
            consumer.subscribe(topic)
            while len(found) < count:
                # More than there is: the poll gathers, and is cancelled with its hands full.
                try:
                    batch = await asyncio.wait_for(consumer.poll_batch(count, 60), 0.02)
                except asyncio.TimeoutError:
                    batch = await consumer.poll_batch(7, 0)
                found += [int(record.value) for record in batch]
                if found:
                    await consumer.commit()
                    assert (await consumer.committed()).get((topic, 0)) == len(found)
        return found

    assert asyncio.run(read()) == list(range(count))
    assert admin.committed(group) == {(topic, 0): count}


def test_what_was_gathered_and_not_handed_out_is_not_committed(
    connection: Connection, admin: Admin, new_topic: NewTopic, group: str
) -> None:
    topic = new_topic()
    fill(connection, topic, [str(number) for number in range(100)])

    async def read() -> None:
        async with AsyncConsumer(connection, group, auto_offset_reset="earliest") as consumer:
            consumer.subscribe(topic)
            async for record in consumer:
                if record.value == b"41":
                    break
            assert consumer.position() == {(topic, 0): 42}
            await consumer.commit()
            consumer.seek({(topic, 0): 90})
            assert (await consumer.poll(30)).value == b"90"  # type: ignore[union-attr]

    asyncio.run(read())
    assert admin.committed(group) == {(topic, 0): 42}


def test_a_task_that_waits_can_be_woken_from_the_loop(
    connection: Connection, new_topic: NewTopic
) -> None:
    async def read() -> None:
        async with AsyncConsumer(connection) as consumer:
            consumer.assign(new_topic(), 0, 0)
            asyncio.get_running_loop().call_later(0.2, consumer.wakeup)
            with pytest.raises(WakeupError):
                await consumer.poll(60)

    asyncio.run(read())


def test_a_thousand_deliveries_can_be_awaited_at_once(
    connection: Connection, new_topic: NewTopic
) -> None:
    topic = new_topic()

    async def write() -> list[int]:
        async with AsyncProducer(connection) as producer:
            sent = [producer.send(topic, None, str(number)) for number in range(1000)]
            return [record.offset for record in await asyncio.gather(*sent)]

    assert sorted(asyncio.run(write())) == list(range(1000))


def test_a_cancelled_wait_for_a_delivery_leaves_the_record_sent(
    connection: Connection, new_topic: NewTopic
) -> None:
    topic = new_topic()

    async def write() -> None:
        async with AsyncProducer(connection, linger_ms=300) as producer:
            delivery = await producer.produce(topic, None, "kept")
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(_awaited(delivery), 0.01)
            assert (await delivery).offset == 0

    asyncio.run(write())
    assert [record.value for record in read_all(connection, topic)] == [b"kept"]


async def _awaited(delivery: object) -> object:
    return await delivery  # type: ignore[misc]


def test_the_loop_runs_on_while_a_consumer_waits(
    connection: Connection, new_topic: NewTopic
) -> None:
    async def both() -> int:
        ticks = 0
        async with AsyncConsumer(connection) as consumer:
            consumer.assign(new_topic(), 0, 0)
            waiting = asyncio.create_task(consumer.poll(0.5))
            while not waiting.done():
                ticks += 1
                await asyncio.sleep(0.01)
            assert await waiting is None
        return ticks

    # It would be one or two if the poll held the loop.
    assert asyncio.run(both()) > 5


def test_the_delivery_of_a_sync_producer_can_be_awaited_too(
    connection: Connection, new_topic: NewTopic
) -> None:
    topic = new_topic()

    async def write() -> int:
        producer = Producer(connection)
        return (await producer.produce(topic, None, "v")).offset

    assert asyncio.run(write()) == 0
