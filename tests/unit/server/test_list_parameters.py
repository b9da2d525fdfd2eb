"""Every list of the API refuses a wrong `limit` and a wrong `cursor` with a message."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest
from starlette.testclient import TestClient

from penstock.control.store import ControlStore
from penstock.server.app import create_app
from penstock.server.kafka.connections import Connections
from penstock.server.kafka.kafka_routers import kafka_routers
from penstock.server.settings import ServerSettings

Put = Callable[..., dict[str, Any]]
LISTS = (
    "deployments", "deployments/orders/history", "deployments/orders/logs", "events", "audit", "users",
    "tokens", "workers", "workers/w1/logs", "deployments/orders/dead-letters/replays", "topics", "groups",
    "subjects", "acls", "topics/t/messages", "deployments/orders/dead-letters",
)  # fmt: skip


def cursor_of(key: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(key).encode()).decode()


@pytest.fixture
def client(store: ControlStore) -> TestClient:
    """A client of all routes; no broker is reached, because nothing gets that far."""
    store.workers.join("w1", "host", 1)
    app = create_app(store, ServerSettings(), kafka_routers(Connections(), store))
    return TestClient(app, "http://127.0.0.1", client=("127.0.0.1", 50000))


def test_these_are_all_lists(client: TestClient) -> None:
    paths = client.get("/api/v1/openapi.json").json()["paths"]
    lists = {
        path.removeprefix("/api/v1/")
        for path, methods in paths.items()
        for each in methods.get("get", {}).get("parameters", [])
        if each["name"] == "limit"
    }
    known = {
        each.replace("orders", "{name}").replace("w1", "{id}").replace("/t/", "/{topic}/")
        for each in LISTS
    }

    assert {each.replace("{deployment}", "{name}") for each in lists} == known


LIMITS = ("0", "-1", "1001", "x", "1.5", "", "9" * 40)
CURSORS = (
    "!", "\u00e9", "W1tbW1tb", "a" * 60_000, cursor_of({"a": 1}), cursor_of([1, None]), cursor_of([]),
    cursor_of(1.5),
)  # fmt: skip
FORGED = ("\x00", "\ud800", "x" * 600, 2**70, -1, True, False)
# An empty list is the cursor of the first page, or of what comes after the last one.
VALID = {("acls", cursor_of([])), ("topics/t/messages", cursor_of([]))}


def test_a_wrong_limit_is_named(client: TestClient, put: Put) -> None:
    put()
    for path in LISTS:
        for limit in LIMITS:
            reply = client.get(f"/api/v1/{path}", params={"limit": limit})

            assert reply.status_code in (400, 422), (path, limit, reply.text)
            assert "limit: Input should be" in reply.json()["detail"], (path, limit)


def test_a_wrong_cursor_is_named(client: TestClient, put: Put) -> None:
    put()
    for path in LISTS:
        for cursor in CURSORS:
            if (path, cursor) in VALID:
                continue
            reply = client.get(f"/api/v1/{path}", params={"cursor": cursor})

            assert reply.status_code in (400, 422), (path, cursor[:50], reply.text)
            assert "cursor" in reply.json()["detail"], (path, cursor[:50])


def test_a_forged_cursor_is_no_error_of_the_server(client: TestClient, put: Put) -> None:
    put()
    for path in LISTS[:10]:
        for key in FORGED:
            reply = client.get(f"/api/v1/{path}", params={"cursor": cursor_of(key)})

            assert reply.status_code in (200, 400), (path, key)
