"""Hostile requests are refused, each with a reason; ordinary ones are not."""

from __future__ import annotations

import logging
import socket
import sqlite3
import threading
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import httpx
import pytest
import uvicorn
from fastapi import APIRouter
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect
from tests.unit.server.conftest import PASSWORD, SPEC, YAML, Api

from penstock.control.store import ControlStore
from penstock.control.store.login_limit import Limits, LoginLimit
from penstock.control.store.tables import TOKENS
from penstock.server import api_server
from penstock.server.api_server import ApiServer
from penstock.server.app import create_app
from penstock.server.app_state import end_streams
from penstock.server.listening import listen
from penstock.server.settings import ServerSettings
from penstock.testing import eventually

ONE = "/api/v1/deployments/orders"
LIST = "/api/v1/deployments"


@contextmanager
def serving(store: ControlStore, **settings: Any) -> Iterator[int]:
    """Run the application in a real server; yield its port."""
    app = create_app(store, ServerSettings(**settings))
    config = uvicorn.Config(app, port=0, log_level="warning", proxy_headers=False)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        eventually(lambda: server.started)
        yield int(server.servers[0].sockets[0].getsockname()[1])
    finally:
        end_streams(app)
        server.should_exit = True
        thread.join(30)


@pytest.mark.parametrize(
    "host",
    ["evil.example", "127.0.0.1.evil.example", "127.0.0.1@evil.example", "", "a b", "evil:80"],
)
def test_a_request_for_another_host_is_refused(client: TestClient, host: str) -> None:
    reply = client.get(LIST, headers={"Host": host})

    assert reply.status_code == 421
    assert "allowed: 127.0.0.1, ::1, localhost" in reply.json()["detail"]


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST.:8080", "127.0.0.1:1", "[::1]:9"])
def test_the_names_of_this_machine_are_allowed(client: TestClient, host: str) -> None:
    assert client.get(LIST, headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.example", "null", "http://127.0.0.1:3000", "https://127.0.0.1", "",
        "http://127.0.0.1.evil.example", "file://", "http://[", "http://127.0.0.1@evil.example",
    ],
)  # fmt: skip
@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS", "DELETE"])
def test_a_web_page_of_another_origin_is_refused(
    client: TestClient, origin: str, method: str
) -> None:
    reply = client.request(method, ONE, headers={"Origin": origin})

    assert reply.status_code == 403, reply.text
    assert "access-control-allow-origin" not in reply.headers


def test_pages_of_the_server_itself_and_configured_ones_are_allowed(api: Api) -> None:
    client = api(allowed_origins=frozenset({"https://console.example"}))

    for origin in ("http://127.0.0.1", "https://console.example"):
        assert client.get(LIST, headers={"Origin": origin}).status_code == 200


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_another_site_can_link_to_the_server_and_nothing_else(
    client: TestClient, site: str
) -> None:
    headers = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "no-cors"}
    visit = headers | {"Sec-Fetch-Mode": "navigate"}

    assert client.get("/api/docs", headers=headers).status_code == 403
    assert client.get("/api/docs", headers=visit).status_code == 200
    assert client.post(ONE + "/stop", headers=visit).status_code == 403


@pytest.mark.parametrize(
    "kind",
    ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "", "text/html"],
)
def test_a_change_with_the_body_of_a_form_is_refused(client: TestClient, kind: str) -> None:
    for method, path in [("PUT", ONE), ("POST", ONE + "/validate"), ("PATCH", ONE)]:
        reply = client.request(method, path, content=b"{}", headers={"Content-Type": kind})
        assert reply.status_code == 415
        assert "allowed: application/json, application/yaml" in reply.json()["detail"]


def test_a_body_that_is_too_large_is_refused(api: Api) -> None:
    client = api(largest_body=1000)
    whole = client.put(ONE, content=b"#" * 1001, headers=YAML)
    parts = client.put(ONE, content=iter([b"#" * 600] * 2), headers=YAML)
    exact = client.post(ONE + "/validate", content=b"#" * 1000, headers=YAML)

    assert (whole.status_code, parts.status_code, exact.status_code) == (413, 413, 200)
    assert "1000 bytes" in whole.json()["detail"]


def test_a_large_body_is_refused_on_the_wire_before_it_was_sent(store: ControlStore) -> None:
    head = f"PUT {ONE} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/yaml\r\n"
    with serving(store, largest_body=1000, body_seconds=0.2) as port:
        for rest, status in [
            ("Content-Length: 99999999\r\n\r\n", b"413"),
            ("Transfer-Encoding: chunked\r\n\r\n7d0\r\n" + "#" * 2000 + "\r\n", b"413"),
            ("Content-Length: 500\r\n\r\n#", b"408"),
            ("Content-Length: -5\r\n\r\n", b"400"),
            ("Content-Length: 5\r\nContent-Length: 6\r\n\r\n#####", b"400"),
            ("Host: evil.example\r\nContent-Length: 0\r\n\r\n", b"400"),
        ]:
            with socket.create_connection(("127.0.0.1", port), timeout=30) as wire:
                wire.sendall((head + rest).encode())
                assert wire.recv(20).split()[1] == status, rest


def test_a_login_has_a_small_body(api: Api, people: None) -> None:
    given = {"user": "ann", "password": PASSWORD, "name": "x" * 30_000}
    reply = api(login=True).post("/api/v1/login", json=given)

    assert (reply.status_code, "20000 bytes" in reply.json()["detail"]) == (413, True)


def test_a_connection_that_sends_no_whole_head_is_closed(
    store: ControlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api_server, "_HEAD", 1.0)
    whole = b"GET /health HTTP/1.1\r\nHost: localhost\r\n"
    server = ApiServer(create_app(store, ServerSettings()), listen("127.0.0.1", 0))
    server.start()
    try:
        address = ("127.0.0.1", server.port)
        sent = [b"", whole + b"X-", whole + b"\r\n" + b"GET /he"]
        wires = [socket.create_connection(address, timeout=30) for _ in sent]
        for wire, data in zip(wires, sent, strict=True):
            wire.sendall(data)
        replies = [b"".join(iter(partial(wire.recv, 1000), b"")) for wire in wires]
        for wire in wires:
            wire.close()
    finally:
        server.stop()

    assert [reply.count(b"HTTP/1.1 200") for reply in replies] == [0, 0, 1]


PATHS = [
    "/api/v1/deployments/..%2f..%2fetc%2fpasswd",
    "/api/v1/deployments/../../../etc/passwd",
    "/api/v1/deployments/%2e%2e/%2e%2e/keys",
    "/api/v1/deployments/a%00b",
    "/api/v1/deployments/%ff%fe",
    "/api/v1/deployments/" + "a" * 5000,
    "/../keys", "//etc/passwd", "/api/v1/deployments/orders/history/..%2f1",
]  # fmt: skip


def test_names_do_not_lead_to_files(store: ControlStore) -> None:
    with serving(store) as port:
        for path in PATHS:
            with socket.create_connection(("127.0.0.1", port), timeout=30) as wire:
                head = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
                wire.sendall(head.encode())
                assert wire.recv(20).split()[1] == b"404", path


def test_a_request_from_another_machine_needs_a_login(store: ControlStore) -> None:
    app = create_app(store, ServerSettings())
    other = TestClient(app, "http://127.0.0.1", client=("10.0.0.9", 5))

    assert other.get(LIST).status_code == 403


def test_a_websocket_is_closed(client: TestClient) -> None:
    with pytest.raises(WebSocketDisconnect), client.websocket_connect("/api/v1/events"):
        pass


def basic(text: str) -> dict[str, str]:
    return {"Authorization": "Basic " + b64encode(text.encode()).decode()}


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": ""},
        {"Authorization": "Basic"},
        {"Authorization": "Basic %%%"},
        {"Authorization": "Bearer"},
        {"Authorization": "Bearer pst_unknown"},
        {"Authorization": "Bearer eyJhbGciOiJub25lIn0.e30."},
        {"Authorization": "Digest a"},
        basic("ann"),
        basic("ann:wrong"),
        basic("a\x00b:wrong"),
        basic(":"),
    ],
)
def test_without_a_valid_user_every_route_is_closed(
    api: Api, people: None, headers: dict[str, str]
) -> None:
    client = api(login=True)
    paths = (LIST, "/api/v1/me", "/metrics", "/api/docs", "/api/v1/openapi.json", "/api/v1/nothing")
    for path in paths if not headers else paths[:1]:
        reply = client.get(path, headers=headers)
        assert reply.status_code == 401, path
        assert reply.headers["www-authenticate"].startswith("Basic")
    assert client.get("/health").status_code == 200


def test_a_viewer_writes_nothing(api: Api, people: None, store: ControlStore) -> None:
    vic = api("vic")
    ann = api("ann")
    assert ann.put(ONE, content=SPEC.format("orders"), headers=YAML).status_code == 201
    before = store.deployments.find("orders")
    replies = [
        vic.put(ONE, content=SPEC.format("orders"), headers=YAML),
        vic.post(ONE + "/validate", content=SPEC.format("orders"), headers=YAML),
        vic.patch(ONE, json={"desired": "stopped"}),
        vic.delete(ONE),
        *(vic.post(f"{ONE}/{action}") for action in ("pause", "resume", "stop", "restart")),
        vic.post(ONE + "/rollback", json={"generation": 1}),
        vic.post("/api/v1/workers/w1/drain"),
        vic.get("/api/v1/audit"),
        vic.get("/api/v1/users"),
        vic.post("/api/v1/users", json={"name": "x", "password": PASSWORD, "grants": ["admin"]}),
        vic.patch("/api/v1/users/vic", json={"grants": ["admin"]}),
        vic.post("/api/v1/tokens", json={"user": "vic", "name": "t"}),
        vic.get("/api/v1/tokens"),
    ]

    assert {reply.status_code for reply in replies} == {403}
    assert store.deployments.find("orders") == before
    assert vic.get(ONE).status_code == 200


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def test_a_token_has_no_more_rights_than_it_was_given(
    api: Api, people: None, store: ControlStore
) -> None:
    token, _ = store.tokens.create("ann", "robot", grants=["viewer"], seconds=None)
    client = api(login=True)

    assert client.get(LIST, headers=bearer(token)).status_code == 200
    more = {"user": "ann", "name": "more", "grants": ["admin"]}
    assert client.post("/api/v1/tokens", json=more, headers=bearer(token)).status_code == 403


def test_an_expired_or_revoked_token_is_refused(
    api: Api, people: None, store: ControlStore
) -> None:
    old, _ = store.tokens.create("ann", "old", grants=["admin"], seconds=0.000001)
    gone, row = store.tokens.create("ann", "gone", grants=["admin"], seconds=60)
    client = api(login=True)
    assert client.get(LIST, headers=bearer(gone)).status_code == 200
    store.tokens.revoke(row.id)

    for token in (old, gone):
        reply = client.get(LIST, headers=bearer(token))
        assert (reply.status_code, "revoked or expired" in reply.text) == (401, True)


def test_a_new_token_deletes_those_that_expired_more_than_a_day_ago(
    people: None, store: ControlStore
) -> None:
    for name, seconds in (("long ago", 60), ("just now", 60), ("valid", 60), ("endless", None)):
        store.tokens.create("vic", name, grants=["viewer"], seconds=seconds)
    with store.database.write() as session:
        for name, ago in (("long ago", 86_500), ("just now", 86_300)):
            named = TOKENS.update().where(TOKENS.c.name == name)
            session.execute(named.values(expires=store.database.now - ago))

    store.tokens.create("ann", "new", grants=["viewer"], seconds=60)

    names = {token.name for token in store.tokens.all()}
    assert names == {"just now", "valid", "endless", "new"}


def test_the_tokens_of_a_disabled_user_are_refused(
    api: Api, people: None, store: ControlStore
) -> None:
    token, _ = store.tokens.create("vic", "t", grants=["viewer"], seconds=60)
    vic = api("vic")
    assert vic.get(LIST).status_code == 200
    store.users.disable("vic")

    assert api(login=True).get(LIST, headers=bearer(token)).status_code == 401


def test_guesses_of_a_password_have_to_wait(api: Api, people: None, store: ControlStore) -> None:
    store.logins = LoginLimit(store.database, Limits(of_user=3, wait=100))
    client = api(login=True)
    statuses = [client.get(LIST, headers=basic(f"ann:guess{n}")).status_code for n in range(5)]
    right = client.get(LIST, headers=basic(f"ann:{PASSWORD}"))

    assert statuses == [401, 401, 401, 429, 429]
    assert right.status_code == 429
    assert 0 < int(right.headers["retry-after"]) <= 100
    body = {"user": "ann", "password": PASSWORD}
    assert client.post("/api/v1/login", json=body).status_code == 429


def test_a_refused_guess_does_not_wait_for_those_who_write(
    api: Api, people: None, store: ControlStore
) -> None:
    store.logins = LoginLimit(store.database, Limits(of_user=1, wait=800))
    client = api(login=True)
    first = client.get(LIST, headers=basic("ann:guess"))
    with store.database.write():  # as a worker does that renews its leases
        second = client.get(LIST, headers=basic("ann:guess"))

    assert (first.status_code, second.status_code) == (401, 429)


def test_a_proxy_names_the_client_that_guesses(api: Api, people: None, store: ControlStore) -> None:
    store.logins = LoginLimit(store.database, Limits(of_user=1, wait=100))
    client = api(behind_proxy=True)

    def guess(forwarded: str) -> int:
        headers = basic("ann:wrong") | {"X-Forwarded-For": forwarded}
        return client.get(LIST, headers=headers).status_code

    assert [guess("9.9.9.9, 1.1.1.1"), guess("8.8.8.8, 1.1.1.1"), guess("2.2.2.2")] == [
        401,
        429,
        401,
    ]


def test_headers_that_decide_are_given_once(api: Api, people: None) -> None:
    client = api(login=True)
    both = [("Authorization", basic("x:y")["Authorization"]), ("Authorization", "Bearer z")]
    reply = client.get(LIST, headers=both)  # type: ignore[arg-type]

    assert (reply.status_code, "more than once" in reply.text) == (400, True)


def test_all_replies_have_headers_against_misuse(client: TestClient) -> None:
    for path in (LIST, "/api/docs", "/nothing", "/metrics"):
        headers = client.get(path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"
        assert "default-src 'none'" in headers["content-security-policy"]


def test_an_unexpected_error_has_no_details_but_in_the_log(
    store: ControlStore, caplog: pytest.LogCaptureFixture
) -> None:
    router = APIRouter()

    @router.get("/fails")
    def fails() -> None:
        raise ValueError("password=hunter2hunter2 in a message")

    app = create_app(store, ServerSettings(), [router])
    client = TestClient(app, "http://127.0.0.1", client=("127.0.0.1", 1))
    with caplog.at_level(logging.ERROR):
        reply = client.get("/api/v1/fails")

    assert reply.status_code == 500
    assert reply.json()["detail"] == "the server failed on this request; its log has the reason"
    assert "ValueError" in caplog.text
    assert "hunter2" not in caplog.text + reply.text


def test_a_store_that_is_away_is_reported_and_comes_back(
    client: TestClient, store: ControlStore
) -> None:
    assert store.database.file is not None
    lock = sqlite3.connect(store.database.file, isolation_level=None)
    with store.database.engine.connect() as session:
        session.exec_driver_sql("PRAGMA busy_timeout = 10")
    lock.execute("BEGIN EXCLUSIVE")
    try:
        reply = client.put(ONE, content=SPEC.format("orders"), headers=YAML)
    finally:
        lock.execute("ROLLBACK")
        lock.close()

    assert (reply.status_code, reply.headers.get("retry-after")) == (503, "1")
    assert client.put(ONE, content=SPEC.format("orders"), headers=YAML).status_code == 201


def test_a_real_server_answers_over_the_wire(store: ControlStore, people: None) -> None:
    with serving(store, login=True) as port:
        address = f"http://127.0.0.1:{port}/api/v1"
        login = httpx.post(f"{address}/login", json={"user": "ann", "password": PASSWORD})
        token = login.json()["token"]
        me = httpx.get(f"{address}/me", headers=bearer(token))

    assert login.status_code == 201
    assert me.json() == {"user": "ann", "grants": ["admin"], "limits": ["admin"]}
