"""Every call into librdkafka ends: after a consumer joined, while it leaves, while a broker hangs."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psutil
import pytest
from tests.faults.answers import Answers

from penstock import Admin, Connection, Consumer
from penstock.embedded import Broker
from penstock.embedded.ports import free_ports
from penstock.errors import PenstockError, TransientError
from penstock.jobs.job_functions import _leave
from penstock.kafka import GroupOffsets
from penstock.testing import fill

ROUNDS, AT_ONCE = 36, 4
# What distinguishes a call that returns from one that hangs: no time-out is longer than ten seconds.
LIMIT = 60.0

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture
def _busy() -> Iterator[None]:
    """A processor that is busy with something else: races show up then."""
    burning = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    yield
    burning.kill()
    burning.wait()


@pytest.fixture
def consumer(connection: Connection, unique: str) -> Callable[[int], Consumer]:
    def make(number: int) -> Consumer:
        with Admin(connection) as admin:
            admin.create_topic(f"{unique}-{number}", 2)
        fill(connection, f"{unique}-{number}", [f"[{n}]" for n in range(10)])
        made = Consumer(connection, group=f"{unique}-{number}", auto_offset_reset="earliest")
        made.subscribe(f"{unique}-{number}")
        return made

    return make


def _each(work: Callable[[int], Any]) -> list[Any]:
    with ThreadPoolExecutor(AT_ONCE) as threads:
        return list(threads.map(work, range(ROUNDS)))


@pytest.mark.usefixtures("_busy")
def test_offsets_are_known_right_after_two_polls(
    consumer: Callable[[int], Consumer], unique: str
) -> None:
    def ask(number: int) -> tuple[int, bool]:
        with consumer(number) as member:
            for _ in range(2):
                member.poll(random.choice([0, 0.001, 0.1, 1]))
            began = time.monotonic()
            table = member.offset_info([f"{unique}-{number}"] * 2, [0, 1])
            return sum(table["maxOffset"].to_pylist()), time.monotonic() - began < LIMIT

    assert set(_each(ask)) == {(10, True)}


@pytest.mark.usefixtures("_busy")
def test_a_group_can_be_committed_to_as_soon_as_its_consumer_has_left(
    consumer: Callable[[int], Consumer], connection: Connection, unique: str
) -> None:
    def leave(number: int) -> int:
        with consumer(number) as member:
            until = time.monotonic() + random.choice([0, 0.05, 0.3, 1, 4]) * random.random()
            while time.monotonic() < until:
                member.poll(random.choice([0.001, 0.01, 0.05]))
            _leave(member)
            with GroupOffsets(connection, f"{unique}-{number}") as offsets:
                offsets.commit({(f"{unique}-{number}", 0): 3})
                return offsets.committed()[f"{unique}-{number}", 0]

    assert set(_each(leave)) == {3}


@pytest.fixture
def hanging() -> Iterator[tuple[Broker, Callable[[], None]]]:
    """A broker of its own, and a way to let it hang: it holds its connections and answers nothing."""
    with Broker() as broker:
        family = psutil.Process().children(recursive=True)
        java = [one for one in family if one.name() == "java" and _listens(one, broker)]

        def hang() -> None:
            assert java
            for process in java:
                process.suspend()

        yield broker, hang
        for process in java:
            process.resume()


def _listens(process: psutil.Process, broker: Broker) -> bool:
    port = int(broker.connection.brokers.split(",")[0].rpartition(":")[2])
    return port in {each.laddr.port for each in process.net_connections() if each.laddr}


def test_no_call_hangs_with_its_broker(
    hanging: tuple[Broker, Callable[[], None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.kafka.consuming.consumer_offsets._COMMITTING", 3.0)
    broker, hang = hanging
    where = ("t", 0)
    fill(broker.connection, "t", [f"[{n}]" for n in range(10)])
    group = GroupOffsets(broker.connection, "other", timeout=3)
    group.commit({where: 1})
    member = Consumer(broker.connection, group="g", auto_offset_reset="earliest")
    member.subscribe("t")
    while not member.poll(1):
        pass
    hang()

    outcomes = {
        "offset_info": _outcome(member.offset_info),
        "committed": _outcome(lambda: member.committed(timeout=1)),
        "watermarks": _outcome(lambda: member.watermarks(timeout=1)),
        "group commit": _outcome(lambda: group.commit({where: 2})),
        "group committed": _outcome(lambda: group.committed([where])),
    }
    local = {
        "position": _outcome(member.position),
        "assignment": _outcome(lambda: member.assignment),
        "member": _outcome(lambda: member.member_id),
        "seek": _outcome(lambda: member.seek({where: 5})),
        "pause": _outcome(lambda: member.pause([where])),
        "group close": _outcome(group.close),
    }
    outcomes |= {
        "commit": _outcome(lambda: member.commit({where: 3})),
        # The binding puts the calls of one client one after the other.
        "after a commit that hangs": _outcome(member.offset_info),
    }
    local["close"] = _outcome(member.close)
    assert set(outcomes.values()) == {TransientError}, outcomes
    assert not {name for name, error in local.items() if error is TimeoutError}, local


def test_a_commit_whose_answer_is_lost_is_sent_again_in_time() -> None:
    """Heartbeats wait behind it: without a time-out of its own, the session ends."""
    (port,) = free_ports(1)
    with Answers(port) as answers:
        advertised = {"advertised.listeners": f"CLIENT://127.0.0.1:{answers.port}"}
        with Broker(port=port, properties=advertised) as broker:
            fill(broker.connection, "t", [f"[{n}]" for n in range(10)])
            with Consumer(broker.connection, group="g", auto_offset_reset="earliest") as member:
                member.subscribe("t")
                while not member.poll(1):
                    pass
                answers.lose()
                assert member.commit({("t", 0): 3}) == {("t", 0): 3}
                assert member.poll(10) is not None
                assert member.committed() == {("t", 0): 3}


def _outcome(call: Callable[[], Any]) -> type | None:
    """What a call ended with: nothing, an error, or a time that no caller waits for."""
    began = time.monotonic()
    ended: type | None = None
    try:
        call()
    except TransientError:
        ended = TransientError
    except PenstockError as error:
        ended = type(error)
    return TimeoutError if time.monotonic() - began > LIMIT else ended
