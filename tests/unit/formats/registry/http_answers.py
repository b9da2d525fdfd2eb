"""A real HTTP server on this machine that gives prepared answers, and stores what it was asked."""

from __future__ import annotations

import json
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl


class Answers:
    """A server that gives prepared answers, the last one repeatedly, and records the requests."""

    def __init__(self, context: ssl.SSLContext | None = None) -> None:
        self.answers: list[tuple[int, Any, dict[str, str]]] = []
        self.asked: list[tuple[str, str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        if context:
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.server.server_port}"

    def say(self, status: int, body: Any, **headers: str) -> None:
        self.answers.append((status, body, headers))

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def answer(self) -> None:
                length = int(self.headers.get("Content-Length", 0))
                data = self.rfile.read(length)
                is_form = self.headers.get_content_type() == "application/x-www-form-urlencoded"
                body = dict(parse_qsl(data.decode())) if is_form else json.loads(data or b"null")
                outer.asked.append((self.command, self.path, body))
                outer.headers.append(dict(self.headers))
                first = outer.answers[0]
                status, answer, headers = outer.answers.pop(0) if outer.answers[1:] else first
                data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
                self.send_response(status)
                for name, value in {**headers, "Content-Length": str(len(data))}.items():
                    self.send_header(name.replace("_", "-"), value)
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = do_PUT = answer  # noqa: N815

            def log_message(self, *_: Any) -> None:
                pass

        return Handler

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
