"""Flows with the trigger http on the engine: requests become records, results come back."""

from __future__ import annotations

import hashlib
import hmac
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from penstock import Connection, start
from penstock.flows import Flow, read_flow
from penstock.flows.spark.flow_pipeline import flow_pipeline
from penstock.flows.testing import run_tests
from penstock.testing import eventually, read_all

EXAMPLE = Path(__file__).parents[2] / "examples/flows/http-to-kafka.yaml"
SECRET = "a-secret-of-16-bytes"


def post(running: Any, path: str, content: bytes, **headers: str) -> httpx.Response:
    port = running._rounds._listener.port
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    url = f"http://127.0.0.1:{port}{path}"
    return httpx.post(url, content=content, headers=names, timeout=120)


def signed(content: bytes) -> str:
    return hmac.new(SECRET.encode(), content, hashlib.sha256).hexdigest()


def test_the_example_writes_orders_and_replies_with_their_places(
    connection: Connection, unique: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ORDERS_PORT", "0")
    monkeypatch.setenv("ORDERS_SECRET", SECRET)
    flow = read_flow(EXAMPLE)
    assert [result.differences for result in run_tests(flow)] == [[]]
    flow = flow.model_copy(update={"name": unique})
    good, bad = b'{"id": "a-1", "total": 12.5}', b'{"total": 1}'

    with start(flow_pipeline(flow, connection, state=str(tmp_path))) as running:
        once = {"X_Signature": signed(good), "Idempotency_Key": unique}
        replies = [post(running, "/orders", good, **once) for _ in range(2)]
        invalid = post(running, "/orders", bad, X_Signature=signed(bad))
        assert post(running, "/orders", good, X_Signature=signed(bad)).status_code == 401
        assert post(running, "/orders", b"{oops", X_Signature=signed(b"{oops")).status_code == 400
        written = [
            r for r in read_all(connection, "orders-received") if unique_id(r) == ids(replies)[0]
        ]
        eventually(lambda: running.progress().records == 2)

    assert [reply.status_code for reply in replies] == [201, 201]
    assert len(set(ids(replies))) == 1
    (record,) = written
    assert replies[0].json() == {
        "id": "a-1",
        "partition": record.partition,
        "offset": record.offset,
    }
    assert json.loads(record.value)["total"] == 12.5
    assert (invalid.status_code, invalid.json()["error"]["Code"]) == (422, "CORE:VALIDATION")
    (letter,) = read_all(connection, f"{unique}.dead-letters")
    assert letter.value == bad
    state = json.loads(dict(letter.headers)["penstock.flow.message"])
    assert state["attribute"]["id"] == invalid.json()["id"]
    assert "authorization" not in state["attribute"]["headers"]


def unique_id(record: Any) -> str:
    return str(json.loads(record.value)["request"])


def ids(replies: list[httpx.Response]) -> list[str]:
    return [reply.headers["X-Request-Id"] for reply in replies]


def test_each_of_many_requests_gets_its_own_result(
    connection: Connection, unique: str, tmp_path: Path
) -> None:
    trigger = {"http": {"path": "/double", "port": 0, "format": "form", "reply": "result"}}
    flow = (
        Flow(name=unique, trigger=trigger)
        .then(filter="payload.n != '3'")
        .then(map="to_number(payload.n) * 2 + to_number(attribute.query.more)")
    )
    with (
        start(flow_pipeline(flow, connection, state=str(tmp_path))) as running,
        ThreadPoolExecutor(16) as clients,
    ):
        found = [clients.submit(post, running, f"/double?more={n}", b"n=%d" % n) for n in range(64)]
        replies = [each.result(120) for each in found]

    assert [(r.status_code, r.text) for n, r in enumerate(replies) if n != 3] == [
        (200, str(3 * n)) for n in range(64) if n != 3
    ]
    assert (replies[3].status_code, replies[3].content) == (204, b"")
