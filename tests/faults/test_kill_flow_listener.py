"""A flow that listens is killed while clients send: what was answered 2xx goes through the flow."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from threading import Event, Thread

import psutil
import pytest
from tests.faults.kills import kills
from tests.faults.suite.rounds import ROOT

from penstock import Admin, Connection
from penstock.embedded.ports import free_ports
from penstock.testing import eventually, read_all

KILLS = kills(2)
CLIENTS = 4

pytestmark = pytest.mark.timeout(300 + 120 * KILLS)


class Client:
    """Sends numbers, each one until it is answered with 202."""

    def __init__(self, name: int, port: int) -> None:
        self.accepted: list[bytes] = []
        self._name = name
        self._port = port
        self._ended = Event()
        self._thread = Thread(target=self._send, daemon=True)
        self._thread.start()

    def end(self) -> None:
        self._ended.set()
        self._thread.join(60)
        assert not self._thread.is_alive()

    def _send(self) -> None:
        connection: HTTPConnection | None = None
        while not self._ended.wait(0.005):
            body = b"%d-%d" % (self._name, len(self.accepted))
            try:
                connection = connection or HTTPConnection("127.0.0.1", self._port, timeout=30)
                connection.request("POST", "/in", body)
                reply = connection.getresponse()
                reply.read()
            except (OSError, HTTPException):
                connection = None
                continue
            if reply.status == 202:
                self.accepted.append(body)


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
    dice = random.Random(unique)
    clients = [Client(number, port) for number in range(CLIENTS)]

    def accepted() -> int:
        return sum(len(client.accepted) for client in clients)

    for _ in range(KILLS):
        until = accepted() + dice.randint(20, 400)
        eventually(lambda until=until: accepted() >= until, every=0.001)
        listener.kill()
        listener.start()
    for client in clients:
        client.end()

    names = [name for client in clients for name in client.accepted]
    found: Counter[bytes] = Counter()

    def is_complete() -> bool:
        found.clear()
        found.update(record.value for record in read_all(connection, f"{unique}.out"))
        return found.keys() >= set(names)

    eventually(is_complete, timeout=180, every=0.5)
    twice = sum(count - 1 for count in found.values())
    print(f"{KILLS} kills, {len(names)} accepted, {len(found)} published, {twice} again")
    # Only a request that had no reply, one for each client and kill, may be there without an answer.
    assert len(set(found) - set(names)) <= CLIENTS
