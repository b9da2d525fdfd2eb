"""Clients that send to a listener while it is killed, and remember what was acknowledged.

`PENSTOCK_REQUESTS=100000 PENSTOCK_KILLS=20` is the long form.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException
from threading import Event, Thread

from penstock.testing import eventually

CLIENTS = 4


class Client:
    """Sends names, each request until it is acknowledged, while it may."""

    def __init__(self, number: int, port: Callable[[], int], path: str, lines: int) -> None:
        self.acknowledged: list[str] = []
        self.attempts = 0
        self.allowed = 0
        self._number = number
        self._port = port
        self._path = path
        self._lines = lines
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
            if number >= self.allowed:
                self._ended.wait(0.005)
                continue
            names = [f"{self._number}-{number}-{line}" for line in range(self._lines)]
            try:
                connection = connection or HTTPConnection("127.0.0.1", self._port(), timeout=30)
                self.attempts += 1
                connection.request("POST", self._path, "\n".join(f'"{name}"' for name in names))
                reply = connection.getresponse()
                reply.read()
            except (OSError, HTTPException):
                connection = None
                self._ended.wait(0.005)
                continue
            if reply.status in (200, 202):
                self.acknowledged += names
                number += 1


class Clients:
    """Some clients of one listener, which send a number of requests."""

    def __init__(self, clients: Sequence[Client], lines: int) -> None:
        self._clients = clients
        self._lines = lines

    @property
    def names(self) -> list[str]:
        """Return what was acknowledged."""
        return [name for client in self._clients for name in client.acknowledged]

    @property
    def attempts(self) -> int:
        """Return how many requests were sent."""
        return sum(client.attempts for client in self._clients)

    def send_through(
        self,
        kills: int,
        dice: random.Random,
        restart: Callable[[], None],
        is_at_work: Callable[[], bool] = lambda: True,
    ) -> None:
        """Kill the listener while they send, some times, let them send the rest, and end them.

        Before each kill some requests bring the listener to work, and most of them are sent after that.
        """
        each = int(os.environ.get("PENSTOCK_REQUESTS", 100 * (kills + 1))) // (kills + 1)
        for number in range(kills):
            self._allow(number * each + max(1, each // 10))
            eventually(is_at_work, timeout=600, every=0.1)
            self._allow((number + 1) * each)
            self._wait_for(number * each + dice.randint(each // 5, each * 9 // 10))
            restart()
        self._allow((kills + 1) * each)
        self._wait_for((kills + 1) * each)
        for client in self._clients:
            client.end()

    def _allow(self, requests: int) -> None:
        for client in self._clients:
            client.allowed = -(-requests // len(self._clients))

    def _count(self) -> int:
        return sum(len(client.acknowledged) for client in self._clients) // self._lines

    def _wait_for(self, requests: int) -> None:
        eventually(lambda: self._count() >= requests, timeout=900, every=0.001)


@contextmanager
def sending(port: Callable[[], int], path: str, lines: int = 1) -> Iterator[Clients]:
    """Yield clients that send to a path of the port that the listener has now."""
    clients = [Client(number, port, path, lines) for number in range(CLIENTS)]
    yield Clients(clients, lines)
