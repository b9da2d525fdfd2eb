"""Where the server looks for dead letters: not where variables and files of its own say."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event, Semaphore
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.unit.server.conftest import YAML, Api

from penstock.config import Connection
from penstock.control.store import ControlStore
from penstock.control.store.rows import Kind
from penstock.errors import TransientError
from penstock.server.kafka import connections, dead_letter_routes, dead_letter_topic
from penstock.server.kafka.connections import Turns

ONE = "/api/v1/deployments/orders"
CANARY = "c4nary-of-the-server"
Places = list[tuple[dict[str, Any], str]]


@pytest.fixture
def client(kafka_api: Api) -> TestClient:
    """A client of a server without login, with the routes of dead letters."""
    return kafka_api()


@pytest.fixture
def places(monkeypatch: pytest.MonkeyPatch) -> Places:
    """Where letters were read, as settings of the cluster and topic; there are none."""
    found: Places = []

    class Empty:
        def __init__(self, connection: Connection, topic: str) -> None:
            found.append((connection.to_config(), topic))

        def read(self) -> Iterator[Any]:
            return iter(())

    monkeypatch.setattr(dead_letter_topic, "TopicRecords", Empty)
    return found


@pytest.fixture
def canary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of the server; its content is in a variable of the server, too."""
    file = tmp_path / "control.keys"
    file.write_text(CANARY)
    monkeypatch.setenv("CANARY", CANARY)
    return file


def _text(kind: str, **parts: Any) -> str:
    basis: dict[str, Any] = {"source": {"kafka": "t"}, "sink": "discard"}
    if kind == "flow":
        basis = {"trigger": {"timer": "5s"}, "steps": [{"log": "x"}]}
    return json.dumps({"name": "orders", **basis, **parts})


def _store(store: ControlStore, kind: Kind, **parts: Any) -> None:
    text = _text(kind.value, **parts)
    if kind is Kind.JOB:
        data = {"definition": json.loads(text), "options": {}, "id": "1"}
        text = json.dumps(store.secrets.sealed_data("orders", data))
    else:
        text = store.secrets.sealed("orders", text)
    store.deployments.put("orders", kind, text, by="ann")


CLUSTER = {"bootstrap.servers": "kafka:9092", "client.id": "REFERENCE"}
FLOWS = {"addresses": "kafka:9092", "client_certificate": "REFERENCE", "tls": True}


@pytest.mark.parametrize(
    ("kind", "parts"),
    [
        (Kind.PIPELINE, {"dead_letters": "REFERENCE"}),
        (Kind.PIPELINE, {"dead_letters": {"kafka": "REFERENCE"}}),
        (Kind.PIPELINE, {"dead_letters": {"kafka": {"topic": "REFERENCE"}}}),
        (Kind.PIPELINE, {"dead_letters": {"kafka": {"topic": "t", "connection": CLUSTER}}}),
        (Kind.PIPELINE, {"connection": CLUSTER}),
        (Kind.PIPELINE, {"connection": "REFERENCE"}),
        (Kind.JOB, {"dead_letters": "REFERENCE"}),
        (Kind.JOB, {"connection": CLUSTER}),
        (Kind.FLOW, {"dead_letters": "REFERENCE"}),
        (Kind.FLOW, {"connection": FLOWS}),
        (Kind.FLOW, {"trigger": {"kafka": {"topics": "t", "connection": FLOWS}}}),
    ],
)
def test_the_server_looks_no_reference_up(
    client: TestClient,
    store: ControlStore,
    places: Places,
    canary: Path,
    kind: Kind,
    parts: dict[str, Any],
) -> None:
    for reference in (f"${{file:{canary}}}", "${env:CANARY}", "a${env:NONE:-x}", "${vault:x}"):
        _store(store, kind, **json.loads(json.dumps(parts).replace("REFERENCE", reference)))

        for reply in (
            client.get(f"{ONE}/dead-letters"),
            client.get(f"{ONE}/dead-letters/t-0-1"),
            client.post(f"{ONE}/dead-letters/drop", json={"all": True}),
        ):
            assert (reply.status_code, places) == (501, []), reply.text
            assert "known to the workers only" in reply.text
            assert CANARY not in reply.text


def test_a_reference_that_a_secret_is_part_of_is_not_looked_up(
    client: TestClient, places: Places, canary: Path
) -> None:
    password = {**CLUSTER, "client.id": "x", "sasl.password": f"${{file:{canary}}}"}
    login = {"sasl.mechanisms": "PLAIN", "sasl.username": "app", "security.protocol": "SASL_SSL"}
    for secret in (password, {**password, "sasl.password": "${env:CANARY:-hunter2hunter2}"}):
        text = _text("pipeline", connection={**login, **secret})
        assert client.put(ONE, content=text, headers=YAML).status_code in (200, 201)

        reply = client.get(f"{ONE}/dead-letters")

        assert (reply.status_code, places) == (501, [])
        assert "hunter2" not in reply.text


def test_an_escaped_reference_does_not_become_one(
    client: TestClient, store: ControlStore, places: Places, canary: Path
) -> None:
    for escaped in (f"$${{file:{canary}}}", f"$$${{file:{canary}}}", "$${env:CANARY}"):
        given = {**CLUSTER, "client.id": escaped}
        for parts in (
            {"connection": given},
            {"dead_letters": {"kafka": {"topic": "t", "connection": given}}},
        ):
            _store(store, Kind.PIPELINE, **parts)
            reply = client.get(f"{ONE}/dead-letters")

            assert reply.status_code in (200, 501), reply.text
            assert CANARY not in reply.text + repr(places)


PLAIN = "kafka-1:9092"


@pytest.mark.parametrize(
    ("kind", "parts", "brokers", "topic"),
    [
        (Kind.PIPELINE, {}, "default:9092", "orders.dead-letters"),
        (Kind.JOB, {}, "default:9092", "orders.dead-letters"),
        (Kind.FLOW, {}, "default:9092", "orders.dead-letters"),
        (Kind.PIPELINE, {"connection": "other"}, "other:9092", "orders.dead-letters"),
        (Kind.FLOW, {"connection": "other"}, "other:9092", "orders.dead-letters"),
        (Kind.PIPELINE, {"connection": PLAIN}, PLAIN, "orders.dead-letters"),
        (Kind.JOB, {"connection": {"bootstrap.servers": PLAIN}}, PLAIN, "orders.dead-letters"),
        (Kind.FLOW, {"connection": {"addresses": PLAIN}}, PLAIN, "orders.dead-letters"),
        (
            Kind.FLOW,
            {"trigger": {"kafka": {"topics": "t", "connection": {"addresses": PLAIN}}}},
            PLAIN,
            "orders.dead-letters",
        ),
        (Kind.FLOW, {"dead_letters": "letters"}, "default:9092", "letters"),
        # The connection of the letters counts; that of the pipeline is not needed.
        (
            Kind.PIPELINE,
            {
                "connection": {"bootstrap.servers": "${env:CANARY}"},
                "dead_letters": {"kafka": {"topic": "letters", "connection": "other"}},
            },
            "other:9092",
            "letters",
        ),
    ],
)
def test_letters_are_in_the_cluster_that_is_named_plainly(
    client: TestClient,
    store: ControlStore,
    places: Places,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    kind: Kind,
    parts: dict[str, Any],
    brokers: str,
    topic: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OTHER", "other:9092")
    (tmp_path / "penstock.yaml").write_text(
        "default: usual\nconnections:\n  usual: {bootstrap.servers: 'default:9092'}\n"
        "  other: {bootstrap.servers: '${env:OTHER}'}\n"
    )
    _store(store, kind, **parts)

    reply = client.get(f"{ONE}/dead-letters")

    assert reply.status_code == 200, reply.text
    assert [(config["bootstrap.servers"], name) for config, name in places] == [(brokers, topic)]


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("plugin.library.paths", {"plugin.library.paths": "/data/tables/x.so"}),
        ("plugin.library.paths", {"options": {"plugin.library.paths": "/data/tables/x.so"}}),
        (
            "sasl.kerberos.kinit.cmd",
            {
                "security.protocol": "sasl_ssl",
                "sasl.mechanisms": "GSSAPI",
                "sasl.kerberos.kinit.cmd": "touch /data/x",
            },
        ),
    ],
)
def test_a_definition_loads_no_code_into_the_server(
    client: TestClient, store: ControlStore, places: Places, name: str, given: dict[str, Any]
) -> None:
    cluster = {"bootstrap.servers": PLAIN, **given}
    for parts in (
        {"connection": cluster},
        {"dead_letters": {"kafka": {"topic": "t", "connection": cluster}}},
    ):
        _store(store, Kind.PIPELINE, **parts)
        reply = client.get(f"{ONE}/dead-letters")

        assert (reply.status_code, places) == (501, []), reply.text
        assert name in reply.json()["detail"]


def test_the_default_cluster_may_be_in_the_servers_environment(
    client: TestClient,
    store: ControlStore,
    places: Places,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PENSTOCK_KAFKA_BOOTSTRAP_SERVERS", "env:9092")
    _store(store, Kind.PIPELINE)

    assert client.get(f"{ONE}/dead-letters").status_code == 200
    assert places[0][0]["bootstrap.servers"] == "env:9092"


def test_a_stored_secret_of_the_cluster_is_used(client: TestClient, places: Places) -> None:
    given = {
        "bootstrap.servers": PLAIN,
        "security.protocol": "SASL_SSL",
        "sasl.mechanisms": "PLAIN",
        "sasl.username": "app",
        "sasl.password": "hunter2-$${x",
    }
    client.put(ONE, content=_text("pipeline", connection=given), headers=YAML)

    assert client.get(f"{ONE}/dead-letters").status_code == 200
    assert places[0][0]["sasl.password"] == "hunter2-${x"


def test_a_cluster_that_is_away_has_some_threads_of_the_server_and_not_all(
    kafka_api: Api, store: ControlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading, answers = Semaphore(0), Event()

    class Away:
        def __init__(self, *_given: object) -> None: ...

        def read(self) -> Iterator[Any]:
            reading.release()
            assert answers.wait(60)
            return iter(())

    monkeypatch.setattr(dead_letter_topic, "TopicRecords", Away)
    monkeypatch.setattr(dead_letter_routes, "_PATIENCE", 0.1)
    client = kafka_api()
    _store(store, Kind.PIPELINE, connection=PLAIN)
    with ThreadPoolExecutor(8) as pool:
        others = [pool.submit(client.get, f"{ONE}/dead-letters") for _ in range(8)]
        assert all(reading.acquire(timeout=60) for _ in others)
        one_more = client.get(f"{ONE}/dead-letters")
        answers.set()

    assert (one_more.status_code, "8 other requests" in one_more.text) == (503, True)
    assert {each.result().status_code for each in others} == {200}
    assert client.get(f"{ONE}/dead-letters").status_code == 200


def test_a_request_does_not_wait_where_many_wait_already(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "_MOST", 1)
    monkeypatch.setattr(connections, "_MOST_WAITING", 0)
    turns = Turns(timeout=3600)
    with (
        turns.taken("x"),
        pytest.raises(TransientError, match="1 other requests"),
        turns.taken("x"),
    ):
        raise AssertionError("not reached")
    with turns.taken("x"):
        pass


@pytest.fixture
def put_for(store: ControlStore) -> Callable[..., None]:
    """Stores a deployment of a team, with a secret."""

    def put(name: str, team: str) -> None:
        spec = store.secrets.sealed(name, _text("pipeline", password="hunter2hunter2"))
        store.deployments.put(name, Kind.PIPELINE, spec, labels={"team": team}, by="ann")

    return put


@pytest.mark.usefixtures("people", "places")
def test_deployments_of_other_teams_do_not_exist(
    kafka_api: Api,
    store: ControlStore,
    put_for: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, team in (("ours", "a"), ("payroll-of-the-board", "b"), ("acquisition", "b")):
        put_for(name, team)
    opened: list[str] = []
    monkeypatch.setattr(store.secrets, "opened", lambda name, _text: opened.append(name))
    tom = kafka_api("tom")

    for name in ("payroll-of-the-boar", "payroll-of-the-board", "a%00b", "x" * 300):
        path = f"/api/v1/deployments/{name}/dead-letters"
        for reply in (
            tom.get(path),
            tom.get(f"{path}/t-0-1"),
            tom.post(f"{path}/drop", json={"all": True}),
            tom.post(f"{path}/replay", json={}),
        ):
            assert (reply.status_code, opened) == (404, []), reply.text
            assert "ours" in reply.json()["detail"]
            assert "acquisition" not in reply.text


@pytest.mark.usefixtures("people", "places")
def test_the_role_for_a_change_is_asked_for_before_secrets_are_opened(
    kafka_api: Api,
    store: ControlStore,
    put_for: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    put_for("orders", "b")
    vic = kafka_api("vic")
    assert vic.get(f"{ONE}/dead-letters").status_code in (200, 400)
    opened: list[str] = []
    monkeypatch.setattr(store.secrets, "opened", lambda name, _text: opened.append(name))

    for change, body in (("drop", {"all": True}), ("replay", {})):
        reply = vic.post(f"{ONE}/dead-letters/{change}", json=body)
        assert (reply.status_code, opened) == (403, [])
