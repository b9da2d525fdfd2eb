"""A process dies or is late inside a transaction: no one reads a part of it, and the next one goes on."""

from __future__ import annotations

import asyncio
import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from penstock import Admin, AsyncProducer, Connection, Consumer, Producer
from penstock.errors import FencedError
from penstock.kafka.consuming.loops import read_span
from penstock.testing import eventually, fill

COPIER = Path(__file__).with_name("copier.py")
PARTITIONS = 3
KILLS = 6


class Copier:
    """A run of copier.py."""

    def __init__(self, **settings: object) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(COPIER), json.dumps({"batch": 20, "hold_at": None} | settings)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def hears(self, word: str) -> str:
        """Wait for a line that begins with a word."""
        assert self._process.stdout is not None
        heard = []
        for line in self._process.stdout:
            heard.append(line)
            if line.startswith(word):
                return line
        raise AssertionError(f"the copier ended without {word!r}; it said {heard}")

    def goes_on(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write("go on\n")
        self._process.stdin.flush()

    def signal(self, number: int) -> None:
        self._process.send_signal(number)

    def kill(self) -> None:
        """With -9; a dead one is fine."""
        with self._process:
            self._process.kill()


@pytest.fixture
def copier(connection: Connection, unique: str) -> Iterator[Callable[..., Copier]]:
    """Starts copiers of one name, from topic `UNIQUE-in` to `UNIQUE-out`."""
    started = []
    fill(connection, f"{unique}-out", [], partitions=PARTITIONS)

    def start(**settings: object) -> Copier:
        names = {"name": unique, "source": f"{unique}-in", "target": f"{unique}-out"}
        started.append(Copier(brokers=connection.brokers, **names, **settings))
        return started[-1]

    yield start
    for each in started:
        each.kill()


def fill_input(connection: Connection, unique: str, count: int) -> list[bytes]:
    values = [b"%d" % number for number in range(count)]
    fill(connection, f"{unique}-in", values, partitions=PARTITIONS)
    return values


def output(connection: Connection, unique: str, isolation: str = "read_committed") -> list[bytes]:
    """What a reader of the output sees now."""
    with Admin(connection) as admin:
        ends = admin.latest(admin.partitions([f"{unique}-out"]))
    with Consumer(connection, isolation_level=isolation, timeout=0.1) as consumer:
        batches = read_span(consumer, dict.fromkeys(ends, 0), ends)
        return [record.value for batch in batches for record in batch]


def committed(connection: Connection, group: str) -> int:
    with Admin(connection) as admin:
        return sum(admin.committed(group).values())


def test_a_kill_between_produce_and_commit_leaves_nothing_to_see(
    connection: Connection, unique: str, copier: Callable[..., Copier]
) -> None:
    values = fill_input(connection, unique, 10)
    first = copier(hold_at=0)
    first.hears("ready")
    first.kill()
    assert output(connection, unique) == []
    assert len(output(connection, unique, "read_uncommitted")) > 0
    assert committed(connection, unique) == 0

    second = copier()
    eventually(lambda: committed(connection, unique) == len(values))
    second.kill()
    assert sorted(output(connection, unique)) == sorted(values)
    everything = output(connection, unique, "read_uncommitted")
    assert len(everything) > len(values), "the killed run's records were there, and are not seen"


def test_a_copy_is_exactly_once_over_kills_at_random_moments(
    connection: Connection, unique: str, copier: Callable[..., Copier]
) -> None:
    dice = random.Random(unique)
    values = fill_input(connection, unique, 3000)
    for _ in range(KILLS):
        running = copier()
        running.hears("committed")
        time.sleep(dice.uniform(0, 0.3))  # the moment of the kill is the point, not a wait
        running.kill()
        seen = output(connection, unique)
        assert len(seen) == len(set(seen)) == committed(connection, unique)
        assert len(seen) < len(values), "the kills came too late to disturb anything"
    last = copier(batch=500)
    eventually(lambda: committed(connection, unique) == len(values))
    last.kill()
    assert sorted(output(connection, unique)) == sorted(values)


def test_a_process_that_slept_through_its_successor_is_fenced(
    connection: Connection, unique: str, copier: Callable[..., Copier]
) -> None:
    values = fill_input(connection, unique, 10)
    zombie = copier(hold_at=0)
    zombie.hears("ready")
    zombie.signal(signal.SIGSTOP)
    successor = copier()
    eventually(lambda: committed(connection, unique) == len(values))
    zombie.signal(signal.SIGCONT)
    zombie.goes_on()
    assert unique in zombie.hears("FencedError")
    successor.kill()
    assert sorted(output(connection, unique)) == sorted(values)


def test_a_second_producer_of_the_same_name_fences_the_first(
    connection: Connection, unique: str
) -> None:
    fill(connection, f"{unique}-out", [])
    first = Producer(connection, transactional_id=unique)
    first.begin_transaction()
    first.produce(f"{unique}-out", value="of the first").result()
    with Producer(connection, transactional_id=unique) as second:
        second.begin_transaction()
        second.produce(f"{unique}-out", value="of the second")
        second.commit_transaction()
    with pytest.raises(FencedError, match=unique):
        first.commit_transaction()
    with pytest.raises(FencedError):
        first.begin_transaction()
    with pytest.raises(FencedError):
        first.produce(f"{unique}-out", value="too late")
    assert output(connection, unique) == [b"of the second"]


def test_a_fenced_producer_gets_errors_from_its_deliveries(
    connection: Connection, unique: str
) -> None:
    fill(connection, f"{unique}-out", [])
    first = Producer(connection, transactional_id=unique)
    first.begin_transaction()
    first.produce(f"{unique}-out", value="of the first").result()
    with Producer(connection, transactional_id=unique) as second:
        second.init_transactions()
    late = first.produce(f"{unique}-out", value="too late")
    with pytest.raises(FencedError):
        late.result(30)
    with pytest.raises(FencedError):
        first.abort_transaction()
    assert output(connection, unique) == []


async def fence(connection: Connection, unique: str) -> None:
    first = AsyncProducer(connection, transactional_id=unique)
    second = AsyncProducer(connection, transactional_id=unique)
    async with second, second.transaction():
        await second.send(f"{unique}-out", value="of the first that ends well")
    with pytest.raises(FencedError, match=unique):
        async with first.transaction():
            await first.send(f"{unique}-out", value="taken back")
            async with AsyncProducer(connection, transactional_id=unique) as third:
                await third.init_transactions()


def test_asyncio_producers_fence_each_other(connection: Connection, unique: str) -> None:
    fill(connection, f"{unique}-out", [])
    asyncio.run(fence(connection, unique))
    assert output(connection, unique) == [b"of the first that ends well"]
