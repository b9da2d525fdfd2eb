"""What a producer does with records between its caller and librdkafka, without a broker."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import KafkaError, Message

from penstock import AsyncProducer, Connection, Producer
from penstock.errors import ConfigError, FormatError, PenstockError, QueueFullError, TerminalError
from penstock.kafka.producing.arguments import headers_of

AWAY = Connection(brokers="127.0.0.1:1")
Made = Callable[..., tuple[Producer, "FakeClient"]]


class FakeClient:
    """librdkafka's producer in memory: takes `room` records, and answers for them when it is polled."""

    def __init__(self, room: int = 100, error: KafkaError | None = None) -> None:
        self.room = room
        self.error = error
        self.waiting: list[tuple[Any, ...]] = []
        self.sent: list[tuple[Any, ...]] = []

    def produce(self, *message: Any) -> None:
        if len(self.waiting) >= self.room:
            raise BufferError
        self.waiting.append(message)

    def poll(self, _timeout: float) -> int:
        waiting, self.waiting = self.waiting, []
        for topic, value, key, partition, answer, *_ in waiting:
            self.sent.append((topic, key, value, partition))
            answer(self.error, Message(topic, 3, len(self.sent) - 1, key=key, value=value))
        return len(waiting)

    def flush(self, timeout: float) -> int:
        self.poll(timeout)
        return 0

    def close(self) -> None:
        self.poll(0)

    def __len__(self) -> int:
        return len(self.waiting)


@pytest.fixture
def made() -> Made:
    """Makes producers over a fake client."""

    def make(fake: FakeClient | None = None, **settings: Any) -> tuple[Producer, FakeClient]:
        producer, fake = Producer(AWAY, **settings), FakeClient() if fake is None else fake
        producer._sender.client = fake
        producer._sender.produce = fake.produce
        return producer, fake

    return make


def test_a_record_is_sent_and_its_receipt_answers(made: Made) -> None:
    producer, fake = made()
    receipt = producer.produce("t", "k", "v")
    assert (receipt.done(), len(producer), producer.delivered) == (False, 1, 0)
    assert (receipt.result().offset, receipt.done()) == (0, True)
    producer.produce("t", 7, {"a": 1}, "json", partition=2)
    producer.flush()
    assert fake.sent == [("t", "k", "v", -1), ("t", "7", b'{"a":1}', 2)]
    assert (producer.delivered, producer.failed, len(producer)) == (2, 0, 0)


def test_a_full_queue_is_waited_for_and_then_an_error(made: Made) -> None:
    producer, fake = made(FakeClient(room=1), queue_timeout=0.0)
    producer.produce("t", None, "1")
    with pytest.raises(QueueFullError, match="took no record for 0 s"):
        producer.produce("t", None, "2")
    producer.queue_timeout = 5.0
    producer.produce("t", None, "3")
    producer.flush()
    assert [value for _, _, value, _ in fake.sent] == ["1", "3"]


def test_a_failed_delivery_is_raised_once(made: Made) -> None:
    producer, _ = made(FakeClient(error=KafkaError(KafkaError.MSG_SIZE_TOO_LARGE)))
    receipt = producer.produce("t", None, "1")
    producer.produce_table("t", [{"v": "2"}, {"v": "3"}], value="v")
    with pytest.raises(PenstockError, match="3 records were not delivered"):
        producer.raise_failures()
    producer.flush()
    with pytest.raises(PenstockError, match="too large"):
        receipt.result()
    assert producer.failed == 3


def test_a_failure_that_was_reported_is_not_raised_by_flush(made: Made) -> None:
    producer, _ = made(FakeClient(error=KafkaError(KafkaError.MSG_SIZE_TOO_LARGE)))
    reported: list[PenstockError | None] = []
    producer.produce("t", None, "1", on_delivery=lambda error, _record: reported.append(error))
    with pytest.raises(PenstockError, match="too large"):
        producer.produce("t", None, "2").result()
    producer.flush()
    assert [type(error).__name__ for error in reported] == ["RecordError"]


TOO_LONG_INSIDE = ["a"] * 10 + ["b" * 200] + ["c"] * 3


def test_of_a_split_value_that_is_refused_no_piece_is_sent(made: Made) -> None:
    producer, fake = made()
    producer.sizes.message, producer.sizes.buffer = 50, 100
    with pytest.raises(FormatError, match="204 bytes cannot be split"):
        producer.produce("t", "k", TOO_LONG_INSIDE, "json")
    producer.flush()
    assert (fake.sent, len(producer), producer.delivered) == ([], 0, 0)


def test_of_a_split_value_that_is_refused_no_piece_is_sent_by_the_twin() -> None:
    async def sent() -> list[tuple[Any, ...]]:
        async with AsyncProducer(AWAY) as producer:
            fake = producer._sender.client = FakeClient()
            producer._sender.produce = fake.produce
            producer.sizes.message, producer.sizes.buffer = 50, 100
            with pytest.raises(FormatError, match="204 bytes cannot be split"):
                await producer.produce("t", "k", TOO_LONG_INSIDE, "json")
            await producer.flush()
            return fake.sent

    assert asyncio.run(sent()) == []


def test_what_a_callback_raises_comes_out_of_poll(made: Made) -> None:
    producer, _ = made()
    producer.produce("t", None, "1", on_delivery=lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        producer.poll()
    assert producer.poll() == 0


def test_the_users_function_chooses_the_partition(
    made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    producer, fake = made(partitioner=lambda _topic, key, count: key[0] % count)
    monkeypatch.setattr(producer._partitions, "count", lambda *_: 3)
    producer.produce("t", "a", "1")
    producer.produce("t", "a", "2", partition=0)
    producer.produce_table("t", [{"k": "b", "v": "3"}], key="k", value="v")
    producer.flush()
    assert [partition for *_, partition in fake.sent] == [1, 0, 2]


def test_a_closed_producer_says_so(made: Made) -> None:
    producer, fake = made()
    with producer:
        producer.produce("t", None, "1")
    assert len(fake.sent) == 1
    producer.close()
    with pytest.raises(TerminalError, match="this producer is closed"):
        producer.produce("t", None, "2")


def test_a_transaction_needs_a_name(made: Made) -> None:
    producer, _ = made()
    with pytest.raises(ConfigError, match="transactional_id=NAME"), producer.transaction():
        pass


def test_records_on_their_way_keep_their_producer(made: Made) -> None:
    """What ends a process delivers what producers hold that no variable names any more."""

    def lost() -> tuple[weakref.ref[Producer], FakeClient]:
        producer, fake = made()
        producer.produce("t", None, "1")
        return weakref.ref(producer), fake

    held, fake = lost()
    gc.collect()
    assert held() is not None
    fake.poll(0)
    gc.collect()
    assert held() is None


@pytest.mark.parametrize(
    "headers", [{"\ud800": "a"}, {"a": "\ud800"}, [("é", b"1"), ("\udfff", None)]]
)
def test_half_of_a_surrogate_pair_in_a_header_is_refused(headers: Any) -> None:
    with pytest.raises(ConfigError, match="half of a surrogate pair is not text"):
        headers_of(headers)


def test_a_zero_in_the_name_of_a_header_is_refused_and_in_its_value_allowed() -> None:
    with pytest.raises(ConfigError, match="librdkafka ends names at a zero"):
        headers_of({"a\0b": "1"})
    assert headers_of({"a": "\0"}) == [("a", "\0")]
