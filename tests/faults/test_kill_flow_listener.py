"""A flow that listens is killed while clients send: what was answered 2xx goes through the flow.

The whole of it, with the figures: PENSTOCK_KILLS=20 PENSTOCK_REQUESTS=100000, and `-s`.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from tests.faults.http_clients import CLIENTS, sending
from tests.faults.kills import kills
from tests.faults.suite.rounds import ROOT

from penstock import Admin, Connection
from penstock.embedded.ports import free_ports
from penstock.testing import eventually, read_all

KILLS = kills(2)

pytestmark = pytest.mark.timeout(300 + 120 * KILLS)


class Listener:
    """The process of the flow, started again after each kill."""

    def __init__(self, *arguments: str) -> None:
        self._arguments = arguments
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{os.environ.get('PYTHONPATH', '')}"}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.flow_listener_process", *self._arguments],
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env=environment,
        )
        assert self._process.stdout
        assert self._process.stdout.readline() == "ready\n"

    def kill(self) -> None:
        """Kill -9: Python and Spark's Java process."""
        if self._process is None:
            return
        others = psutil.Process(self._process.pid).children(recursive=True)
        for process in [psutil.Process(self._process.pid), *others]:
            process.kill()
        self._process.wait(30)
        self._process = None


@pytest.fixture
def port() -> int:
    return free_ports(1)[0]


@pytest.fixture
def listener(connection: Connection, unique: str, tmp_path: Path, port: int) -> Iterator[Listener]:
    with Admin(connection) as admin:
        admin.create_topic(f"{unique}.out", 1)
    found = Listener(connection.brokers, unique, str(tmp_path), str(port))
    found.start()
    yield found
    found.kill()


def test_what_was_answered_goes_through_the_flow_after_kills(
    connection: Connection, unique: str, listener: Listener, port: int
) -> None:
    at_start = 0

    def published() -> int:
        with Admin(connection) as admin:
            return sum(admin.latest(admin.partitions([f"{unique}.out"])).values())

    def restart() -> None:
        nonlocal at_start
        listener.kill()
        at_start = published()
        listener.start()

    with sending(lambda: port, "/in") as clients:
        clients.send_through(KILLS, random.Random(unique), restart, lambda: published() > at_start)

    names = clients.names
    found: Counter[str] = Counter()

    def is_complete() -> bool:
        found.clear()
        records = read_all(connection, f"{unique}.out")
        found.update(record.value.decode().strip('"') for record in records)
        return found.keys() >= set(names)

    eventually(is_complete, timeout=600, every=1)
    twice = sum(count - 1 for count in found.values())
    print(f"{KILLS} kills, {len(names)} accepted, {len(found)} published, {twice} again")
    # Only a request that had no reply, one for each client and kill, may be there without an answer.
    assert len(set(found) - set(names)) <= CLIENTS
