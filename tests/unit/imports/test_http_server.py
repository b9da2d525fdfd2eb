"""The server of listeners: clients that are too slow, and what it answers when it ends."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

import pytest

from penstock.imports.http_listener.http_requests import Head
from penstock.imports.http_listener.http_server import (
    Exchange,
    HttpServer,
    Response,
    ServerOptions,
)

HEAD = b"POST / HTTP/1.1\r\nHost: a\r\n"
WHOLE = HEAD + b"Content-Length: 2\r\n\r\nab"


class Echo:
    """Replies with the body, at once or later, with 50 MB, or with a status that has no body."""

    def exchange(self, head: Head) -> Exchange:
        async def answer(body: bytes) -> Response:
            await asyncio.sleep(0.6 if head.target == "/later" else 0)
            if head.target == "/large":
                return Response(200, b"x" * 50_000_000)
            return Response(204 if head.target == "/none" else 200, body)

        return Exchange(100, answer)


@contextmanager
def serving(patience: float) -> Iterator[int]:
    loop = asyncio.new_event_loop()
    thread = Thread(target=loop.run_forever)
    thread.start()
    server = HttpServer(ServerOptions("127.0.0.1", 0, patience=patience), Echo())
    sockets = asyncio.run_coroutine_threadsafe(server.listen(), loop).result()
    try:
        yield sockets.sockets[0].getsockname()[1]
    finally:
        asyncio.run_coroutine_threadsafe(server.close(5), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def everything(client: socket.socket) -> bytes:
    return b"".join(iter(lambda: client.recv(65536), b""))


@pytest.mark.parametrize(
    ("sent", "replied"),
    [
        (HEAD, b"HTTP/1.1 408 "),
        (HEAD + b"Content-Length: 9\r\n\r\nx", b"HTTP/1.1 408 "),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\nx", b"HTTP/1.1 408 "),
        (b"", b""),
    ],
)
def test_a_client_that_sends_too_slowly_is_refused(sent: bytes, replied: bytes) -> None:
    with serving(0.2) as port, socket.create_connection(("127.0.0.1", port), 30) as client:
        client.sendall(sent)
        found = everything(client)
        assert found.startswith(replied)
        assert bool(found) == bool(replied)


def test_a_client_that_does_not_read_is_given_up() -> None:
    with serving(0.2) as port, socket.create_connection(("127.0.0.1", port), 30) as client:
        client.sendall(WHOLE.replace(b"POST / ", b"POST /large "))
        client.recv(1, socket.MSG_PEEK | socket.MSG_WAITALL)
        with socket.create_connection(("127.0.0.1", port), 30) as other:
            other.sendall(WHOLE.replace(b"POST / ", b"POST /later "))
            other.shutdown(socket.SHUT_WR)
            assert everything(other).endswith(b"ab")
        with pytest.raises(ConnectionError):
            while True:
                client.sendall(b"x" * 1000)


def test_the_time_of_an_answer_is_not_that_of_the_client() -> None:
    with serving(0.2) as port, socket.create_connection(("127.0.0.1", port), 30) as client:
        client.sendall(WHOLE.replace(b"POST / ", b"POST /later "))
        client.shutdown(socket.SHUT_WR)
        assert everything(client).endswith(b"\r\n\r\nab")


def test_a_status_without_a_body_has_none() -> None:
    with serving(30) as port, socket.create_connection(("127.0.0.1", port), 30) as client:
        client.sendall(WHOLE.replace(b"POST / ", b"POST /none ") + WHOLE)
        client.shutdown(socket.SHUT_WR)
        first, _, second = everything(client).partition(b"\r\n\r\n")
        assert first == b"HTTP/1.1 204 No Content\r\nConnection: keep-alive"
        assert second.endswith(b"Content-Length: 2\r\n\r\nab")


def test_idle_connections_end_with_the_server() -> None:
    with serving(30) as port:
        client = socket.create_connection(("127.0.0.1", port), 30)
        client.sendall(WHOLE)
        assert client.recv(1000).endswith(b"ab")
    with client:
        assert client.recv(10) == b""
