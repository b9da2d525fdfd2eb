"""The only broker goes away, by a kill and by a clean stop, and comes back: clients need no code for it.

The troubles are gone through once, by the sync and the asyncio clients side by side.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from tests.faults.traffic import KINDS, Ledger, Traffic, by_key, by_place, jumps, wait_for_progress

from penstock import Admin, AsyncConsumer, AsyncProducer, Broker, Consumer, Producer
from penstock.record import Record
from penstock.testing import eventually, fill, read_all

SOME = 200

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def single() -> Iterator[Broker]:
    """A broker that belongs to these tests alone: they end it more than once."""
    with Broker() as broker:
        yield broker


@pytest.fixture(scope="module")
def ordeal(single: Broker) -> dict[str, Ledger]:
    """What the ledgers say after the broker was killed and came back, and was stopped and came back."""
    names = {kind: f"returns-{kind}-{os.getpid()}" for kind in KINDS}
    for name in names.values():
        fill(single.connection, name, [], partitions=3)
    with ExitStack() as stack:
        flows = [
            stack.enter_context(KINDS[kind](single.connection, name))
            for kind, name in names.items()
        ]
        wait_for_progress(flows, SOME)
        single.kill()
        wait_for_errors(flows)
        single.restart()
        wait_for_progress(flows, SOME)
        single.restart()
        wait_for_progress(flows, SOME)
    return {kind: flow.ledger for kind, flow in zip(names, flows, strict=True)}


def wait_for_errors(flows: list[Traffic]) -> None:
    """Wait for the writers' callbacks. A reader's comes with its next poll, when it has committed."""
    for ledger in (flow.ledger for flow in flows):
        eventually(lambda w=ledger: w.broken or "ERROR" in {error[0] for error in w.writer_errors})


@pytest.fixture(params=list(KINDS))
def ledger(request: pytest.FixtureRequest, ordeal: dict[str, Ledger]) -> Ledger:
    return ordeal[request.param]


def test_neither_poll_nor_produce_raises_while_the_broker_is_away(ledger: Ledger) -> None:
    assert ledger.broken == []
    assert len(ledger.acknowledged) >= 3 * SOME


def test_everything_that_was_produced_is_delivered_once_and_in_order(
    single: Broker, ledger: Ledger
) -> None:
    found = by_key(read_all(single.connection, ledger.acknowledged[0].topic))
    assert found == by_key(ledger.acknowledged)
    assert found == {key: sorted(numbers) for key, numbers in found.items()}
    assert sum(map(len, found.values())) == len(ledger.acknowledged)


def test_the_same_reader_reads_on_and_leaves_nothing_out(ledger: Ledger) -> None:
    assert ledger.readers == 1
    assert jumps(ledger.handled) == []
    # Not the times: a record that is sent again may be stamped a millisecond later.
    assert by_place(ledger.handled) == by_place(ledger.acknowledged)


def test_the_reader_commits_on(single: Broker, ledger: Ledger) -> None:
    topic = ledger.acknowledged[0].topic
    with Admin(single.connection) as admin:
        assert admin.committed(topic) == admin.latest(admin.partitions([topic]))


def test_the_error_callbacks_were_called(single: Broker, ledger: Ledger) -> None:
    for errors in (ledger.writer_errors, ledger.reader_errors):
        names = {(level, name) for level, name, _ in errors}
        assert names == {("ERROR", "_ALL_BROKERS_DOWN"), ("WARNING", "_TRANSPORT")}
        refused = [text for _, name, text in errors if name == "_TRANSPORT"]
        assert any(single.bootstrap_servers in text for text in refused)


async def made_while_away(broker: Broker, topic: str, errors: list[str]) -> list[Record | None]:
    """Make all four clients, send and subscribe, let the broker come, and give what is read."""
    connection, reader = broker.connection, {"auto_offset_reset": "earliest"}
    groups = f"{topic}-sync", f"{topic}-asyncio"
    with (
        Producer(connection) as producer,
        Consumer(connection, groups[0], **reader, on_error=lambda *e: errors.append(e[1])) as sync,
    ):
        async with (
            AsyncProducer(connection) as twin,
            AsyncConsumer(connection, groups[1], **reader) as consumer,
        ):
            sent = producer.produce(topic, "k", "sync"), await twin.produce(topic, "k", "asyncio")
            sync.subscribe(topic)
            consumer.subscribe(topic)
            eventually(lambda: sync.poll(0.1) is None and "_ALL_BROKERS_DOWN" in errors)
            assert await consumer.poll(0.5) is None
            await asyncio.to_thread(broker.restart)
            assert {sent[0].result(60).offset, (await sent[1]).offset} == {0, 1}
            found = [sync.poll(30), sync.poll(30)]
            return [*found, await consumer.poll(30), await consumer.poll(30)]


def test_clients_that_are_made_while_the_broker_is_away_work_when_it_comes(
    single: Broker, unique: str
) -> None:
    fill(single.connection, unique, [])
    single.kill()
    errors: list[str] = []
    found = asyncio.run(made_while_away(single, unique, errors))
    values = [record.value for record in found if record is not None]
    assert sorted(values) == [b"asyncio", b"asyncio", b"sync", b"sync"]
    assert values[:2] == values[2:]
