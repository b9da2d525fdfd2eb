"""An HTTP API for tests: a real server on a free port, whose replies a test determines by a function."""

from __future__ import annotations

import json
import ssl
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from typing_extensions import Self


@dataclass(frozen=True)
class Seen:
    """A request, as the server got it."""

    method: str
    path: str
    params: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes

    def number(self, name: str, default: int = 0) -> int:
        return int(self.params.get(name, default))


@dataclass(frozen=True)
class Answer:
    """What the server replies: bytes as they are, anything else as JSON."""

    content: Any = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def data(self) -> bytes:
        return (
            self.content if isinstance(self.content, bytes) else json.dumps(self.content).encode()
        )


class JsonApi:
    """A server; `respond` may be replaced while it runs. Stopped, it can be started again at its port."""

    def __init__(
        self, respond: Callable[[Seen], Any] = lambda _: [], tls: ssl.SSLContext | None = None
    ) -> None:
        self.respond = respond
        self.tls = tls
        self.requests: list[Seen] = []
        self.port = 0
        self._server: ThreadingHTTPServer | None = None

    @property
    def url(self) -> str:
        return f"http{'s' if self.tls else ''}://127.0.0.1:{self.port}/items"

    def start(self) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", self.port), _handler(self))
        self._server.daemon_threads = True
        if self.tls:
            self._server.socket = self.tls.wrap_socket(self._server.socket, server_side=True)
        self.port = self._server.server_address[1]
        Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def stop(self) -> None:
        if self._server:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def _handler(api: JsonApi) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            split = urlsplit(self.path)
            size = int(self.headers.get("Content-Length", 0))
            params = dict(parse_qsl(split.query, keep_blank_values=True))
            body = self.rfile.read(size)
            seen = Seen(self.command, split.path, params, dict(self.headers), body)
            api.requests.append(seen)
            given = api.respond(seen)
            answer = given if isinstance(given, Answer) else Answer(given)
            self.send_response(answer.status)
            headers = {"Content-Length": str(len(answer.data)), **answer.headers}
            for name, value in headers.items():
                if value:  # an empty length: the reply ends with the connection
                    self.send_header(name, value)
            self.end_headers()
            with suppress(ConnectionError):  # a client that did not wait
                self.wfile.write(answer.data)

        do_GET = do_POST = do_PUT = _answer  # noqa: N815 - the names of http.server

        def log_message(self, *_: Any) -> None:
            """Write nothing."""

    return Handler
