"""Kafka Connect's REST API: what each request gets, in the words of a real worker."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.contract.connect_rest.store_worker import StoreWorker
from tests.unit.server.conftest import Api

from penstock.config import Connection
from penstock.config.secrets import is_secret_key
from penstock.connect.config_definition import Type
from penstock.connect.connectors import CATALOG
from penstock.connect.converters import CONVERTERS
from penstock.connect.worker_defaults import WorkerDefaults
from penstock.control.store import ControlStore
from penstock.control.store.rows import Kind
from penstock.server.connect import connector_offsets
from penstock.server.connect.connect_api import HEALTHY

SINK = {"connector.class": "FileStreamSink", "topics": "orders", "file": "/tmp/out.txt"}
SOURCE = {"connector.class": "FileStreamSource", "topic": "orders", "file": "/tmp/in.txt"}


def made(client: TestClient, name: str = "orders", **more: Any) -> Any:
    return client.post("/connectors", json={"name": name, "config": {**SINK, **more}})


def error(reply: Any) -> tuple[int, str]:
    body = reply.json()
    assert body.keys() == {"error_code", "message"}
    assert body["error_code"] == reply.status_code
    return reply.status_code, body["message"]


def test_a_connector_is_made_read_and_removed(client: TestClient) -> None:
    reply = client.post("/connectors", json={"name": "orders", "config": {**SINK, "tasks.max": 2}})
    config = {**SINK, "tasks.max": "2", "name": "orders"}
    assert (reply.status_code, reply.headers["location"]) == (201, "/connectors/orders")
    assert reply.json() == {"name": "orders", "config": config, "tasks": [], "type": "sink"}

    tasks = [{"connector": "orders", "task": 0}, {"connector": "orders", "task": 1}]
    found = {"name": "orders", "config": config, "tasks": tasks, "type": "sink"}
    assert client.get("/connectors/orders/").json() == found
    assert client.get("/connectors").json() == ["orders"]
    assert client.get("/connectors/orders/config").json() == config

    assert client.delete("/connectors/orders").status_code == 204
    assert error(client.delete("/connectors/orders")) == (404, "Connector orders not found")
    assert client.get("/connectors").json() == []


def test_the_list_can_be_expanded(client: TestClient) -> None:
    made(client)
    both = client.get("/connectors?expand=info&expand=status").json()["orders"]
    assert both["info"]["type"] == "sink"
    assert both["status"]["connector"]["state"] == "UNASSIGNED"
    assert client.get("/connectors?expand=status").json()["orders"].keys() == {"status"}


@pytest.mark.parametrize(
    "name", ["with space", "100%", "ä😀?#;:@&='\"", "x" * 190, "a/b", "a\\b", "a\xa0b"]
)
def test_a_name_may_have_any_sign(client: TestClient, name: str) -> None:
    location = made(client, name).headers["location"]
    assert client.get(location).json()["name"] == name
    assert client.get(f"{location}/config").json()["name"] == name


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        (
            {"name": "a", "config": {"name": "b", **SINK}},
            400,
            "Connector name configuration (b) doesn't match connector name in the URL (a)",
        ),
        (
            {"name": "a", "config": {"tasks.max": "1"}},
            400,
            "Connector config {name=a, tasks.max=1} contains no connector type",
        ),
        (
            {"name": "a", "config": {"connector.class": "Nope"}},
            400,
            "Failed to find any class that implements Connector and which name matches Nope, available",
        ),
        (
            {"name": "a", "config": {**SINK, "topics": ""}},
            400,
            "Connector configuration is invalid and contains the following 2 error(s):\n"
            "Must configure one of topics or topics.regex\n"
            "Must configure one of topics or topics.regex\n"
            "You can also find the above list of errors at the endpoint "
            "`/connector-plugins/{connectorType}/config/validate`",
        ),
        ({"name": "a", "config": SINK, "colour": "red"}, 400, "unknown member 'colour'"),
        (
            {"name": "a", "config": SINK, "initial_state": "ASLEEP"},
            400,
            "initial_state is 'ASLEEP'",
        ),
        ([], 400, "the body is not a JSON object"),
        ({"name": "a\x00b", "config": SINK}, 400, "may not contain control sequences"),
        ({"name": "x" * 201, "config": SINK}, 400, "1 to 200 characters"),
        ({"name": "a", "config": {**SINK, "x": {"y": 1}}}, 400, "'x' is an object"),
    ],
)
def test_what_cannot_be_made_is_refused(
    client: TestClient, body: Any, status: int, message: str
) -> None:
    found = error(client.post("/connectors", json=body))
    assert found[0] == status
    assert message in found[1]
    assert client.get("/connectors").json() == []


def test_a_name_that_is_taken_is_a_conflict(client: TestClient) -> None:
    made(client)
    assert error(made(client)) == (409, "Connector orders already exists")


@pytest.mark.parametrize(
    ("method", "path", "message"),
    [
        ("GET", "/connectors/x", "Connector x not found"),
        ("DELETE", "/connectors/x", "Connector x not found"),
        ("GET", "/connectors/x/config", "Connector x not found"),
        ("GET", "/connectors/x/tasks", "Connector x not found"),
        ("GET", "/connectors/x/status", "No status found for connector x"),
        ("GET", "/connectors/x/tasks/0/status", "No status found for task x-0"),
        ("PUT", "/connectors/x/pause", "Unknown connector x"),
        ("PUT", "/connectors/x/resume", "Unknown connector x"),
        ("PUT", "/connectors/x/stop", "Unknown connector x"),
        ("POST", "/connectors/x/restart", "Unknown connector: x"),
        ("POST", "/connectors/x/tasks/0/restart", "Unknown connector: x"),
        ("GET", "/connectors/x/tasks-config", "HTTP 404 Not Found"),
        ("GET", "/connector-plugins/Nope/config", "Unknown plugin Nope."),
        ("GET", "/admin/loggers/nope", "Logger nope not found."),
    ],
)
def test_what_is_not_there(client: TestClient, method: str, path: str, message: str) -> None:
    assert error(client.request(method, path)) == (404, message)


def test_methods_and_types_are_checked_as_connect_does(client: TestClient) -> None:
    assert error(client.put("/connectors")) == (405, "HTTP 405 Method Not Allowed")
    assert error(client.get("/connectors", headers={"Accept": "text/html"})) == (
        406,
        "HTTP 406 Not Acceptable",
    )
    plain = client.post("/connectors", content="{}", headers={"Content-Type": "text/plain"})
    assert error(plain) == (415, "HTTP 415 Unsupported Media Type")
    assert client.head("/connectors").status_code == 200
    asked = client.options("/connectors")
    assert (asked.status_code, asked.headers["allow"]) == (200, "GET, HEAD, OPTIONS, POST")
    broken = client.post(
        "/connectors", content="{oops", headers={"Content-Type": "application/json"}
    )
    assert error(broken)[0] == 400


def test_a_browser_that_opens_the_root_gets_the_page(client: TestClient) -> None:
    browser = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}
    redirected = client.get("/", headers=browser, follow_redirects=False)
    assert (redirected.status_code, redirected.headers["location"]) == (302, "/api/docs")
    assert redirected.headers["vary"] == "Accept"
    assert client.head("/", headers=browser, follow_redirects=False).status_code == 302
    page = client.get("/", headers=browser)
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    for tool in ("*/*", "application/json", "application/json, */*;q=0.5"):
        reply = client.get("/", headers={"Accept": tool}, follow_redirects=False)
        assert reply.headers["content-type"] == "application/json"


def test_the_release_is_known_without_a_cluster(
    client: TestClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_HOME", str(tmp_path))
    monkeypatch.delenv("PENSTOCK_KAFKA_BOOTSTRAP_SERVERS", raising=False)
    monkeypatch.chdir(tmp_path)
    reply = client.get("/")
    assert reply.status_code == 200
    assert reply.json() == {
        "version": "4.3.1",
        "commit": "26b251a451ce941d",
        "kafka_cluster_id": "",
    }


def test_states_are_asked_for_and_shown(client: TestClient) -> None:
    made(client)

    def states() -> tuple[str, list[str]]:
        shown = client.get("/connectors/orders/status").json()
        return shown["connector"]["state"], [task["state"] for task in shown["tasks"]]

    assert states() == ("UNASSIGNED", ["UNASSIGNED"])
    for _ in range(2):
        assert client.put("/connectors/orders/pause").status_code == 202
    assert states() == ("PAUSED", [])  # as in Connect, it has no tasks before it runs
    assert client.put("/connectors/orders/resume").content == b""
    assert states()[0] == "UNASSIGNED"
    assert client.put("/connectors/orders/stop").status_code == 204
    assert states() == ("STOPPED", [])
    assert client.get("/connectors/orders").json()["tasks"] == []
    assert error(client.get("/connectors/orders/tasks/0/status"))[0] == 404


@pytest.mark.parametrize("state", ["paused", "STOPPED"])
def test_a_new_configuration_keeps_the_state(client: TestClient, state: str) -> None:
    client.post("/connectors", json={"name": "a", "config": SOURCE, "initial_state": state})
    changed = client.put("/connectors/a/config", json={**SOURCE, "batch.size": "7"})
    assert (changed.status_code, changed.json()["config"]["batch.size"]) == (200, "7")
    assert client.get("/connectors/a/status").json()["connector"]["state"] == state.upper()


def test_a_configuration_is_changed_by_some_keys(client: TestClient) -> None:
    assert client.put("/connectors/a/config", json=SOURCE).status_code == 201
    changed = client.patch("/connectors/a/config", json={"batch.size": 5, "topic": "other"})
    assert (
        changed.json()["config"] | {"batch.size": "5", "topic": "other"} == changed.json()["config"]
    )
    again = client.patch("/connectors/a/config", json={"batch.size": None})
    assert "batch.size" not in again.json()["config"]
    refused = client.patch("/connectors/a/config", json={"topic": None})
    assert 'Missing required configuration "topic"' in error(refused)[1]


def test_restarts_say_what_will_restart(client: TestClient) -> None:
    made(client)
    assert client.post("/connectors/orders/restart").status_code == 204
    all_of_it = client.post("/connectors/orders/restart?includeTasks=true&onlyFailed=false")
    assert all_of_it.status_code == 202
    shown = all_of_it.json()
    assert shown["connector"]["state"] == shown["tasks"][0]["state"] == "RESTARTING"
    failed = client.post("/connectors/orders/restart?includeTasks=true&onlyFailed=true").json()
    assert failed["connector"]["state"] == "UNASSIGNED"
    assert client.post("/connectors/orders/tasks/0/restart").status_code == 204
    assert error(client.post("/connectors/orders/tasks/9/restart")) == (
        404,
        "Unknown task: orders-9",
    )


def test_plugins_their_keys_and_their_check(client: TestClient) -> None:
    listed = client.get("/connector-plugins").json()
    sink = "org.apache.kafka.connect.file.FileStreamSinkConnector"
    assert {"class": sink, "type": "sink", "version": "4.3.1"} in listed
    for name in (sink, "FileStreamSinkConnector", "FileStreamSink"):
        keys = [each["name"] for each in client.get(f"/connector-plugins/{name}/config").json()]
        assert keys[:3] == ["file", "name", "connector.class"]
    checked = client.put(
        "/connector-plugins/FileStreamSource/config/validate",
        json={"connector.class": "FileStreamSource", "tasks.max": "0"},
    ).json()
    assert (checked["name"], checked["error_count"]) == ("FileStreamSource", 3)
    (tasks,) = [each for each in checked["configs"] if each["value"]["name"] == "tasks.max"]
    assert tasks["value"]["value"] == "0"
    other = client.put(
        "/connector-plugins/FileStreamSink/config/validate", json={"connector.class": "Other"}
    )
    assert error(other) == (
        400,
        "Included connector type Other does not match request type FileStreamSink",
    )


def test_levels_of_loggers(client: TestClient) -> None:
    assert client.get("/admin/loggers").json()["root"]["last_modified"] is None
    changed = client.put("/admin/loggers/penstock.connect.test", json={"level": "debug"})
    assert changed.json() == ["penstock.connect.test"]
    one = client.get("/admin/loggers/penstock.connect.test").json()
    assert one["level"] == "DEBUG"
    assert one["last_modified"] > 0
    loud = client.put("/admin/loggers/penstock.connect.test", json={"level": "LOUD"})
    assert error(loud) == (404, "invalid log level 'LOUD'.")
    none = client.put("/admin/loggers/penstock.connect.test", json={})
    assert error(none) == (400, "Desired 'level' parameter was not specified in request.")
    everywhere = client.put(
        "/admin/loggers/penstock.connect.test?scope=cluster", json={"level": "INFO"}
    )
    assert everywhere.status_code == 204


def test_secrets_are_never_shown_and_stay_when_they_come_back_masked(
    client: TestClient, tmp_path: Path
) -> None:
    made(client, "a", **{"connection.password": "hunter22"})
    shown = client.get("/connectors/a/config")
    assert "hunter22" not in shown.text
    assert client.put("/connectors/a/config", json=shown.json()).status_code == 200
    assert "hunter22" not in json.dumps(client.get("/connectors?expand=info").json())
    stored = b"".join(file.read_bytes() for file in tmp_path.rglob("*.sqlite*"))
    assert b"hunter22" not in stored


JAAS = 'org.x.PlainLoginModule required username="u" password="hunter22";'
WITH_SECRETS = {
    "login of another cluster": {
        "connector.class": "MirrorSource",
        "source.cluster.alias": "a",
        "source.cluster.bootstrap.servers": "b:9092",
        "source.cluster.security.protocol": "SASL_SSL",
        "source.cluster.sasl.mechanism": "PLAIN",
        "source.cluster.sasl.jaas.config": JAAS,
        "topics": "orders",
    },
    "login of a registry": {
        **SINK,
        "value.converter": "AvroConverter",
        "value.converter.schema.registry.url": "http://registry:8081",
        "value.converter.basic.auth.credentials.source": "USER_INFO",
        "value.converter.basic.auth.user.info": "app:hunter22",
    },
    "transform whose name is that of a secret": {
        **SINK,
        "transforms": "token",
        "transforms.token.type": "Cast$Value",
        "transforms.token.spec": "hunter22:int32",
    },
}


@pytest.mark.parametrize("config", WITH_SECRETS.values(), ids=WITH_SECRETS)
def test_masked_values_are_checked_as_the_stored_ones(
    client: TestClient, store: ControlStore, config: dict[str, str]
) -> None:
    assert client.put("/connectors/a/config", json=config).status_code == 201
    shown = client.get("/connectors/a/config")
    assert "hunter22" not in shown.text
    assert client.put("/connectors/a/config", json=shown.json()).status_code == 200
    assert client.patch("/connectors/a/config", json={"tasks.max": "2"}).status_code == 200
    row = store.deployments.find("a")
    opened = store.secrets.opened("a", row.spec)
    assert opened == {**config, "tasks.max": "2", "name": "a"}


def test_masked_values_of_another_connector_are_no_values(client: TestClient) -> None:
    client.put("/connectors/a/config", json=WITH_SECRETS["login of another cluster"])
    shown = client.get("/connectors/a/config").json()
    reply = client.put("/connectors/b/config", json={**shown, "name": "b"})
    assert reply.status_code == 400


@pytest.mark.parametrize("password", ["pw", "horse", "correcthorse"])
def test_the_login_of_a_registry_is_masked_whatever_the_password_is(
    client: TestClient, tmp_path: Path, password: str
) -> None:
    given = {"value.converter.basic.auth.user.info": f"app:{password}"}
    made(client, "a", **{**WITH_SECRETS["login of a registry"], **given})
    shown = client.get("/connectors/a/config").json()
    assert shown["value.converter.basic.auth.user.info"] == "********"
    assert shown["value.converter.basic.auth.credentials.source"] == "USER_INFO"
    stored = b"".join(file.read_bytes() for file in tmp_path.rglob("*.sqlite*"))
    assert f"app:{password}".encode() not in stored


def test_validate_masks_the_secrets_that_it_was_given(client: TestClient) -> None:
    config = {
        "connector.class": "io.confluent.connect.http.HttpSinkConnector",
        "topics": "orders",
        "http.api.url": "http://app:Url-Secret1@host/x?token=Query-Secret1",
        "headers": "Authorization:Basic Header-Secret1|X-Api-Key:Header-Secret2",
        "connection.password": "Password-Secret1",
        "tasks.max": "http://app:Misplaced-Secret1@host",
    }
    path = f"/connector-plugins/{config['connector.class']}/config/validate"
    reply = client.put(path, json={**config, "name": "orders"})
    assert reply.status_code == 200
    assert "Secret" not in reply.text
    values = {each["value"]["name"]: each["value"]["value"] for each in reply.json()["configs"]}
    assert values["http.api.url"] == "http://app:********@host/x?token=********"
    assert values["connection.password"] == "[hidden]"
    assert values["topics"] == "orders"


def test_the_refusal_of_a_configuration_without_a_class_masks_its_secrets(
    client: TestClient,
) -> None:
    config = {"http.authorization.header": "Api Secret1", "password": "a Secret2", "topics": "t"}
    status, text = error(client.put("/connectors/a/config", json=config))
    assert status == 400
    assert text.startswith("Connector config {name=a, http.authorization.header=********")
    assert "Secret" not in text


AVRO = {
    "value.converter": "AvroConverter",
    "value.converter.schema.registry.url": "http://registry",
    "value.converter.basic.auth.credentials.source": "USER_INFO",
    "value.converter.basic.auth.user.info": "app:Registry-Secret1",
}


def test_a_masked_configuration_is_validated_with_the_secrets_of_its_connector(
    api: Api, people: None
) -> None:
    client = api("ann")
    assert made(client, **AVRO).status_code == 201
    shown = client.get("/connectors/orders/config").json()
    path = "/connector-plugins/FileStreamSink/config/validate"
    reply = client.put(path, json=shown)
    assert reply.json()["error_count"] == 0
    assert "Registry-Secret1" not in reply.text
    # Without the rights to change the connector, or its name, a mask is what it is: no secret.
    for other, config in ((api("vic"), shown), (client, {**shown, "name": "other"})):
        reply = other.put(path, json=config)
        assert "must be of the form USER:PASSWORD" in reply.text


def test_more_tasks_than_anyone_reads_are_not_shown(client: TestClient) -> None:
    made(client, **{"tasks.max": "2147483647"})
    both = client.get("/connectors?expand=info&expand=status").json()["orders"]
    assert [len(both[part]["tasks"]) for part in ("info", "status")] == [1000, 1000]
    assert both["info"]["config"]["tasks.max"] == "2147483647"
    assert error(client.get("/connectors/orders/tasks/1000/status"))[0] == 404


def test_every_password_of_a_class_has_the_name_of_a_secret() -> None:
    definitions = [each.definition() for each in CATALOG.classes]
    definitions += [each.definition for each in CONVERTERS]
    keys = [key.name for each in definitions for key in each.keys if key.type is Type.PASSWORD]
    assert [name for name in keys if not is_secret_key(name)] == []
    assert "basic.auth.user.info" in keys


def test_a_connector_whose_class_was_removed_can_be_seen_stopped_and_deleted(
    client: TestClient, store: ControlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_KAFKA_BOOTSTRAP_SERVERS", "localhost:1")
    made(client)
    config = {"name": "gone", "connector.class": "com.acme.GoneConnector", "topics": "t"}
    store.deployments.put("gone", Kind.CONNECTOR, json.dumps(config), by="ann")
    listed = client.get("/connectors?expand=info&expand=status").json()
    assert {name: each["info"]["type"] for name, each in listed.items()} == {
        "gone": "unknown",
        "orders": "sink",
    }
    assert listed["gone"]["info"]["config"] == config
    assert listed["gone"]["status"]["type"] == "unknown"
    assert client.get("/connectors/gone/topics").json() == {"gone": {"topics": []}}
    for reply in (
        client.get("/connectors/gone/offsets"),
        client.delete("/connectors/gone/offsets"),
    ):
        status, text = error(reply)
        assert (status, "com.acme.GoneConnector of gone is not installed" in text) == (400, True)
    assert client.put("/connectors/gone/stop").status_code == 204
    assert client.get("/connectors/gone/status").json()["connector"]["state"] == "STOPPED"
    assert client.put("/connectors/gone/config", json=SINK).json()["type"] == "sink"
    assert client.delete("/connectors/gone").status_code == 204
    assert client.get("/connectors").json() == ["orders"]


def test_the_server_is_healthy_and_has_a_release(client: TestClient) -> None:
    assert client.get("/health").json()["status"] == "healthy"
    assert client.head("/health").status_code == 200
    assert error(client.post("/health")) == (405, "HTTP 405 Method Not Allowed")
    assert client.get("/health/", headers={"Host": "127.0.0.1"}).json() == HEALTHY
    assert error(client.delete("/")) == (405, "HTTP 405 Method Not Allowed")


def test_probes_need_no_login_and_the_rest_does(api: Api, people: None) -> None:
    stranger = api("ann")
    stranger.auth = None
    assert stranger.head("/health").status_code == stranger.get("/health").status_code == 200
    for path in ("/", "/connectors", "/connectors/a/topics/reset"):
        assert error(stranger.get(path))[0] == 401
    viewer = api("vic")
    assert error(viewer.put("/connectors/a/config", json=SINK))[0] == 403
    api("ann").put("/connectors/a/config", json=SINK)
    assert error(viewer.put("/connectors/a/topics/reset"))[0] == 403


def test_topics_are_those_of_records_since_the_reset(
    client: TestClient, store: ControlStore
) -> None:
    made(client, "a b", topics="t2,t1")
    path = "/connectors/a b/topics"
    assert client.get(path).json() == {"a b": {"topics": []}}
    worker = StoreWorker(store, failing=())
    worker.work()
    assert client.get(path).json() == {"a b": {"topics": ["t1", "t2"]}}
    assert client.put(f"{path}/reset").status_code == 202
    assert client.get(path).json() == {"a b": {"topics": []}}
    client.put("/connectors/a b/config", json={**SINK, "topics": "t3"})
    worker.work()
    assert client.get(path).json() == {"a b": {"topics": ["t3"]}}
    assert client.put("/connectors/x/topics/reset").status_code == 202
    assert [each.action for each in store.audit.before()][1] == "connector.topics.reset"
    assert client.get("/connectors/x/topics").json() == {"x": {"topics": []}}


def test_changes_of_offsets_and_levels_are_in_the_audit_log(
    client: TestClient, store: ControlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(client, "a b")
    for name in ("alter", "reset"):
        monkeypatch.setattr(connector_offsets, name, lambda *_given, **_named: "done")
    cluster = Connection(brokers="localhost:1")
    monkeypatch.setattr(WorkerDefaults, "find_connection", lambda _self: cluster)
    changes: list[tuple[str, str, Any]] = [
        ("PATCH", "/connectors/a b/offsets", {"offsets": [{"partition": {}, "offset": None}]}),
        ("DELETE", "/connectors/a b/offsets", None),
        ("PUT", "/admin/loggers/penstock.tests", {"level": "debug"}),
    ]
    for method, path, body in changes:
        assert client.request(method, path, json=body).status_code == 200, path

    last = [(each.action, each.who) for each in store.audit.before()][:3]
    assert last == [
        ("logger.set", "local"),
        ("connector.offsets.reset", "local"),
        ("connector.offsets.alter", "local"),
    ]
