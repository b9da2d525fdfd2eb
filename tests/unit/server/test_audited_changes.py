"""A change and its row of the audit log are stored together, or not at all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa
from starlette.testclient import TestClient
from tests.unit.server.conftest import PASSWORD, SPEC, YAML, Api

from penstock.control.store import ControlStore
from penstock.control.store.tables import METADATA

Put = Callable[..., dict[str, Any]]
DEPLOYMENT = "/api/v1/deployments/orders"
CHANGES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "new": ("PUT", "/api/v1/deployments/new", {"content": SPEC.format("new"), "headers": YAML}),
    "put": ("PUT", DEPLOYMENT, {"content": "# 2\n" + SPEC.format("orders"), "headers": YAML}),
    "patch": ("PATCH", DEPLOYMENT, {"json": {"labels": {"team": "x"}, "desired": "paused"}}),
    "pause": ("POST", f"{DEPLOYMENT}/pause", {}),
    "restart": ("POST", f"{DEPLOYMENT}/restart", {}),
    "rollback": ("POST", f"{DEPLOYMENT}/rollback", {"json": {"generation": 1}}),
    "delete": ("DELETE", DEPLOYMENT, {}),
    "drain": ("POST", "/api/v1/workers/w1/drain", {}),
    "user": (
        "POST", "/api/v1/users", {"json": {"name": "z", "password": PASSWORD, "grants": ["viewer"]}},
    ),
    "user-change": ("PATCH", "/api/v1/users/vic", {"json": {"password": "other-password-1"}}),
    "user-remove": ("DELETE", "/api/v1/users/vic", {}),
    "token": ("POST", "/api/v1/tokens", {"json": {"user": "vic", "name": "t"}}),
    "login": ("POST", "/api/v1/login", {"json": {"user": "vic", "password": PASSWORD}}),
}  # fmt: skip


def contents(store: ControlStore) -> dict[str, list[Any]]:
    """Return all rows of all tables but the sequence."""
    with store.database.read() as session:
        return {
            name: [tuple(row) for row in session.execute(sa.select(table)).all()]
            for name, table in METADATA.tables.items()
            if name not in ("penstock_sequence", "penstock_logins")
        }


@pytest.mark.parametrize("change", CHANGES)
def test_no_change_without_its_row_in_the_audit_log(
    change: str, api: Api, store: ControlStore, people: None, put: Put
) -> None:
    put()
    put(team="first")
    store.workers.join("w1", "host", 1)
    ann = api("ann")
    ann.get("/api/v1/me")
    client = TestClient(
        ann.app, "http://127.0.0.1", client=("127.0.0.1", 50000), raise_server_exceptions=False
    )
    client.auth = None if change == "login" else ("ann", PASSWORD)
    method, path, body = CHANGES[change]
    before = contents(store)
    with store.database.write() as session:
        session.execute(
            sa.text(
                "CREATE TRIGGER refuse BEFORE INSERT ON penstock_audit "
                "BEGIN SELECT RAISE(ABORT, 'no room'); END"
            )
        )
    failed = client.request(method, path, **body)

    assert (failed.status_code, failed.json()["title"]) == (500, "Internal error")
    assert contents(store) == before

    with store.database.write() as session:
        session.execute(sa.text("DROP TRIGGER refuse"))
    done = client.request(method, path, **body)
    assert done.status_code < 300, done.text
    after = contents(store)
    assert len(after["penstock_audit"]) == len(before["penstock_audit"]) + 1


def test_a_request_without_a_difference_is_not_in_the_audit_log(
    client: TestClient, store: ControlStore, put: Put
) -> None:
    put()
    before = store.audit.before()
    put()
    client.post(f"{DEPLOYMENT}/resume")

    assert store.audit.before() == before
