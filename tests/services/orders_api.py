"""An HTTP service with connections that stay open, for tests of the sink: stores what it is sent."""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any

from tests.services.json_api import Answer, Seen
from typing_extensions import Self


class OrdersApi:
    """A service on a free port; `respond` returns an Answer. Stopped, it can be started again."""

    def __init__(self, respond: Callable[[Seen], Answer] = lambda _: Answer(b"ok", 201)) -> None:
        self.respond = respond
        self.requests: list[Seen] = []
        self.connections = 0
        self.port = 0
        self._server: ThreadingHTTPServer | None = None
        self._open: set[socket.socket] = set()
        self.lock = Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/orders"

    def start(self) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", self.port), _handler(self))
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def stop(self) -> None:
        """End it as a crash would: open connections are closed, too."""
        if self._server:
            self._server.shutdown()
            self._server.server_close()
            self._server = None
        self.close_connections()

    def close_connections(self) -> None:
        """Close the connections that clients keep open."""
        with self.lock:
            for each in self._open:
                with suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)
            self._open.clear()

    def opened(self, connection: socket.socket) -> None:
        with self.lock:
            self.connections += 1
            self._open.add(connection)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def _handler(api: OrdersApi) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def setup(self) -> None:
            super().setup()
            api.opened(self.connection)

        def _answer(self) -> None:
            size = int(self.headers.get("Content-Length", 0))
            body = self.rfile.read(size)
            if len(body) < size:  # the client was killed while it sent: no service takes that
                self.close_connection = True
                return
            seen = Seen(self.command, self.path, {}, dict(self.headers), body)
            with api.lock:
                api.requests.append(seen)
            answer = api.respond(seen)
            self.send_response(answer.status)
            for name, value in {"Content-Length": str(len(answer.data)), **answer.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            with suppress(ConnectionError):
                self.wfile.write(answer.data)

        do_POST = do_PUT = do_PATCH = do_DELETE = _answer  # noqa: N815 - the names of http.server

        def log_message(self, *_: Any) -> None:
            """Write nothing."""

    return Handler
