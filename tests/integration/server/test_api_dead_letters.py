"""Dead letters of deployments over the API: listed, shown and dropped without Spark."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.integration.server.small_app import Api, app_of

from penstock.config import Connection
from penstock.control.store.control_store import ControlStore
from penstock.control.store.rows import Kind
from penstock.engine.dead_letters import DeadLetter, DeadLetterStore
from penstock.engine.dead_letters.letter import as_headers
from penstock.kafka import Admin
from penstock.kafka.topic_records import TopicRecords
from penstock.server.kafka import dead_letter_topic
from penstock.server.kafka.connections import Connections
from penstock.server.kafka.kafka_routers import kafka_routers

NOON = datetime(2026, 1, 31, 12, tzinfo=timezone.utc)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ControlStore]:
    made = ControlStore.at(tmp_path / "control.db", tmp_path / "keys")
    yield made
    made.close()


@pytest.fixture
def api(store: ControlStore, connections: Connections) -> Iterator[Api]:
    app = app_of(*kafka_routers(connections, store))
    with TestClient(app, raise_server_exceptions=False) as client:
        yield Api(client)


@pytest.fixture
def deploy(store: ControlStore, unique: str) -> Callable[..., str]:
    """Stores a deployment, and returns the path of its dead letters."""

    def put(labels: dict[str, str] | None = None, **parts: Any) -> str:
        spec = {"name": unique, "source": {"kafka": "t"}, "sink": "discard", **parts}
        sealed = store.secrets.sealed(unique, json.dumps(spec))
        store.deployments.put(unique, Kind.PIPELINE, sealed, labels=labels or {}, by="ann")
        return f"/deployments/{unique}/dead-letters"

    return put


@pytest.fixture
def letters(connection: Connection, unique: str) -> list[DeadLetter]:
    """Five letters in the default topic of the deployment; the last two are of one record."""
    made = [
        DeadLetter(
            pipeline=unique,
            stage="decode" if n % 2 else "step",
            topic="orders",
            partition=0,
            offset=min(n, 3),
            epoch=7,
            batch=n,
            timestamp=NOON + timedelta(minutes=n),
            error_type="ValueError",
            error=f"bad number {n}",
            key=b"k%d" % n,
            value=b'{"n": %d}' % n,
            headers=[("trace", b"\xff")],
        )
        for n in range(5)
    ]
    with Admin(connection) as admin:
        admin.create_topic(f"{unique}.dead-letters", 1)
    records = TopicRecords(connection, f"{unique}.dead-letters")
    records.append((each.key, each.value, as_headers(each)) for each in made)
    return made


IDS = ["orders-0-0", "orders-0-1", "orders-0-2", "orders-0-3~7~3", "orders-0-3~7~4"]


def ids(page: dict[str, Any]) -> list[str]:
    return [item["id"] for item in page["items"]]


@pytest.mark.usefixtures("letters")
def test_letters_are_listed_in_pages_and_filtered(api: Api, deploy: Callable[..., str]) -> None:
    path = deploy()
    page = api.get(path)
    assert (ids(page), page["next"]) == (IDS, None)
    assert page["items"][1]["error"] == "bad number 1"
    assert "value" not in page["items"][0]
    first = api.get(path, limit=2)
    second = api.get(path, limit=2, cursor=first["next"])
    third = api.get(path, limit=2, cursor=second["next"])
    assert ids(first) + ids(second) + ids(third) == IDS
    assert third["next"] is None
    assert ids(api.get(path, stage="decode")) == [IDS[1], IDS[3]]
    assert ids(api.get(path, error="NUMBER 2")) == [IDS[2]]
    assert ids(api.get(path, since="2026-01-31T12:01", until="2026-01-31T12:03")) == IDS[1:3]


@pytest.mark.usefixtures("letters")
def test_a_letter_is_shown_with_its_record(api: Api, deploy: Callable[..., str]) -> None:
    shown = api.get(f"{deploy()}/orders-0-3~7~4")
    assert shown["value"] == {"form": "json", "data": {"n": 4}, "size": 8}
    assert shown["key"]["data"] == "k4"
    assert shown["headers"] == [
        {"name": "trace", "value": {"form": "base64", "data": "/w==", "size": 1}}
    ]


@pytest.mark.usefixtures("letters")
def test_dropped_letters_are_gone_for_the_engine_too(
    api: Api, deploy: Callable[..., str], store: ControlStore, pipeline: Callable[..., Any]
) -> None:
    path = deploy()
    body = {"ids": [IDS[0], IDS[4]]}
    assert api("POST", f"{path}/drop", "operator", json=body).json() == {"dropped": 2}
    assert api("POST", f"{path}/drop", "operator", json={"stage": "step"}).json() == {"dropped": 1}
    left = ["orders-0-1", "orders-0-3"]
    assert ids(api.get(path)) == left
    engine = DeadLetterStore(pipeline(source={"kafka": "t"}, sink="discard"))
    assert [letter.id for letter in engine.waiting()] == left
    assert api("POST", f"{path}/drop", "operator", json={"all": True}).json() == {"dropped": 2}
    assert api.get(path)["items"] == []
    logged = store.audit.before()
    assert [(row.who, row.action, row.detail["dropped"]) for row in logged] == [
        ("ann", "dead-letters.drop", 2),
        ("ann", "dead-letters.drop", 1),
        ("ann", "dead-letters.drop", 2),
    ]


@pytest.mark.usefixtures("letters")
def test_two_drops_at_once_drop_each_letter_once(api: Api, deploy: Callable[..., str]) -> None:
    path = deploy()
    with ThreadPoolExecutor(2) as threads:
        sent = [threads.submit(api, "POST", f"{path}/drop", json={"all": True}) for _ in range(2)]
    assert sorted(each.result().json()["dropped"] for each in sent) == [0, 5]


@pytest.mark.usefixtures("letters")
@pytest.mark.parametrize("form", ["text", "option", "mapping"])
def test_the_topic_of_the_definition_is_read(
    api: Api, deploy: Callable[..., str], connection: Connection, unique: str, form: str
) -> None:
    topic = f"{unique}.dead-letters"
    place = {"topic": topic, "connection": connection.to_config()}
    given = {"text": topic, "option": {"kafka": topic}, "mapping": {"kafka": place}}[form]
    assert len(api.get(deploy(dead_letters=given))["items"]) == 5


def test_a_deployment_without_letters_has_an_empty_list(
    api: Api, deploy: Callable[..., str]
) -> None:
    assert api.get(deploy()) == {"items": [], "next": None}


@pytest.mark.by_turns
@pytest.mark.parametrize(
    ("method", "path", "body", "status", "text"),
    [
        ("GET", "/deployments/none/dead-letters", None, 404, "'none'"),
        ("GET", "?stage=sink", None, 422, "query, stage"),
        ("GET", "?since=yesterday", None, 400, "since 'yesterday' is not a time"),
        ("GET", "?cursor=WzFd", None, 400, "is not a cursor of dead letters"),
        ("GET", "/orders-0-9", None, 404, "there is no dead letter 'orders-0-9'"),
        ("POST", "/drop", {}, 400, "say which dead letters to drop"),
        ("POST", "/drop", {"ids": ["x"]}, 404, "there is no dead letter 'x'"),
        ("POST", "/drop", {"idz": ["x"]}, 422, "body, idz: Extra inputs"),
        ("POST", "/replay", {}, 400, "say which dead letters to replay"),
    ],
)
def test_a_wrong_request_gets_a_reason(
    api: Api, deploy: Callable[..., str], method: str, path: str, body: Any, status: int, text: str
) -> None:
    own = path if path.startswith("/deployments") else deploy() + path
    got, detail = api.refused(method, own, json=body)
    assert (got, text in detail) == (status, True), detail


def test_letters_in_a_table_need_spark(api: Api, deploy: Callable[..., str]) -> None:
    status, text = api.refused("GET", deploy(dead_letters={"delta": {"path": "/tmp/x"}}))
    assert (status, "'delta', which only Spark reads" in text) == (501, True)
    assert "penstock deadletters list FILE" in text


@pytest.mark.parametrize("given", [5, {"kafka": None}, {"kafka": {"topic": ["x"]}}, {}])
def test_a_definition_without_a_topic_is_not_valid(
    api: Api, deploy: Callable[..., str], given: Any
) -> None:
    status, text = api.refused("GET", deploy(dead_letters=given))
    assert (status, "'dead_letters' is the name of a topic" in text) == (400, True)


@pytest.mark.usefixtures("letters")
def test_too_many_letters_are_refused_with_the_command(
    api: Api, deploy: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dead_letter_topic, "_MOST", 3)
    status, text = api.refused("GET", deploy())
    assert (status, "too many dead letters" in text) == (501, True)


def test_roles_are_those_for_the_deployment(api: Api, deploy: Callable[..., str]) -> None:
    path = deploy({"team": "a"})
    assert api("GET", path, "viewer:team=a").status_code == 200
    status, text = api.refused("GET", path, role="viewer:team=b")
    assert (status, "there are none" in text) == (404, True)
    body = {"all": True}
    assert api.refused("POST", f"{path}/drop", role="viewer:team=a", json=body)[0] == 403
    assert api("POST", f"{path}/drop", "operator:team=a", json=body).status_code == 200


def test_the_routes_load_no_spark() -> None:
    code = "import sys, penstock.server.kafka.kafka_routers; print('pyspark' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert done.stdout == b"False\n"
