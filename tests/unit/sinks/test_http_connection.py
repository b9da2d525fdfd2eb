"""Interim replies (102, 103) are passed over: each request gets the reply that is its own."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

import pytest
from tests.unit.imports.http_reading import import_all

from penstock.errors import TransientError
from penstock.http.http_auth import authorization
from penstock.http.http_client import Ask
from penstock.http.http_session import HttpSession

INTERIM = b"HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n"
ACCEPTED = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]"
REFUSED = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 5\r\n\r\nwrong"


@contextmanager
def replying(*replies: bytes) -> Iterator[str]:
    """Serve one connection: a reply for each request, as these bytes."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            client, _ = server.accept()
            with client:
                for reply in replies:
                    client.recv(65536)
                    client.sendall(reply)
                client.recv(65536)

        thread = Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}/"
        thread.join()


def test_each_request_gets_its_own_reply_on_a_connection_that_stays_open() -> None:
    replies = (INTERIM + ACCEPTED, REFUSED, INTERIM + REFUSED, ACCEPTED)
    with (
        replying(*replies) as url,
        HttpSession(authorization(None, None, 5.0), timeout=5.0) as session,
    ):
        got = [session.send(Ask(url, "POST", {})) for _ in replies]
    assert [(each.status, each.body) for each in got] == [
        (200, b"[]"),
        (400, b"wrong"),
        (400, b"wrong"),
        (200, b"[]"),
    ]


def test_a_page_after_interim_replies_is_imported() -> None:
    page = b'HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n[{"id": 7}]'
    with replying(INTERIM + page) as url:
        assert import_all({"url": url}, pages=1).ids == [7]


def test_a_server_that_only_sends_interim_replies_is_taken_for_away() -> None:
    with (
        replying(b"HTTP/1.1 103 Early Hints\r\n\r\n" * 200) as url,
        HttpSession(authorization(None, None, 5.0), timeout=5.0) as session,
        pytest.raises(TransientError, match="more than 100 interim replies"),
    ):
        session.send(Ask(url, "POST", {}))
