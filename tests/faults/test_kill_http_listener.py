"""A listener that is killed while clients send: what was acknowledged is in the topic."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator

import pytest
from tests.faults.http_clients import CLIENTS, sending
from tests.faults.kills import kills
from tests.faults.suite.rounds import ROOT

from penstock import Admin, Connection
from penstock.testing import read_all

KILLS = kills(6)
# The records of each request.
LINES = 3

pytestmark = pytest.mark.timeout(600)


class Listeners:
    """One listener after the other, each killed."""

    def __init__(self, connection: Connection, topic: str) -> None:
        command = [sys.executable, "-m", "tests.integration.imports.listener_process"]
        environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{os.environ.get('PYTHONPATH', '')}"}
        self.process = subprocess.Popen(
            [*command, connection.brokers, topic],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env=environment,
        )
        self.pid = self.port = 0
        self.start()

    def start(self) -> None:
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write("start\n")
        self.process.stdin.flush()
        self.pid, self.port = map(int, self.process.stdout.readline().split())

    def restart(self) -> None:
        self.kill()
        self.start()

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)


@pytest.fixture
def listeners(connection: Connection, unique: str) -> Iterator[Listeners]:
    with Admin(connection) as admin:
        admin.create_topic(unique, 3)
    found = Listeners(connection, unique)
    yield found
    found.kill()
    found.process.kill()
    found.process.wait(30)


def test_what_was_acknowledged_is_in_the_topic_after_kills(
    connection: Connection, unique: str, listeners: Listeners
) -> None:
    with sending(lambda: listeners.port, "/", LINES) as clients:
        clients.send_through(KILLS, random.Random(unique), listeners.restart)
    found = Counter(record.value.decode().strip('"') for record in read_all(connection, unique))
    assert not [name for name in clients.names if name not in found]
    # Only requests without a reply were sent again: at most one for each client and kill.
    twice = sum(count - 1 for count in found.values())
    print(
        f"{KILLS} kills, {len(clients.names)} acknowledged, {twice} twice, {clients.attempts} requests"
    )
    assert twice <= LINES * CLIENTS * (KILLS + 1)
