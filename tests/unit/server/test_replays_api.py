"""Replays of dead letters over the API: asked for, shown, and run by no one here."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa
from starlette.testclient import TestClient
from tests.unit.server.conftest import Api

from penstock.control.store import ControlStore
from penstock.control.store.replays import MOST_OPEN
from penstock.control.store.rows import Desired, Kind

Put = Callable[..., dict[str, Any]]
LETTERS = "/api/v1/deployments/orders/dead-letters"
REPLAY, REPLAYS = f"{LETTERS}/replay", f"{LETTERS}/replays"


@pytest.fixture
def client(kafka_api: Api) -> TestClient:
    return kafka_api()


def take(store: ControlStore) -> Any:
    taken = store.replays.take("w")
    assert taken
    return taken


def test_a_request_is_accepted_shown_and_ends(
    client: TestClient, store: ControlStore, put: Put
) -> None:
    put()
    reply = client.post(REPLAY, json={"ids": ["orders-0-7"], "value": {"n": 1}, "take_over": True})

    assert reply.status_code == 202, reply.text
    asked = reply.json()
    assert reply.headers["location"] == f"{REPLAYS}/{asked['id']}"
    assert (asked["state"], asked["by"], asked["worker"]) == ("pending", "local", None)
    assert asked["wanted"] == {"ids": ["orders-0-7"], "take_over": True}
    assert client.get(reply.headers["location"]).json() == asked

    taken = take(store)
    sealed = taken.value
    assert '"n"' not in sealed
    assert store.secrets.opened_record("orders", sealed) == b'{"n":1}'
    assert client.get(reply.headers["location"]).json()["state"] == "running"
    store.replays.finish(taken, {"letters": 1, "rows": 1})
    done = client.get(reply.headers["location"]).json()
    assert (done["state"], done["outcome"], done["worker"], done["attempts"]) == (
        "done", {"letters": 1, "rows": 1}, "w", 1,
    )  # fmt: skip
    assert "value" not in done


def test_the_path_of_a_name_with_signs_can_be_followed(
    client: TestClient, store: ControlStore
) -> None:
    store.deployments.put("order s/é?".replace("/", "-"), Kind.PIPELINE, "name: x", by="ann")
    reply = client.post("/api/v1/deployments/order s-é%3F/dead-letters/replay", json={"all": True})

    assert reply.status_code == 202, reply.text
    assert client.get(reply.headers["location"]).json() == reply.json()


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ({"value": "not json"}, b"not json"),
        ({"value_base64": "/wA="}, b"\xff\x00"),
        ({"value_base64": ""}, b""),
        ({}, None),
    ],
)
def test_a_value_is_stored_as_its_bytes_encrypted(
    client: TestClient, store: ControlStore, put: Put, given: Any, stored: bytes | None
) -> None:
    put()
    assert client.post(REPLAY, json={"ids": ["x"], **given}).status_code == 202

    sealed = take(store).value
    assert (sealed and store.secrets.opened_record("orders", sealed)) == stored
    (row,) = store.audit.before(target="orders", most=1)
    assert (row.who, row.action) == ("local", "dead-letters.replay")
    assert row.detail["corrected"] is (stored is not None)
    assert "value" not in json.dumps(row.detail)


@pytest.mark.parametrize(
    ("body", "status", "text"),
    [
        (
            {},
            400,
            "say which dead letters to replay: ids, stage, error, since, until, or all: true",
        ),
        ({"since": "yesterday"}, 400, "since 'yesterday' is not a time"),
        ({"stage": "sink"}, 422, "body, stage"),
        ({"idz": ["x"]}, 422, "body, idz: Extra inputs"),
        ({"all": True, "value": "x"}, 400, "another value is for one dead letter, but 0 are named"),
        ({"ids": ["a", "b"], "value": "x"}, 400, "but 2 are named: name one by its id"),
        ({"ids": ["a"], "value": 1, "value_base64": "eA=="}, 400, "were both given"),
        ({"ids": ["a"], "value_base64": "?"}, 400, "value_base64 is not base64"),
        ({"ids": ["a"], "value": "x" * 1_000_001}, 413, "the value has 1000001 bytes"),
    ],
)
def test_a_wrong_request_gets_a_reason(
    client: TestClient, store: ControlStore, put: Put, body: Any, status: int, text: str
) -> None:
    put()
    reply = client.post(REPLAY, json=body)

    assert (reply.status_code, text in reply.json()["detail"]) == (status, True), reply.text
    assert reply.headers["content-type"] == "application/problem+json"
    assert store.replays.before("orders") == []


def test_what_cannot_be_replayed_is_refused_with_the_reason(
    client: TestClient, store: ControlStore, put: Put
) -> None:
    put()
    for _ in range(MOST_OPEN):
        assert client.post(REPLAY, json={"all": True}).status_code == 202
    full = client.post(REPLAY, json={"all": True})
    assert (full.status_code, "wait or run already" in full.text) == (409, True)

    store.deployments.set_desired("orders", Desired.DELETED, by="ann")
    deleted = client.post(REPLAY, json={"all": True})
    assert (deleted.status_code, "is being deleted" in deleted.text) == (400, True)

    store.deployments.put("c", Kind.CONNECTOR, "{}", by="ann")
    connector = client.post("/api/v1/deployments/c/dead-letters/replay", json={"all": True})
    assert (connector.status_code, "is a connector" in connector.text) == (501, True)

    missing = client.get(f"{REPLAYS}/1")
    assert (missing.status_code, "there is no replay 1 of 'orders'" in missing.text) == (404, True)


def test_the_newest_come_first_in_pages(client: TestClient, put: Put) -> None:
    put()
    numbers = [client.post(REPLAY, json={"all": True}).json()["id"] for _ in range(5)]
    first = client.get(REPLAYS, params={"limit": 2}).json()
    second = client.get(REPLAYS, params={"limit": 2, "cursor": first["next"]}).json()
    third = client.get(REPLAYS, params={"limit": 2, "cursor": second["next"]}).json()

    pages = [[each["id"] for each in page["items"]] for page in (first, second, third)]
    assert [number for page in pages for number in page] == numbers[::-1]
    assert third["next"] is None


@pytest.mark.usefixtures("people")
def test_roles_are_those_for_the_deployment(kafka_api: Api, put: Put) -> None:
    put(team="a")
    asked = kafka_api("tom").post(REPLAY, json={"all": True})
    assert asked.status_code == 202, asked.text
    place = asked.headers["location"]

    assert kafka_api("vic").get(place).json()["by"] == "tom"
    assert kafka_api("vic").post(REPLAY, json={"all": True}).status_code == 403
    put("other", team="b")
    paths = [path.replace("/orders/", "/other/") for path in (place, REPLAYS, REPLAY)]
    tom = kafka_api("tom")
    for reply in (tom.get(paths[0]), tom.get(paths[1]), tom.post(paths[2], json={"all": True})):
        assert (reply.status_code, "there is no deployment 'other'" in reply.text) == (404, True)
    assert kafka_api("olga").post(paths[2], json={"all": True}).status_code == 403
    # The request is one of another deployment.
    assert kafka_api("ann").get(paths[0]).status_code == 404


def test_no_request_without_its_row_in_the_audit_log(
    client: TestClient, store: ControlStore, put: Put
) -> None:
    put()
    with store.database.write() as session:
        session.execute(
            sa.text(
                "CREATE TRIGGER refuse BEFORE INSERT ON penstock_audit "
                "BEGIN SELECT RAISE(ABORT, 'no room'); END"
            )
        )
    quiet = TestClient(
        client.app,
        "http://127.0.0.1",
        client=("127.0.0.1", 50000),
        raise_server_exceptions=False,
    )
    assert quiet.post(REPLAY, json={"all": True}).status_code == 500
    assert store.replays.before("orders") == []
