"""Connect's REST API under hostile and simultaneous requests: errors in its form, and no lost change."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.contract.connect_rest.store_worker import StoreWorker
from tests.unit.server.conftest import Api

from penstock.control.store import ControlStore
from penstock.imports.positions import position_record
from penstock.pipeline.importing import key_of
from penstock.server.connect.connect_body import parse_body
from penstock.server.connect.connector_offsets import source_entry
from penstock.server.connect.connector_store import ConnectorStore

SINK = {"connector.class": "FileStreamSink", "topics": "orders", "file": "/tmp/out.txt"}
JSON = {"Content-Type": "application/json"}
AT_ONCE = 8


def refused(reply: Any) -> int:
    """The status of an error in Connect's form."""
    body = reply.json()
    assert body.keys() == {"error_code", "message"}, body
    assert body["error_code"] == reply.status_code
    assert body["message"]
    return int(reply.status_code)


def together(api: Api, ask: Callable[[TestClient, int], Any]) -> list[Any]:
    """The replies to requests that are sent at the same time."""
    clients = [api() for _ in range(AT_ONCE)]
    with ThreadPoolExecutor(AT_ONCE) as threads:
        return [*threads.map(ask, clients, range(AT_ONCE))]


@pytest.mark.parametrize(
    "body",
    [b"[" * 200_000, b'{"a":' * 100_000, b'{"name":"\xff"}', b'{"name":"a\\ud800","config":{}}',
     b'{"config":{"a":' + b"9" * 10_000 + b"}}", b'"\\u0000"', b"\xef\xbb\xbf{}", b"\x00"],
    ids=["lists", "objects", "not UTF-8", "half a pair", "a number", "NUL", "BOM", "zero"],
)  # fmt: skip
def test_bodies_that_mean_nothing_are_refused(client: TestClient, body: bytes) -> None:
    for request in (
        "POST /connectors",
        "PUT /connectors/a/config",
        "PATCH /connectors/a/offsets",
        "PUT /connector-plugins/FileStreamSink/config/validate",
        "PUT /admin/loggers/a",
    ):
        method, path = request.split()
        reply = client.request(method, path, content=body, headers=JSON)
        assert refused(reply) in (400, 404), request
    assert client.get("/connectors").json() == []


def test_a_number_of_thousands_of_digits_is_not_a_number(client: TestClient) -> None:
    config = {**SINK, "tasks.max": "9" * 10_000}
    assert refused(client.put("/connectors/a/config", json=config)) == 400
    checked = client.put("/connector-plugins/FileStreamSink/config/validate", json=config).json()
    (found,) = [each for each in checked["configs"] if each["value"]["name"] == "tasks.max"]
    assert "Not a number of type INT" in found["value"]["errors"][0]


def test_an_error_that_no_one_expected_has_the_form_of_connect(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_self: object) -> None:
        raise RuntimeError("unexpected")

    monkeypatch.setattr(ConnectorStore, "all", fail)
    assert refused(client.get("/connectors")) == 500


def test_a_body_may_not_be_larger_than_the_limit(client: TestClient) -> None:
    body = json.dumps({"name": "a", "config": {**SINK, "x": "y" * 20_000_000}})
    assert refused(client.post("/connectors", content=body, headers=JSON)) == 413


def test_names_that_cannot_be(client: TestClient) -> None:
    for name in ("\x00", "a\x00b", "a\nb", "\x7f", "\x9f", "a\u2028\x85", "x" * 100_000, "\ud800"):
        body = json.dumps({"name": name, "config": SINK})
        reply = client.post("/connectors", content=body, headers=JSON)
        assert refused(reply) == 400, ascii(name)
    assert client.get("/connectors").json() == []


def test_paths_with_any_bytes_are_answered(client: TestClient) -> None:
    for name in ("%00", "a%00b", "%0A", "%FF", "%ED%A0%80", "x" * 20_000, "%2F%2F", "%"):
        for part in ("", "/config", "/status", "/offsets", "/tasks/0/status"):
            assert refused(client.get(f"/connectors/{name}{part}")) == 404, name


def test_keys_and_values_of_any_kind_are_kept(client: TestClient) -> None:
    keys = (
        "a: b",
        "# no",
        "- a",
        "{",
        "\u2028",
        "\t",
        "'",
        '"',
        "😀",
        "&a",
        "*a",
        "x" * 1000,
        "\\ud83d",
    )
    config = {**SINK, **{key: f"!!python/object:{key}" for key in keys}}
    assert client.put("/connectors/a/config", json=config).status_code == 201
    assert client.get("/connectors/a/config").json() == {**config, "name": "a"}
    assert refused(client.put("/connectors/a/config", json={**SINK, "x" * 2000: "1"})) == 400


def test_one_of_many_puts_makes_the_connector(api: Api) -> None:
    replies = together(
        api, lambda client, n: client.put("/connectors/a/config", json={**SINK, "x": str(n)})
    )
    assert sorted(reply.status_code for reply in replies) == [200] * (AT_ONCE - 1) + [201]
    assert api().get("/connectors/a/config").json()["x"] in map(str, range(AT_ONCE))


def test_one_of_many_posts_makes_the_connector(api: Api) -> None:
    replies = together(
        api,
        lambda client, n: client.post(
            "/connectors", json={"name": "a", "config": {**SINK, "x": str(n)}}
        ),
    )
    made = [reply for reply in replies if reply.status_code == 201]
    assert len(made) == 1
    assert all(refused(reply) == 409 for reply in replies if reply not in made)
    assert api().get("/connectors/a/config").json() == made[0].json()["config"]


def test_no_patch_is_lost(api: Api) -> None:
    api().put("/connectors/a/config", json=SINK)
    replies = together(
        api, lambda client, n: client.patch("/connectors/a/config", json={f"x{n}": str(n)})
    )
    assert {reply.status_code for reply in replies} == {200}
    config = api().get("/connectors/a/config").json()
    assert {key for key in config if key.startswith("x")} == {f"x{n}" for n in range(AT_ONCE)}


@pytest.mark.parametrize("seed", [0, 3])
def test_a_change_does_not_bring_back_what_was_removed(
    api: Api, store: ControlStore, seed: int
) -> None:
    client, worker = api(), StoreWorker(store, failing=())
    client.put("/connectors/a/config", json=SINK)
    worker.work()

    def ask(own: TestClient, number: int) -> Any:
        if number == seed:
            reply = own.delete("/connectors/a")
            worker.work()
            return reply
        return own.patch("/connectors/a/config", json={f"x{number}": "1"})

    replies = together(api, ask)
    assert replies.pop(seed).status_code == 204
    assert all(reply.status_code == 200 or refused(reply) in (404, 409) for reply in replies)
    assert client.get("/connectors").json() == []
    assert refused(client.get("/connectors/a")) == 404


def test_a_name_is_free_when_its_connector_was_cleaned_up(
    client: TestClient, store: ControlStore
) -> None:
    client.put("/connectors/a/config", json=SINK)
    client.delete("/connectors/a")
    for reply in (
        client.put("/connectors/a/config", json=SINK),
        client.post("/connectors", json={"name": "a", "config": SINK}),
    ):
        assert refused(reply) == 409
        assert "try again" in reply.json()["message"]
    StoreWorker(store, failing=()).work()
    assert client.put("/connectors/a/config", json=SINK).status_code == 201


def test_offsets_of_sources_with_fractions_can_be_stored() -> None:
    body = parse_body(b'{"partition": {"n": 0.5}, "offset": {"since": 1.50, "in": [2.5]}}')
    partition, offset = source_entry(body)
    assert type(partition["n"]) is float
    written = position_record("orders", key_of(partition), offset)
    assert written.column("value").to_pylist() == [b'{"since":1.5,"in":[2.5]}']
