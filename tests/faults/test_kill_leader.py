"""Leaders of a cluster of three are killed with -9 under traffic: nothing confirmed is lost or doubled.

The kills are done once, for the sync and the asyncio clients side by side; each promise is a test.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from tests.faults.traffic import (
    KINDS,
    Ledger,
    Traffic,
    by_key,
    by_partition,
    jumps,
    wait_for_progress,
)

from penstock import Admin, Broker, Connection
from penstock.record import Record
from penstock.testing import eventually, read_all

PARTITIONS = 3
KILLS = 3
# How many records must come through without the dead node before it may come back.
WITHOUT = 200

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Broker]:
    with Broker(nodes=3) as broker:
        yield broker


@pytest.fixture(scope="module")
def ordeal(cluster: Broker) -> dict[str, Ledger]:
    """What the ledgers say after the leaders of three partitions were killed, one after the other."""
    names = {kind: f"leaders-{kind}-{os.getpid()}" for kind in KINDS}
    config = {"min.insync.replicas": 2}
    with Admin(cluster.connection) as admin:
        for name in names.values():
            admin.create_topic(name, PARTITIONS, 3, config)
    with ExitStack() as stack:
        flows = [
            stack.enter_context(KINDS[kind](cluster.connection, name))
            for kind, name in names.items()
        ]
        for partition in range(KILLS):
            kill_a_leader(cluster, flows, partition)
    return {kind: flow.ledger for kind, flow in zip(names, flows, strict=True)}


def kill_a_leader(cluster: Broker, flows: list[Traffic], partition: int) -> None:
    eventually(lambda: in_sync(cluster.connection, flows[0].topic))
    with Admin(cluster.connection) as admin:
        leader = admin.describe_topic(flows[0].topic).partitions[partition].leader
    assert leader is not None
    cluster.kill(leader)
    for flow in flows:
        flow.change_reader()
    wait_for_progress(flows, WITHOUT)
    cluster.restart(leader)
    wait_for_progress(flows, WITHOUT)


def in_sync(connection: Connection, topic: str) -> bool:
    with Admin(connection) as admin:
        return all(len(each.isr) == 3 for each in admin.describe_topic(topic).partitions)


def stored(cluster: Broker, ledger: Ledger) -> list[Record]:
    return read_all(cluster.connection, ledger.acknowledged[0].topic)


@pytest.fixture(params=list(KINDS))
def ledger(request: pytest.FixtureRequest, ordeal: dict[str, Ledger]) -> Ledger:
    return ordeal[request.param]


def test_no_client_raised_while_leaders_died(ledger: Ledger) -> None:
    assert ledger.broken == []
    assert ledger.readers == KILLS + 1
    assert len(ledger.acknowledged) > KILLS * WITHOUT


def test_every_acknowledged_record_is_there_exactly_once(cluster: Broker, ledger: Ledger) -> None:
    numbers = sorted(int(record.value) for record in stored(cluster, ledger))
    assert numbers == sorted(int(record.value) for record in ledger.acknowledged)
    assert numbers == list(range(len(numbers)))


def test_each_key_is_in_order(cluster: Broker, ledger: Ledger) -> None:
    found = by_key(stored(cluster, ledger))
    assert found == {key: sorted(numbers) for key, numbers in found.items()}
    assert found == by_key(ledger.acknowledged)


def test_a_record_is_where_its_delivery_said(cluster: Broker, ledger: Ledger) -> None:
    places = {(r.partition, r.offset): r.value for r in stored(cluster, ledger)}
    confirmed = [r for r in ledger.acknowledged if r.offset is not None]
    # A record that was sent again and was there already is acknowledged without an offset.
    again = {(r.partition, r.value) for r in ledger.acknowledged if r.offset is None}

    assert {(r.partition, r.offset): r.value for r in confirmed}.items() <= places.items()
    assert len(confirmed) + len(again) == len(places)
    assert again <= {(partition, value) for (partition, _), value in places.items()}


def test_readers_saw_every_record_and_left_none_out(cluster: Broker, ledger: Ledger) -> None:
    assert jumps(ledger.handled) == []
    there = by_partition(stored(cluster, ledger))
    assert {where: sorted(set(seen)) for where, seen in by_partition(ledger.handled).items()} == {
        where: sorted(offsets) for where, offsets in there.items()
    }


def test_commits_end_behind_the_last_record(cluster: Broker, ledger: Ledger) -> None:
    topic = ledger.acknowledged[0].topic
    with Admin(cluster.connection) as admin:
        assert admin.committed(topic) == admin.latest(admin.partitions([topic]))
