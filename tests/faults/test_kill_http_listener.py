"""A listener that is killed while clients send: what was acknowledged is in the topic."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPException
from threading import Event, Thread

import pytest
from tests.faults.kills import kills
from tests.faults.suite.rounds import ROOT

from penstock import Admin, Connection
from penstock.testing import eventually, read_all

KILLS = kills(6)
CLIENTS = 4

pytestmark = pytest.mark.timeout(600)


class Client:
    """Sends numbers, each one until it is acknowledged."""

    def __init__(self, name: int, listener: Listeners) -> None:
        self.acknowledged: list[str] = []
        self.attempts = 0
        self._name = name
        self._listener = listener
        self._ended = Event()
        self._thread = Thread(target=self._send, daemon=True)
        self._thread.start()

    def end(self) -> None:
        self._ended.set()
        self._thread.join(60)
        assert not self._thread.is_alive()

    def _send(self) -> None:
        number = 0
        connection: HTTPConnection | None = None
        while not self._ended.is_set():
            names = [f"{self._name}-{number}-{line}" for line in range(3)]
            try:
                connection = connection or HTTPConnection(
                    "127.0.0.1", self._listener.port, timeout=10
                )
                self.attempts += 1
                connection.request("POST", "/", "\n".join(f'"{name}"' for name in names))
                reply = connection.getresponse()
                reply.read()
            except (OSError, HTTPException):
                connection = None
                self._ended.wait(0.005)
                continue
            if reply.status == 200:
                self.acknowledged += names
                number += 1


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
    dice = random.Random(unique)
    clients = [Client(number, listeners) for number in range(CLIENTS)]

    def acknowledged() -> int:
        return sum(len(client.acknowledged) for client in clients)

    for _ in range(KILLS):
        until = acknowledged() + dice.randint(1, 60)
        eventually(lambda until=until: acknowledged() >= until, every=0.001)
        listeners.kill()
        listeners.start()
    for client in clients:
        client.end()
    found = Counter(record.value.decode().strip('"') for record in read_all(connection, unique))
    names = [name for client in clients for name in client.acknowledged]
    assert not [name for name in names if name not in found]
    # Only requests without a reply were sent again: at most one for each client and kill, of 3 records.
    twice = sum(count - 1 for count in found.values())
    requests = sum(client.attempts for client in clients)
    print(f"{KILLS} kills, {requests} requests, {len(names)} records acknowledged, {twice} twice")
    assert twice <= 3 * CLIENTS * (KILLS + 1)
