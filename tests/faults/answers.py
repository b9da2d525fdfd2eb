"""A way to a broker on which answers are lost: a connection that was open then hears none any more."""

from __future__ import annotations

import socket
from contextlib import suppress
from threading import Event, Thread

from typing_extensions import Self

_HOST = "127.0.0.1"


class Answers:
    """Takes connections at `port`, and passes on what comes to a broker at another port."""

    def __init__(self, broker_port: int) -> None:
        self._server = socket.create_server((_HOST, 0))
        self.port: int = self._server.getsockname()[1]
        self._broker_port = broker_port
        self._sockets: list[socket.socket] = []
        self._lost = Event()

    def __enter__(self) -> Self:
        Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        for each in (self._server, *self._sockets):
            # The system wakes up those who wait for it only where it is shut down first.
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def lose(self) -> None:
        """Lose every answer to a request on one of the connections that are open now."""
        self._lost.set()
        self._lost = Event()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._server.accept()
            except OSError:
                return
            try:
                broker = socket.create_connection((_HOST, self._broker_port))
            except OSError:  # it starts
                client.close()
                continue
            self._sockets += [client, broker]
            Thread(target=_pass_on, args=(client, broker, Event()), daemon=True).start()
            Thread(target=_pass_on, args=(broker, client, self._lost), daemon=True).start()


def _pass_on(source: socket.socket, target: socket.socket, lost: Event) -> None:
    with suppress(OSError):
        while data := source.recv(1 << 16):
            if not lost.is_set():
                target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_RDWR)
