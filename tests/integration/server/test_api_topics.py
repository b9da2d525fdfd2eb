"""Topics, groups and the cluster over the API, on a real broker."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.integration.server.small_app import Api, app_of

from penstock.config import Connection
from penstock.kafka import Admin, Consumer
from penstock.server.kafka.cluster_routes import cluster_router
from penstock.server.kafka.connections import Connections
from penstock.server.kafka.group_routes import groups_router
from penstock.server.kafka.topic_routes import topics_router
from penstock.testing import eventually, fill


@pytest.fixture
def api(connections: Connections) -> Iterator[Api]:
    changes: list[Any] = []

    def audit(who: str, action: str, target: str, **detail: Any) -> None:
        changes.append((who, action, target, detail))

    app = app_of(
        topics_router(connections, audit),
        groups_router(connections, audit),
        cluster_router(connections),
    )
    with TestClient(app, raise_server_exceptions=False) as client:
        yield Api(client, changes)


def test_a_topic_is_created_described_changed_and_deleted(
    api: Api, topic: Callable[..., str]
) -> None:
    name = topic()
    body = {"name": name, "partitions": 2, "config": {"retention.ms": 60_000}}
    made = api("POST", "/topics", json=body)
    assert made.status_code == 201
    assert made.json()["config"] == {"retention.ms": "60000"}
    assert [p["partition"] for p in made.json()["partitions"]] == [0, 1]

    change = {"config": {"retention.ms": None, "cleanup.policy": "compact"}, "partitions": 3}
    changed = api("PATCH", f"/topics/{name}", json=change).json()
    assert changed["config"] == {"cleanup.policy": "compact"}
    assert len(changed["partitions"]) == 3
    every = {s["name"]: s for s in api.get(f"/topics/{name}", settings=True)["settings"]}
    assert every["cleanup.policy"]["source"] == "topic"

    assert api("DELETE", f"/topics/{name}").status_code == 204
    status, text = api.refused("GET", f"/topics/{name}")
    assert status == 404
    assert f"there is no topic '{name}'" in text
    assert [(who, action, target) for who, action, target, _ in api.changes] == [
        ("ann", "topic.create", name),
        ("ann", "topic.config", name),
        ("ann", "topic.partitions", name),
        ("ann", "topic.delete", name),
    ]


def test_topics_come_in_pages_by_name(
    api: Api, connection: Connection, topic: Callable[..., str]
) -> None:
    names = sorted(topic(f"page-{n}") for n in range(5))
    with Admin(connection) as admin:
        for name in names:
            admin.create_topic(name, 1)
    pages, cursor = [], None
    while True:
        given = {"contains": topic("page").upper(), "limit": 2} | (
            {"cursor": cursor} if cursor else {}
        )
        page = api.get("/topics", **given)
        pages.append([each["name"] for each in page["items"]])
        cursor = page["next"]
        if cursor is None:
            break
    assert pages == [names[:2], names[2:4], names[4:]]


def test_offsets_of_partitions_count_records(
    api: Api, connection: Connection, topic: Callable[..., str]
) -> None:
    fill(connection, topic(), [b"a", b"b", b"c"], partitions=2)
    partitions = api.get(f"/topics/{topic()}")["partitions"]
    assert [(p["earliest"], p["latest"], p["offsets"]) for p in partitions] == [
        (0, 2, 2),
        (0, 1, 1),
    ]


def test_internal_topics_are_listed_on_request_and_not_changed(api: Api) -> None:
    assert not [t for t in api.get("/topics", limit=1000)["items"] if t["internal"]]
    status, text = api.refused("DELETE", "/topics/__consumer_offsets")
    assert (status, "belongs to Kafka itself" in text) == (400, True)


def test_a_group_is_listed_described_reset_and_deleted(
    api: Api, connection: Connection, topic: Callable[..., str], unique: str
) -> None:
    fill(connection, topic(), [b"a", b"b", b"c"])
    group = f"{unique}/billing team"
    with Consumer(connection, group=group) as consumer:
        consumer.assign({(topic(), 0): 0})
        consumer.commit({(topic(), 0): 2})
    assert [g["name"] for g in api.get("/groups", contains=unique)["items"]] == [group]
    detail = api.get(f"/groups/{group}")
    assert (detail["lag"], detail["positions"][0]["committed"]) == (1, 2)

    path = f"/groups/{group}/reset"
    plan = api("POST", path, "operator", json={"to": "earliest", "dry_run": True}).json()
    assert (plan["done"], plan["moves"][0]["new"], plan["moves"][0]["change"]) == (False, 0, -2)
    assert api.get(f"/groups/{group}")["lag"] == 1
    done = api("POST", path, "operator", json={"to": "-1", "topics": [f"{topic()}:0"]}).json()
    assert (done["done"], done["moves"][0]["new"]) == (True, 1)
    assert api.get(f"/groups/{group}")["lag"] == 2

    assert api("DELETE", f"/groups/{group}").status_code == 204
    status, text = api.refused("GET", f"/groups/{group}")
    assert (status, text.startswith("there is no consumer group")) == (404, True)
    assert [change[1] for change in api.changes] == ["group.reset", "group.delete"]


def test_a_group_with_members_is_neither_reset_nor_deleted(
    api: Api, connection: Connection, topic: Callable[..., str], unique: str
) -> None:
    fill(connection, topic(), [b"a"])
    with Consumer(connection, group=unique, auto_offset_reset="earliest") as consumer:
        consumer.subscribe(topic())
        eventually(lambda: consumer.poll(0.2))
        consumer.commit()
        members = api.get(f"/groups/{unique}")["members"]
        assert members[0]["partitions"] == [[topic(), 0]]
        for method, path, body in (
            ("POST", f"/groups/{unique}/reset", {"to": "earliest"}),
            ("DELETE", f"/groups/{unique}", None),
        ):
            status, text = api.refused(method, path, json=body)
            assert (status, "1 member reads in this group now" in text) == (409, True)
    assert api.changes == []


def test_the_cluster_has_an_id_and_brokers(api: Api, connection: Connection) -> None:
    cluster = api.get("/cluster")
    assert cluster["id"]
    assert cluster["controller"] in [broker["id"] for broker in cluster["brokers"]]
    port = int(connection.brokers.split(",")[0].rpartition(":")[2])
    assert port in [broker["port"] for broker in cluster["brokers"]]


LONG = "x" * 250


@pytest.mark.by_turns
@pytest.mark.parametrize(
    ("method", "path", "body", "status", "text"),
    [
        ("GET", "/topics/a%20b", None, 400, "'a b' is not the name of a topic"),
        ("GET", "/topics/%00", None, 400, "is not the name of a topic"),
        ("GET", "/topics/%2e%2e", None, 400, "'..' is not the name of a topic"),
        ("GET", f"/topics/{LONG}", None, 400, "is not the name of a topic; allowed: 1 to 249"),
        ("GET", "/topics/no-such-topic", None, 404, "there is no topic 'no-such-topic'"),
        ("GET", "/topics?limit=0", None, 422, "query, limit: Input should be greater than"),
        ("GET", "/topics?limit=1001", None, 422, "less than or equal to 1000"),
        ("GET", "/topics?cursor=%21%21", None, 400, "is not a cursor"),
        ("GET", "/topics?cursor=WzFd", None, 400, "is not a cursor of this list"),
        ("GET", "/topics?intern=1", None, 400, "'intern'; did you mean 'internal'?"),
        ("GET", "/topics?connection=nope", None, 400, "no connection is named 'nope'"),
        ("POST", "/topics", {"name": "a/b"}, 400, "'a/b' is not the name of a topic"),
        ("POST", "/topics", {"name": "__mine"}, 400, "belongs to Kafka itself"),
        ("POST", "/topics", {"name": "a", "partitions": 0}, 422, "body, partitions: Input"),
        ("POST", "/topics", {"name": "a", "partition": 1}, 422, "body, partition: Extra inputs"),
        ("POST", "/topics", {"name": "a", "replication": 9}, 400, "creating topic 'a'"),
        ("POST", "/topics", {"name": "a", "config": {"x.y": "1"}}, 400, "creating topic 'a'"),
        ("POST", "/topics", {"name": "a", "config": {"x": "a\0b"}}, 422, "should match pattern"),
        ("POST", "/topics", {"name": "\ud800"}, 400, "half of a surrogate pair"),
        ("POST", "/topics", {"\ud800": 1, "name": "a"}, 400, "half of a surrogate pair"),
        ("POST", "/topics", {"name": "a", "config": {"x": ["\0"]}}, 422, "should match pattern"),
        ("POST", "/topics", None, 422, "body: Field required"),
        ("PATCH", "/topics/no-such-topic", {}, 400, "nothing to change"),
        ("PATCH", "/topics/no-such-topic", {"partitions": 2}, 404, "there is no topic"),
        ("DELETE", "/topics/no-such-topic", None, 404, "there is no topic"),
        ("GET", "/groups/no-such-group", None, 404, "there is no consumer group"),
        ("GET", "/groups/a%00b", None, 400, "is not the name of a group"),
        ("DELETE", "/groups/no-such-group", None, 404, "there is no consumer group"),
        ("POST", "/groups/g/reset", {"to": ""}, 422, "body, to"),
        ("POST", "/groups/g/reset", {"to": "earliest"}, 404, "there is no consumer group"),
        ("POST", "/groups/g/reset", {"to": "x", "topics": ["a:b"]}, 400, "TOPIC:PARTITION"),
        ("POST", "/groups/g/reset", {"to": "x", "topics": ["a:²"]}, 400, "TOPIC:PARTITION"),
        *(
            ("POST", "/groups/g/reset", {"to": to, "topics": ["t"]}, 400, "is out of range")
            for to in (
                "9" * 30,
                "+" + "9" * 30,
                "-" + "9" * 30,
                "@" + "9" * 30,
                "-" + "9" * 30 + "d",
            )
        ),
        ("POST", "/groups/g/reset", {"to": "x"}, 404, "there is no consumer group"),
        ("GET", "/acls?operation=fly", None, 400, "'fly' is not a valid operation"),
        ("GET", "/acls", None, 501, "this cluster keeps no ACLs"),
    ],
)
def test_a_wrong_request_gets_a_reason(
    api: Api, method: str, path: str, body: Any, status: int, text: str
) -> None:
    given = {} if body is None else {"content": json.dumps(body)}
    got, detail = api.refused(method, path, **given)
    assert (got, text in detail) == (status, True), detail


@pytest.mark.parametrize(
    ("role", "method", "path", "needed"),
    [
        ("viewer", "POST", "/topics", "admin"),
        ("operator", "PATCH", "/topics/a", "admin"),
        ("operator", "DELETE", "/topics/a", "admin"),
        ("viewer", "POST", "/groups/g/reset", "operator"),
        ("operator", "DELETE", "/groups/g", "admin"),
        ("viewer:team=a", "GET", "/topics", "viewer"),
    ],
)
def test_a_role_that_is_not_enough_is_refused(
    api: Api, role: str, method: str, path: str, needed: str
) -> None:
    body = {"to": "earliest", "name": "a"} if method in ("POST", "PATCH") else None
    status, text = api.refused(method, path, role=role, json=body)
    assert (status, f"it takes the role {needed}" in text) == (403, True)


def test_a_caller_without_access_is_refused(api: Api) -> None:
    assert api.client.get("/topics").status_code == 401


def test_a_topic_that_exists_is_a_conflict(
    api: Api, connection: Connection, topic: Callable[..., str]
) -> None:
    fill(connection, topic(), [])
    status, text = api.refused("POST", "/topics", json={"name": topic()})
    assert (status, "already exists" in text) == (409, True)


def test_partitions_are_only_added_and_nothing_else_is_changed(
    api: Api, connection: Connection, topic: Callable[..., str]
) -> None:
    fill(connection, topic(), [], partitions=2)
    change = {"partitions": 2, "config": {"retention.ms": 1000}}
    status, text = api.refused("PATCH", f"/topics/{topic()}", json=change)
    assert (status, "give at least 3" in text) == (400, True)
    assert api.get(f"/topics/{topic()}")["config"] == {}


def test_a_broker_that_is_away_is_a_503(connection: Connection) -> None:
    connections = Connections(lambda _name: Connection(brokers="127.0.0.1:9"), timeout=1.0)
    with TestClient(app_of(topics_router(connections, lambda *_a, **_k: None))) as client:
        status, text = Api(client).refused("GET", "/topics")
    connections.close()
    assert (status, "no broker answers at 127.0.0.1:9" in text) == (503, True)


def test_many_requests_at_once_share_the_clients(api: Api) -> None:
    with ThreadPoolExecutor(12) as threads:
        replies = list(threads.map(lambda _: api("GET", "/cluster").status_code, range(24)))
    assert replies == [200] * 24


def test_two_creations_at_once_make_one_topic(api: Api, topic: Callable[..., str]) -> None:
    body = {"name": topic(), "partitions": 1}
    with ThreadPoolExecutor(4) as threads:
        sent = [threads.submit(api, "POST", "/topics", json=body) for _ in range(4)]
    assert sorted(each.result().status_code for each in sent) == [201, 409, 409, 409]
    assert len(api.changes) == 1


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"{", "the body is not JSON"),
        (b"[" * 100_000, "it is nested too deeply"),
        (b"\xff\xfe", "the body is not JSON"),
        (b"9" * 5000, "the body is not JSON"),
    ],
)
def test_a_body_that_is_not_json_is_refused(api: Api, body: bytes, text: str) -> None:
    status, detail = api.refused("POST", "/topics", content=body)
    assert (status, text in detail) == (400, True), detail
