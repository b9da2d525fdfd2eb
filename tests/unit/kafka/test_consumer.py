"""What a consumer does with messages between librdkafka and its caller, without a broker."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import KafkaError, Message, TopicPartition

from penstock import AsyncConsumer, Connection, Consumer
from penstock.errors import ConfigError, NoMessageError, TerminalError, WakeupError

Step = list[Message] | None
WAKEUP = None
END = KafkaError(KafkaError._PARTITION_EOF)


class FakeClient:
    """librdkafka's consumer in memory. Each call of `consume` returns the next of the steps."""

    def __init__(self, consumer: Consumer, *steps: Step) -> None:
        self.steps = list(steps)
        self.wakeup = consumer.wakeup
        self.assigned: list[TopicPartition] = []
        self.calls: list[tuple[str, Any]] = []

    def consume(self, most: int, _wait: float) -> list[Message]:
        step = self.steps.pop(0) if self.steps else []
        if step is None:
            self.wakeup()
            return []
        assert len(step) <= most
        return step

    def assignment(self) -> list[TopicPartition]:
        return self.assigned

    def assign(self, places: list[TopicPartition]) -> None:
        self.assigned = places

    def position(self, places: list[TopicPartition]) -> list[TopicPartition]:
        return [TopicPartition(place.topic, place.partition, 100) for place in places]

    def commit(self, **named: Any) -> list[TopicPartition]:
        self.calls.append(("commit", plain(named.get("offsets"))))
        return named.get("offsets") or []

    def store_offsets(self, offsets: list[TopicPartition]) -> None:
        self.calls.append(("store", plain(offsets)))

    def seek(self, place: TopicPartition) -> None:
        self.calls.append(("seek", plain([place])))

    def pause(self, places: list[TopicPartition]) -> None:
        self.calls.append(("pause", [(place.topic, place.partition) for place in places]))

    def resume(self, places: list[TopicPartition]) -> None:
        self.calls.append(("resume", [(place.topic, place.partition) for place in places]))

    def subscribe(self, _topics: list[str], **callbacks: Any) -> None:
        self.callbacks = callbacks

    def incremental_assign(self, places: list[TopicPartition]) -> None:
        self.calls.append(("incremental_assign", plain(places)))

    def close(self) -> None:
        self.calls.append(("close", None))


def plain(places: list[TopicPartition] | None) -> dict[tuple[str, int], int] | None:
    return places and {(place.topic, place.partition): place.offset for place in places}


def message(offset: int, partition: int = 0) -> Message:
    return Message(topic="t", partition=partition, offset=offset, value=b"%d" % offset)


def end_of(partition: int) -> Message:
    return Message(topic="t", partition=partition, offset=9, error=END)


@pytest.fixture
def made() -> Iterator[Callable[..., tuple[Consumer, FakeClient]]]:
    """Makes consumers over a fake client."""
    consumers = []

    def make(*steps: Step, **settings: Any) -> tuple[Consumer, FakeClient]:
        consumer = Consumer(Connection(brokers="127.0.0.1:1"), "g", **settings)
        consumer._client.raw.close()
        fake = consumer._client.raw = FakeClient(consumer, *steps)
        consumer.assign({("t", 0): 0, ("t", 1): 0})
        consumers.append(consumer)
        return consumer, fake

    yield make
    for consumer in consumers:
        consumer.close()


def offsets(records: list[Any]) -> list[int]:
    return [record.offset for record in records]


def test_a_batch_ends_when_it_is_full_or_the_time_is_up(made: Any) -> None:
    consumer, _ = made([message(0)], [message(1)], [message(2)])
    assert offsets(consumer.poll_batch(2, -1)) == [0, 1]
    assert offsets(consumer.poll_batch(2, 0.01)) == [2]
    assert consumer.poll(0) is None
    with pytest.raises(NoMessageError, match=r"no message came within 0\.01 s"):
        consumer.read(0.01)


def test_the_limits_of_a_poll_are_the_clients_unless_given(made: Any) -> None:
    consumer, _ = made([message(0), message(1)], timeout=0.02, max_poll_records=2)
    assert offsets(consumer.poll_batch()) == [0, 1]
    assert consumer.poll_batch() == []
    with pytest.raises(ConfigError, match="a batch of 0 records"):
        consumer.poll_batch(0)


def test_a_wakeup_keeps_what_was_gathered_for_the_next_poll(made: Any) -> None:
    consumer, fake = made([message(5), message(6)], WAKEUP)
    with pytest.raises(WakeupError):
        consumer.poll_batch(10, -1)
    assert consumer.position() == {("t", 0): 5, ("t", 1): 100}
    consumer.commit()
    assert fake.calls == [("commit", {("t", 0): 5, ("t", 1): 100})]
    assert offsets(consumer.poll_batch(2)) == [5, 6]


def test_the_end_of_a_partition_counts_when_its_records_are_delivered(made: Any) -> None:
    consumer, _ = made([message(7), end_of(0)], WAKEUP, [message(8)])
    with pytest.raises(WakeupError):
        consumer.poll_batch(10, -1)
    assert consumer.at_end == set()
    assert offsets(consumer.poll_batch(1)) == [7]
    assert consumer.at_end == {("t", 0)}
    assert offsets(consumer.poll_batch(1)) == [8]
    assert consumer.at_end == set()


def test_automatic_commits_take_delivered_records_only(made: Any) -> None:
    consumer, fake = made([message(0), message(1)], WAKEUP, enable_auto_commit=True)
    with pytest.raises(WakeupError):
        consumer.poll_batch(10, -1)
    assert offsets(consumer.poll_batch(1)) == [0]
    consumer.commit()
    assert fake.calls == [("store", {("t", 0): 1}), ("commit", None)]


def test_a_pause_makes_librdkafka_read_again_what_waits(made: Any) -> None:
    consumer, fake = made([message(3), message(4)], WAKEUP)
    with pytest.raises(WakeupError):
        consumer.poll_batch(10, -1)
    consumer.pause(iter([("t", 0)]))
    assert fake.calls == [("seek", {("t", 0): 3}), ("pause", [("t", 0)])]
    assert consumer.poll(0) is None


def test_a_partition_that_was_revoked_takes_its_records_along(made: Any) -> None:
    consumer, _ = made([message(0), message(0, 1)], WAKEUP)
    with pytest.raises(WakeupError):
        consumer.poll_batch(10, -1)
    consumer._buffer.rebalanced("Revoked", [TopicPartition("t", 0)])
    assert [record.partition for record in consumer.poll_batch(2, 0)] == [1]


def test_on_assigned_chooses_where_to_begin(made: Any) -> None:
    consumer, fake = made()
    consumer.subscribe("t", on_assigned=lambda _consumer, found: dict.fromkeys(found[1:], 7))
    fake.callbacks["on_assign"](fake, [TopicPartition("t", 0), TopicPartition("t", 1)])
    assert consumer.assigned_at == {("t", 0): -1001, ("t", 1): 7}
    assert consumer.subscription == ["t"]


def test_a_cooperative_member_takes_new_partitions_in_addition(made: Any) -> None:
    consumer, fake = made(partition_assignment_strategy="cooperative-sticky")
    consumer.subscribe(["t"], on_assigned=lambda _consumer, found: dict.fromkeys(found, 7))
    fake.callbacks["on_assign"](fake, [TopicPartition("t", 0)])
    assert fake.calls == [("incremental_assign", {("t", 0): 7})]


def test_lost_partitions_are_revoked_ones_unless_asked_for(made: Any) -> None:
    consumer, fake = made()
    seen: list[Any] = []
    consumer.subscribe("t", on_revoked=lambda *what: seen.append(what))
    fake.callbacks["on_lost"](fake, [TopicPartition("t", 0)])
    consumer.subscribe("t", on_revoked=lambda *_: 1 / 0, on_lost=lambda *what: seen.append(what))
    fake.callbacks["on_lost"](fake, [TopicPartition("t", 1)])
    assert seen == [(consumer, [("t", 0)]), (consumer, [("t", 1)])]


def test_what_a_callback_raises_comes_out_of_the_next_poll(made: Any) -> None:
    consumer, fake = made([message(0)])
    consumer.subscribe("t", on_revoked=lambda *_: 1 / 0)
    fake.callbacks["on_revoke"](fake, [TopicPartition("t", 1)])
    with pytest.raises(ZeroDivisionError):
        consumer.poll()
    assert consumer.poll().offset == 0


def test_a_cancelled_poll_of_the_twin_loses_nothing() -> None:
    async def read() -> list[int]:
        async with AsyncConsumer(Connection(brokers="127.0.0.1:1"), "g") as consumer:
            consumer.sync._client.raw.close()
            fake = consumer.sync._client.raw = FakeClient(
                consumer.sync, [message(0)], [message(1), message(2)]
            )
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(consumer.poll_batch(10, 60), 0.1)
            found = await consumer.poll_batch(2)
            await consumer.commit()
            assert fake.calls == [("store", {("t", 0): 2}), ("commit", None)]
            return offsets(found + await consumer.poll_batch(1))

    assert asyncio.run(read()) == [0, 1, 2]


def test_a_partitions_queue_has_its_records_and_the_consumer_the_others(made: Any) -> None:
    consumer, _ = made([message(0)], [message(0, 1)], [message(1)], [message(1, 1)])
    queue = consumer.queues.partition("t", 1)
    assert offsets(consumer.poll_batch(2, -1)) == [0, 1]
    assert consumer.queues.partition("t", 1) is queue
    assert [(r.partition, r.offset) for r in queue.poll_batch(5, 0.01)] == [(1, 0), (1, 1)]


def test_a_full_queue_pauses_its_partition_until_it_is_read(
    made: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.kafka.consuming.queues._MOST", 2)
    consumer, fake = made([message(0, 1), message(1, 1)], [message(0)])
    queue = consumer.queues.partition("t", 1)
    assert len(queue) == 2
    assert offsets(consumer.poll_batch(1)) == [0]
    assert fake.calls == [("pause", [("t", 1)])]
    assert offsets(queue.poll_batch(2, 0)) == [0, 1]
    assert queue.poll(0.01) is None
    assert fake.calls[1:] == [("resume", [("t", 1)])]


Full = Callable[[], tuple[Consumer, FakeClient]]


@pytest.fixture
def full(made: Any, monkeypatch: pytest.MonkeyPatch) -> Full:
    """Makes consumers whose queue for the partition 1 is full, so that it is held."""
    monkeypatch.setattr("penstock.kafka.consuming.queues._MOST", 2)

    def make() -> tuple[Consumer, FakeClient]:
        consumer, fake = made([message(0, 1), message(1, 1)], [message(0)])
        assert len(consumer.queues.partition("t", 1)) == 2
        assert offsets(consumer.poll_batch(1)) == [0]
        assert fake.calls == [("pause", [("t", 1)])]
        fake.calls.clear()
        return consumer, fake

    return make


def test_a_partition_that_the_caller_paused_is_not_resumed_when_its_queue_has_room(
    full: Full,
) -> None:
    consumer, fake = full()
    consumer.pause([("t", 1)])
    assert fake.calls == [("seek", {("t", 1): 0}), ("pause", [("t", 1)])]
    assert consumer.poll(0.01) is None
    assert fake.calls[2:] == []
    consumer.resume([("t", 1)])
    assert fake.calls[2:] == [("resume", [("t", 1)])]


def test_a_pause_that_is_over_before_the_next_poll_leaves_no_partition_paused(full: Full) -> None:
    consumer, fake = full()
    consumer.pause([("t", 1)])
    consumer.resume([("t", 1)])
    assert consumer.poll(0.01) is None
    assert fake.calls[-1] == ("resume", [("t", 1)])


def test_a_resumed_partition_waits_until_there_is_room_in_its_queue(full: Full) -> None:
    consumer, fake = full()
    consumer.resume([("t", 1), ("t", 0)])
    assert fake.calls == [("resume", [("t", 0)])]
    assert consumer.poll(0.01) is None
    queue = consumer.queues.partition("t", 1)
    assert (len(queue), len(fake.calls)) == (2, 1)
    assert offsets(queue.poll_batch(2, 0)) == [0, 1]
    assert queue.poll(0.01) is None
    assert fake.calls[1:] == [("resume", [("t", 1)])]
    # Where it is full again, it is held again.
    fake.steps = [[message(2, 1), message(3, 1)]]
    assert len(queue) == 2
    assert consumer.poll(0.01) is None
    assert fake.calls[2:] == [("pause", [("t", 1)])]


def test_a_held_partition_that_goes_away_is_not_left_paused(full: Full) -> None:
    consumer, fake = full()
    consumer._buffer.rebalanced("Revoked", [TopicPartition("t", 1)])
    fake.assigned = [TopicPartition("t", 0)]
    assert consumer.poll(0.01) is None
    assert fake.calls == [("resume", [("t", 1)])]


def test_the_twin_leaves_a_partition_paused_that_the_caller_paused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("penstock.kafka.consuming.queues._MOST", 2)

    async def read() -> list[tuple[str, Any]]:
        async with AsyncConsumer(Connection(brokers="127.0.0.1:1"), "g") as consumer:
            consumer.sync._client.raw.close()
            fake = consumer.sync._client.raw = FakeClient(
                consumer.sync, [message(0, 1), message(1, 1)]
            )
            consumer.assign({("t", 1): 0})
            queue = consumer.sync.queues.partition("t", 1)
            assert len(queue) == 2
            assert await consumer.poll(0.01) is None
            consumer.pause([("t", 1)])
            assert await consumer.poll(0.01) is None
            return list(fake.calls)

    paused = ("pause", [("t", 1)])
    assert asyncio.run(read()) == [paused, ("seek", {("t", 1): 0}), paused]


def test_events_come_in_their_order(made: Any) -> None:
    consumer, _ = made([message(4)])
    main = consumer.queues.main
    consumer._buffer.rebalanced("Assigned", [TopicPartition("t", 0, 4)])
    first = main.event(1)
    assert (first.name, first.change, first.partition) == ("Rebalance", "Assigned", ("t", 0, 4))
    assert (main.event(1).name, bool(main.event(0.01))) == ("Fetch", False)


def test_a_closed_consumer_says_so(made: Any) -> None:
    consumer, fake = made()
    consumer.close()
    assert fake.calls == [("close", None)]
    for call in (consumer.poll, consumer.commit, consumer.position, consumer.unsubscribe):
        with pytest.raises(TerminalError, match="this consumer is closed"):
            call()
