"""Subjects of a real schema registry, messages with registered schemas, and components over the API."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.integration.server.small_app import Api, app_of

from penstock.config import Connection
from penstock.embedded import SchemaRegistry
from penstock.formats.avro import Avro
from penstock.formats.registry import Registry, Schema
from penstock.formats.registry.registry_options import RegistryOptions
from penstock.server.kafka import component_catalog
from penstock.server.kafka.component_catalog import ComponentCatalog
from penstock.server.kafka.component_routes import components_router
from penstock.server.kafka.connections import Connections
from penstock.server.kafka.message_routes import messages_router
from penstock.server.kafka.registry_routes import registry_router
from penstock.testing import fill, read_all

TRADE = {
    "type": "record",
    "name": "Trade",
    "fields": [{"name": "id", "type": "long"}, {"name": "side", "type": "string"}],
}


@pytest.fixture
def api(connection: Connection, schema_registry: SchemaRegistry) -> Iterator[Api]:
    changes: list[Any] = []

    def audit(who: str, action: str, target: str, **detail: Any) -> None:
        changes.append((who, action, target, detail))

    options = RegistryOptions(url=schema_registry.url)
    connections = Connections(lambda _name: connection, options)
    routers = [registry_router(connections, audit), messages_router(connections, audit)]
    with TestClient(app_of(*routers), raise_server_exceptions=False) as client:
        yield Api(client, changes)
    connections.close()


@pytest.fixture
def registry(schema_registry: SchemaRegistry) -> Registry:
    return Registry(schema_registry.url)


def test_a_subject_is_listed_described_changed_and_deleted(
    api: Api, registry: Registry, unique: str
) -> None:
    name = f"{unique}/a b-value"
    number = registry.register(name, Schema(json.dumps(TRADE)))
    assert api.get("/subjects", contains=unique)["items"] == [{"name": name}]
    detail = api.get(f"/subjects/{name}")
    assert (detail["name"], detail["versions"], detail["latest"]["id"]) == (name, [1], number)
    version = api.get(f"/subjects/{name}/versions/1")
    assert (version["type"], json.loads(version["schema"])["name"]) == ("AVRO", "Trade")
    assert json.loads(api.get(f"/schemas/{number}")["schema"])["name"] == "Trade"

    change = {"compatibility": "FULL"}
    assert (
        api("PUT", f"/subjects/{name}/compatibility", json=change).json()["compatibility"] == "FULL"
    )
    assert api("DELETE", f"/subjects/{name}").json() == {"deleted": [1]}
    assert api.refused("GET", f"/subjects/{name}")[0] == 404
    assert [change[1] for change in api.changes] == ["subject.compatibility", "subject.delete"]


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "text"),
    [
        ("GET", "/subjects/none", None, 404, "refuses subject 'none' (HTTP 404)"),
        ("GET", "/subjects/none/versions/1", None, 404, "HTTP 404"),
        ("GET", "/subjects/none/versions/0", None, 422, "path, version"),
        ("GET", "/subjects/a%00", None, 400, "is not the name of a subject"),
        ("GET", "/schemas/2147483647", None, 404, "has no schema with id 2147483647"),
        ("PUT", "/subjects/none/compatibility", {"compatibility": "FULL"}, 404, "HTTP 404"),
        ("PUT", "/subjects/none/compatibility", {"compatibility": "SOME"}, 422, "'BACKWARD'"),
        ("DELETE", "/subjects/none", None, 404, "HTTP 404"),
    ],
)
def test_a_wrong_request_gets_a_reason(
    api: Api, method: str, path: str, body: Any, status: int, text: str
) -> None:
    got, detail = api.refused(method, path, json=body)
    assert (got, text in detail) == (status, True), detail
    assert api.changes == []


def test_only_admins_change_subjects(api: Api) -> None:
    assert api.refused("DELETE", "/subjects/a", role="operator")[0] == 403
    body = {"compatibility": "FULL"}
    assert api.refused("PUT", "/subjects/a/compatibility", role="operator", json=body)[0] == 403


def test_a_server_without_registry_says_so(connections: Connections) -> None:
    app = app_of(registry_router(connections, lambda *_a, **_k: None))
    with TestClient(app) as client:
        status, text = Api(client).refused("GET", "/subjects")
    assert (status, "this server has no schema registry" in text) == (404, True)
    assert "penstock serve --registry URL" in text


def test_messages_are_decoded_with_their_registered_schema(
    api: Api, registry: Registry, connection: Connection, topic: Callable[..., str]
) -> None:
    avro = Avro(registry, TRADE)
    values = [avro.encode({"id": n, "side": "buy" if n else "sell"}, topic()) for n in range(2)]
    unknown = b"\0\x7f\xff\xff\xff abc"
    fill(connection, topic(), [*values, unknown, values[0][:-1]])
    path = f"/topics/{topic()}/messages"
    shown = [item["value"] for item in api.get(path, order="oldest")["items"]]
    assert shown[0]["form"] == "avro"
    assert shown[0]["data"] == {"id": 0, "side": "sell"}
    assert shown[0]["schema_id"] == int.from_bytes(values[0][1:5], "big")
    assert shown[2]["form"] == "base64"
    assert "avro" in shown[3]["error"]
    for wanted in ({"pointer": "/side", "equals": "buy"}, {"value": "buy"}):
        assert [item["offset"] for item in api.get(path, **wanted)["items"]] == [1]


def test_records_are_written_with_the_newest_schema(
    api: Api, registry: Registry, connection: Connection, topic: Callable[..., str]
) -> None:
    fill(connection, topic(), [])
    path = f"/topics/{topic()}/messages"
    body = {"records": [{"value": {"id": 7, "side": "buy"}}], "format": "avro"}
    assert api.refused("POST", path, json=body)[0] == 404
    registry.register(f"{topic()}-value", Schema(json.dumps(TRADE)))
    assert api("POST", path, json=body).status_code == 201
    assert Avro(registry).decode(read_all(connection, topic())[0].value)["id"] == 7
    wrong = {"records": [{"value": {"id": "x"}}], "format": "avro"}
    status, text = api.refused("POST", path, json=wrong)
    assert (status, "records[0]: this dict does not fit the avro schema" in text) == (400, True)


def test_a_registry_that_is_away_leaves_messages_as_they_are(
    connection: Connection, topic: Callable[..., str]
) -> None:
    fill(connection, topic(), [b"\0\0\0\0\1abc", b"\0\0\0\0\2abc", b"text"])
    away = RegistryOptions(url="http://127.0.0.1:9", timeout=0.5)
    connections = Connections(lambda _name: connection, away)
    with TestClient(app_of(messages_router(connections, lambda *_a, **_k: None))) as client:
        items = Api(client).get(f"/topics/{topic()}/messages", order="oldest")["items"]
    connections.close()
    assert ["error" in item["value"] for item in items] == [True, True, False]
    assert "is away or busy" in items[0]["value"]["error"]


@pytest.fixture(scope="module")
def components() -> Iterator[Api]:
    with TestClient(app_of(components_router(ComponentCatalog()))) as client:
        yield Api(client)


def test_components_have_a_summary_and_a_schema(components: Api) -> None:
    items = components.get("/components")["items"]
    by_name = {(each["kind"], each["name"]): each for each in items}
    assert by_name["sink", "database"]["aliases"] == ["jdbc"]
    assert all(each["summary"] and "error" not in each for each in items)
    assert {each["kind"] for each in components.get("/components", kind="step")["items"]} == {
        "step"
    }
    kafka = components.get("/components/sink/kafka")
    assert kafka["schema"]["properties"]["topic"]["description"].startswith("The topic to write to")
    assert components.get("/components/sink/jdbc")["name"] == "database"
    assert "source" in components.get("/definition-schema")["properties"]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/components?kind=snik", "there is no kind 'snik'; did you mean 'sink'?"),
        ("/components/snik/kafka", "there is no kind 'snik'"),
        ("/components/sink/kafkaa", "there is no sink 'kafkaa'; did you mean 'kafka'?"),
    ],
)
def test_an_unknown_component_is_not_found(components: Api, path: str, text: str) -> None:
    status, detail = components.refused("GET", path)
    assert (status, text in detail) == (404, True)


def test_a_component_that_cannot_be_loaded_gives_its_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(_kind: str, _name: str) -> Any:
        raise RuntimeError("no such driver")

    monkeypatch.setattr(component_catalog, "component", broken)
    shown = component_catalog._described("sink", "kafka")
    assert (shown["schema"], shown["error"]) == (
        None,
        "it cannot be loaded: RuntimeError: no such driver",
    )
