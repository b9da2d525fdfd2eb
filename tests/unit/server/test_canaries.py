"""No secret in any reply, log line or metric: canaries over all routes."""

from __future__ import annotations

import logging
import re

import pytest
from starlette.testclient import TestClient
from tests.unit.server.conftest import PASSWORD, YAML, Api

from penstock.control.store import ControlStore
from penstock.server.settings import StreamSettings
from penstock.worker.log_record import line_of

CANARY = "c4nary-Of-A-Secret"
TEXT = f"""# password={CANARY}-comment
name: orders
connection:
  bootstrap.servers: localhost:9092
  security.protocol: SASL_SSL
  sasl.mechanisms: PLAIN
  sasl.username: app
  sasl.password: {CANARY}-sasl
source: {{kafka: {{topics: t}}}}
sink: {{database: {{url: 'postgresql://app:{CANARY}-url@db/x', table: t}}}}
"""
BROKEN = TEXT.replace("table: t", "tabel: t") + f"password: {CANARY}-extra\nevery: soon\n"
ONE = "/api/v1/deployments/orders"


def test_canaries_appear_nowhere(
    api: Api, people: None, store: ControlStore, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    ann = api("ann", streams=StreamSettings(every=0.02, seconds=0.1))
    texts = [
        ann.post(f"{ONE}/validate", content=TEXT, headers=YAML),
        ann.put(ONE, content=TEXT, headers=YAML),
        ann.post(f"{ONE}/diff", content=TEXT.replace("-sasl", "-other"), headers=YAML),
        ann.post(f"{ONE}/validate", content=BROKEN, headers=YAML),
        ann.put(ONE, content=BROKEN, headers=YAML),
        ann.put(ONE, content=TEXT + f'\n"{CANARY}', headers=YAML),
        ann.put(ONE, json={"definition": TEXT, "password": f"{CANARY}-json"}),
        ann.put(ONE, content=TEXT.replace("-sasl", "-new"), headers=YAML),
        ann.patch(ONE, json={"labels": {"team": "a"}, "password": f"{CANARY}-patch"}),
        ann.patch(ONE, json={"labels": {"team": "a"}}),
        ann.post(f"{ONE}/rollback", json={"generation": 1}),
        ann.post("/api/v1/users", json={"name": "new", "password": f"{CANARY}-user", "grants": []}),
        ann.post("/api/v1/users", json={"name": 5, "password": f"{CANARY}-user", "grants": []}),
        ann.patch("/api/v1/users/new", json={"password": f"{CANARY}-changed"}),
        ann.post("/api/v1/login", json={"user": "new", "password": f"{CANARY}-guess"}),
        ann.post("/api/v1/login", json={"user": "new", "password": {"x": f"{CANARY}-guess"}}),
        ann.get("/api/v1/me", headers={"Authorization": f"Bearer pst_{CANARY}"}),
        ann.get("/api/v1/me", headers={"Authorization": f"Basic {CANARY}"}),
    ]  # fmt: skip
    assert texts[0].json() == {"valid": True, "problems": []}
    assert texts[1].status_code == 201
    seed(store)
    texts += [ann.get(path) for path in readable(ann)]

    shown = "\n".join(reply.text + str(reply.headers) for reply in texts)
    assert CANARY not in shown
    assert "sealed:" not in shown
    assert PASSWORD not in shown
    assert CANARY not in caplog.text
    with store.database.read() as session:
        for table in (
            "deployments",
            "specs",
            "runs",
            "counters",
            "events",
            "logs",
            "audit",
            "users",
            "logins",
        ):
            rows = session.exec_driver_sql(f"SELECT * FROM penstock_{table}").all()
            assert CANARY not in str(rows), table


def seed(store: ControlStore) -> None:
    claimed = store.leases.claim("orders", "w1")
    assert claimed
    error = f"cannot connect to postgresql://app:{CANARY}-url@db/x, password={CANARY}-run"
    store.leases.report("orders", "w1", claimed.token, "RETRYING", error=error)
    store.events.add("orders", "note", error)
    store.workers.join("w1", "host", 1)
    for deployment in ("orders", ""):
        given = {"msg": error, "levelno": logging.INFO, "deployment": deployment, "reason": error}
        record = logging.makeLogRecord(given)
        store.logs.add("w1", [line_of(record)])


def readable(client: TestClient) -> list[str]:
    """Return every path that can be read, with names of what exists."""
    paths = client.get("/api/v1/openapi.json").json()["paths"]
    values = {"name": "orders", "generation": "1", "id": "w1"}
    gets = [path for path, methods in paths.items() if "get" in methods]
    assert len(gets) >= 14
    filled = [f"{path}?after=0" if path.endswith("/stream") else path for path in gets]
    filled = [re.sub(r"\{(\w+)\}", lambda match: values[match[1]], path) for path in filled]
    return [*filled, "/api/docs", "/api/v1/openapi.json", "/api/v1/deployments?text=orders"]
