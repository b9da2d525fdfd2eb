"""Deployments through the API: what is stored, what is refused, and what people see of it."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.unit.server.conftest import SPEC, YAML, Api

from penstock.control.secrets.sealing import Sealer
from penstock.control.secrets.spec_secrets import SpecSecrets
from penstock.control.store import ControlStore

Put = Callable[..., dict[str, Any]]
ONE = "/api/v1/deployments/orders"
SECRET = (
    "# what the team owns\n"
    "name: orders\n"
    "source: {kafka: {topics: t}}\n"
    "sink: {database: {url: 'postgresql://app:hunter2hunter2@db/x', table: t}}\n"
)


def test_a_new_deployment_is_created_and_the_same_again_changes_nothing(
    client: TestClient, store: ControlStore
) -> None:
    first = client.put(ONE, content=SPEC.format("orders"), headers=YAML)
    again = client.put(ONE, content=SPEC.format("orders"), headers=YAML)

    assert (first.status_code, again.status_code) == (201, 200)
    assert first.headers["etag"] == again.headers["etag"] == f'"{first.json()["revision"]}"'
    assert first.json() | {"run": 0} == again.json() | {"run": 0}
    assert first.json()["definition"] == SPEC.format("orders")
    assert [(row.who, row.action) for row in store.audit.before()] == [("local", "deployment.put")]


def test_a_definition_can_be_json_with_labels_and_a_desired_state(client: TestClient) -> None:
    definition = {"name": "orders", "source": {"kafka": {"topics": "t"}}, "sink": "discard"}
    plain = client.put(ONE, json=definition)
    more = client.put(
        ONE, json={"definition": definition, "labels": {"team": "a"}, "desired": "paused"}
    )

    assert plain.status_code == 201, plain.text
    assert (more.json()["labels"], more.json()["desired"]) == ({"team": "a"}, "paused")
    kept = client.put(ONE, json=definition).json()
    assert (kept["labels"], kept["desired"], kept["generation"]) == ({"team": "a"}, "paused", 2)


def test_secrets_are_sealed_masked_and_kept_when_the_masked_text_comes_back(
    client: TestClient, store: ControlStore
) -> None:
    first = client.put(ONE, content=SECRET, headers=YAML)
    shown = first.json()["definition"]
    changed = client.put(ONE, content=shown.replace("table: t", "table: u"), headers=YAML)

    assert "hunter2" not in first.text + changed.text + store.deployments.find("orders").spec
    assert "# what the team owns" in shown
    opened = store.secrets.opened("orders", store.deployments.find("orders").spec)
    assert opened["sink"]["database"] == {
        "url": "postgresql://app:hunter2hunter2@db/x",
        "table": "u",
    }


def test_a_definition_that_is_read_and_given_back_changes_nothing(client: TestClient) -> None:
    first = client.put(ONE, content=SECRET, headers=YAML).json()
    again = client.put(ONE, content=first["definition"], headers=YAML).json()

    assert (again["generation"], again["revision"]) == (1, first["revision"])


WRONG = [
    ("orders", "name: other\nsource: {kafka: {topics: t}}\nsink: discard", 422, "is 'other'"),
    ("orders", "name: orders\nsink: discard", 422, "source"),
    ("orders", "name: orders\nsnk: discard", 422, "did you mean 'sink'?"),
    ("orders", "a: [", 422, "not YAML"),
    ("orders", "- 1", 422, "a definition is a mapping"),
    ("orders", "", 422, "it is empty"),
    ("orders", "a: &a [*a]", 422, "contains itself"),
    ("orders", SPEC.format("orders") + "state: ${sealed:abc}", 400, "only the store may contain"),
    ("orders", SPEC.format("orders") + "group: '********'", 400, "masked value"),
    ("a b", SPEC.format("'a b'"), 422, "name"),
    ("%2e%2e%2fx", SPEC.format("x"), 404, "no such path"),
]


@pytest.mark.parametrize(("name", "text", "status", "words"), WRONG)
def test_a_definition_that_cannot_run_is_refused_with_the_reason(
    client: TestClient, store: ControlStore, name: str, text: str, status: int, words: str
) -> None:
    reply = client.put(f"/api/v1/deployments/{name}", content=text, headers=YAML)

    assert (reply.status_code, reply.headers["content-type"]) == (
        status,
        "application/problem+json",
    )
    assert words in reply.json()["detail"]
    assert store.deployments.all() == []


def test_aliases_that_multiply_are_refused_before_they_are_read(client: TestClient) -> None:
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    levels += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 30)]

    reply = client.put(ONE, content="\n".join(levels), headers=YAML)

    assert reply.status_code == 422
    assert "more than 5000 values" in reply.json()["detail"]


WRONG_JSON = [
    ('{"definition": 1}', "neither a text in YAML nor an object"),
    ('{"definition": {}, "lables": {}}', "did you mean 'labels'?"),
    ('{"definition": {}, "kind": "job"}', "cannot be given here; allowed: pipeline, flow"),
    ('{"definition": {}, "kind": "pipelin"}', "did you mean 'pipeline'?"),
    ('{"definition": {}, "desired": "deleted"}', "allowed: paused, running, stopped"),
    ('{"definition": {}, "desired": 5}', "'desired' is not a text"),
    ('{"definition": {}, "labels": ["a"]}', "not an object of texts"),
    ('{"name": "a", "name": "b"}', "the key 'name' is given twice"),
    ('{"name": NaN}', "NaN is not a number"),
    ("[1]", "not a JSON object"),
    ("{", "not JSON: line 1"),
    ('{"a": ' * 50_000, "nested too deep"),
]


@pytest.mark.parametrize(("body", "words"), WRONG_JSON)
def test_a_wrong_body_is_refused_with_the_reason(client: TestClient, body: str, words: str) -> None:
    reply = client.put(ONE, content=body, headers={"Content-Type": "application/json"})

    assert reply.status_code == 400, reply.text
    assert words in reply.json()["detail"]


@pytest.mark.parametrize(
    "body",
    [b"name: \xff", '{"definition": "name: \\ud800"}', '{"name": "\\ud800"}', b"name: a\x00b"],
)
def test_what_is_not_text_is_refused(client: TestClient, body: bytes | str) -> None:
    kind = "application/json" if isinstance(body, str) else "application/yaml"
    reply = client.put(ONE, content=body, headers={"Content-Type": kind})

    assert reply.status_code in (400, 422), reply.text


def test_labels_are_checked(client: TestClient) -> None:
    text = SPEC.format("orders")
    bad = client.put(ONE, content=text, headers=YAML, params={"label": "team"})
    worse = client.put(ONE, content=text, headers=YAML, params={"label": "team=<b>"})

    assert "write key=value" in bad.json()["detail"]
    assert "letters, digits" in worse.json()["detail"]
    assert (bad.status_code, worse.status_code) == (400, 400)


def test_a_change_of_what_someone_else_has_changed_is_refused(client: TestClient, put: Put) -> None:
    read = put()["revision"]
    put(team="a")
    text = SPEC.format("orders")
    conditions = {
        'If-Match "old"': {"If-Match": f'"{read}"'},
        "If-None-Match": {"If-None-Match": "*"},
    }
    for headers in conditions.values():
        reply = client.put(ONE, content=text, headers=YAML | headers)
        assert reply.status_code == 412, reply.text
    gone = client.put(
        "/api/v1/deployments/new", content=SPEC.format("new"), headers=YAML | {"If-Match": "*"}
    )

    assert gone.status_code == 412
    assert client.post(ONE + "/pause", headers={"If-Match": f'"{read}"'}).status_code == 412
    assert client.delete(ONE, headers={"If-Match": f'"{read}"'}).status_code == 412
    now = client.get(ONE).headers["etag"]
    assert client.post(ONE + "/pause", headers={"If-Match": now}).json()["desired"] == "paused"


@pytest.mark.parametrize(
    ("headers", "words"),
    [
        ({"If-Match": "7"}, 'allowed: the ETag of a reply, as in "12", or *'),
        ({"If-Match": 'W/"7"'}, "allowed: the ETag"),
        ({"If-None-Match": '"7"'}, "only * is allowed"),
        ({"If-Match": "*", "If-None-Match": "*"}, "give one of them"),
    ],
)
def test_a_wrong_condition_is_refused(client: TestClient, headers: Any, words: str) -> None:
    reply = client.put(ONE, content=SPEC.format("orders"), headers=YAML | headers)

    assert reply.status_code == 400
    assert words in reply.json()["detail"]


def test_many_writers_at_once_each_get_their_change(client: TestClient, put: Put) -> None:
    put()

    def relabel(number: int) -> int:
        return client.patch(ONE, json={"labels": {f"l{number}": "x"}}).status_code

    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(relabel, range(8))) == {200}

    assert sorted(client.get(ONE).json()["labels"]) == [f"l{n}" for n in range(8)]


def test_of_many_writers_of_one_revision_one_wins(client: TestClient, put: Put) -> None:
    seen = f'"{put()["revision"]}"'

    def stop(_: int) -> int:
        body = {"labels": {"n": f"{_}"}}
        return client.patch(ONE, json=body, headers={"If-Match": seen}).status_code

    with ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(stop, range(6))) == [200] + [412] * 5


def test_patch_merges_labels_and_asks_for_a_state(client: TestClient, put: Put) -> None:
    put(team="a", tier="1")
    reply = client.patch(ONE, json={"labels": {"tier": None, "zone": "x"}, "desired": "stopped"})

    assert reply.json()["labels"] == {"team": "a", "zone": "x"}
    assert reply.json()["desired"] == "stopped"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"desired": "deleted"}, "allowed: paused"),
        ({"desired": "runing"}, "did you mean 'running'?"),
        ({"lables": {}}, "body.lables: this key is unknown"),
        ({"labels": {"a": 5}}, "body.labels.a"),
        ([], "body"),
    ],
)
def test_a_wrong_patch_is_refused(client: TestClient, put: Put, body: Any, words: str) -> None:
    put()
    reply = client.patch(ONE, json=body)

    assert reply.status_code == 400
    assert words in reply.json()["detail"]


def test_actions_change_what_is_wanted(client: TestClient, put: Put, store: ControlStore) -> None:
    put()
    states = [
        client.post(f"{ONE}/{action}").json()["desired"]
        for action in ("pause", "resume", "stop", "resume", "restart")
    ]

    assert states == ["paused", "running", "stopped", "running", "running"]
    assert store.deployments.find("orders").round == 1
    actions = [row.action for row in reversed(store.audit.before())]
    assert actions == [
        "deployment." + each
        for each in ("put", "paused", "running", "stopped", "running", "restart")
    ]


def test_a_deletion_is_asked_for_and_is_final(client: TestClient, put: Put) -> None:
    put()
    reply = client.delete(ONE)

    assert (reply.status_code, reply.json()["desired"]) == (202, "deleted")
    assert client.delete(ONE).status_code == 202
    again = client.put(ONE, content=SPEC.format("orders"), headers=YAML)
    assert (again.status_code, "is being deleted" in again.text) == (400, True)
    compared = client.post(ONE + "/diff", content=SPEC.format("orders"), headers=YAML)
    assert (compared.status_code, compared.json()["detail"]) == (400, again.json()["detail"])


def test_one_whose_key_is_lost_can_be_read_given_again_and_deleted(
    client: TestClient, store: ControlStore
) -> None:
    client.put(ONE, content=SECRET, headers=YAML)
    store.secrets = SpecSecrets(Sealer([bytes(32)]))

    assert client.get(ONE).status_code == 200
    assert client.put(ONE, content=SECRET, headers=YAML).status_code == 200
    store.secrets = SpecSecrets(Sealer([bytes([1] * 32)]))
    assert client.delete(ONE).status_code == 202


def test_a_missing_deployment_is_named_with_a_hint(client: TestClient, put: Put) -> None:
    put()
    for method, path in [
        ("GET", ""), ("DELETE", ""), ("POST", "/pause"), ("GET", "/history"), ("GET", "/samples"),
        ("GET", "/counters"),
    ]:  # fmt: skip
        reply = client.request(method, "/api/v1/deployments/ordrs" + path)
        assert reply.status_code == 404
        assert "did you mean 'orders'?" in reply.json()["detail"]


def test_validate_reports_all_problems_with_their_lines_and_stores_nothing(
    client: TestClient, store: ControlStore
) -> None:
    text = "name: orders\nsource: {kafka: {topics: t}}\nevery: soon\nsnk: discard\n"
    reply = client.post(ONE + "/validate", content=text, headers=YAML).json()

    lines = {(each["line"], each["where"]) for each in reply["problems"]}
    assert not reply["valid"]
    assert {(3, "every"), (4, "snk")} <= lines
    good = client.post(ONE + "/validate", content=SPEC.format("orders"), headers=YAML).json()
    assert good == {"valid": True, "problems": []}
    assert store.deployments.all() == []


def test_diff_shows_what_would_change_without_secrets(client: TestClient) -> None:
    client.put(ONE, content=SECRET, headers=YAML)
    changed = SECRET.replace("table: t", "table: u").replace("hunter2hunter2", "hunter3hunter3")
    reply = client.post(ONE + "/diff", content=changed, headers=YAML)

    assert "hunter" not in reply.text
    lines = reply.json()["diff"].splitlines()
    assert [line[:6] for line in lines if line[0] in "+-" and line[1] not in "+-"] == [
        "-sink:",
        "+sink:",
    ]
    same = client.post(ONE + "/diff", content=SECRET, headers=YAML).json()
    assert (same["diff"], same["changed"]) == ("", False)
    secret_only = SECRET.replace("hunter2hunter2", "hunter3hunter3")
    other = client.post(ONE + "/diff", content=secret_only, headers=YAML).json()
    assert (other["diff"], other["changed"]) == ("", True)


def test_history_is_paged_and_can_be_rolled_back_to(client: TestClient, put: Put) -> None:
    put()
    client.put(ONE, content=SPEC.format("orders") + "every: 5s\n", headers=YAML)
    first = client.get(ONE + "/history", params={"limit": 1}).json()
    second = client.get(ONE + "/history", params={"limit": 1, "cursor": first["next"]}).json()

    numbers = [each["generation"] for each in first["items"] + second["items"]]
    assert (numbers, second["next"]) == ([2, 1], None)
    assert "every: 5s" in client.get(ONE + "/history/2").json()["definition"]
    back = client.post(ONE + "/rollback", json={"generation": 1}).json()
    assert (back["generation"], back["definition"]) == (3, SPEC.format("orders"))
    missing = client.post(ONE + "/rollback", json={"generation": 9})
    assert (missing.status_code, "it has 1, 2, 3" in missing.text) == (400, True)
    assert client.get(ONE + "/history/9").status_code == 404


def test_the_history_is_shown_without_reading_all_definitions(
    client: TestClient, put: Put, store: ControlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    put()
    put(team="a")
    monkeypatch.setattr(store.deployments, "history", None)

    items = client.get(ONE + "/history", params={"limit": 1}).json()["items"]
    assert [(each["generation"], each["labels"]) for each in items] == [(2, {"team": "a"})]
    assert "sink: discard" in client.get(ONE + "/history/1").json()["definition"]
    assert {each.spec for each in store.deployments.generations("orders")} == {""}
    for number in (0, 3, 2**63, -1):
        reply = client.get(f"{ONE}/history/{number}")
        assert (reply.status_code, "it has 1, 2" in reply.json()["detail"]) == (404, True)
    wrong = client.post(ONE + "/rollback", json={"generation": 3})
    assert (wrong.status_code, "it has 1, 2" in wrong.json()["detail"]) == (400, True)


def test_lists_are_filtered_and_paged(client: TestClient, put: Put) -> None:
    for n in range(5):
        put(f"p{n}", team="a" if n % 2 else "b")
    client.post("/api/v1/deployments/p3/pause")

    def names(**query: Any) -> list[str]:
        items = client.get("/api/v1/deployments", params=query).json()["items"]
        return [each["name"] for each in items]

    assert names() == [f"p{n}" for n in range(5)]
    assert names(label="team=a") == ["p1", "p3"]
    assert names(label=["team=a", "team"], desired="running") == ["p1"]
    assert names(desired="paused", kind="pipeline", state="pending", text="P3") == ["p3"]
    assert names(kind="job") == names(label="nope") == names(state="RUNNING") == []
    page = client.get("/api/v1/deployments", params={"limit": 3}).json()
    rest = client.get("/api/v1/deployments", params={"cursor": page["next"]}).json()
    assert [each["name"] for each in page["items"] + rest["items"]] == [f"p{n}" for n in range(5)]
    assert "definition" not in page["items"][0]


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("kind=pipelines", "did you mean 'pipeline'?"),
        ("desired=up", "allowed: deleted, paused, running, stopped"),
        ("state=UP", "state is 'UP'; allowed: FAILED, PAUSED, PENDING, RESTARTING, RETRYING"),
        ("state=runing", "did you mean 'RUNNING'?"),
        ("state=", "state is ''"),
        ("limit=0", "query.limit"),
        ("limit=1001", "query.limit"),
        ("limit=x", "query.limit"),
        ("cursor=%C3%A9", "is not a cursor"),
        ("cursor=NQ==", "not one of a list of deployments"),
        ("cursor=" + "a" * 2000, "query.cursor"),
        ("cursor=W1tbW1tb", "is not a cursor"),
    ],
)
def test_a_wrong_list_is_refused(client: TestClient, query: str, words: str) -> None:
    reply = client.get(f"/api/v1/deployments?{query}")

    assert reply.status_code == 400
    assert words in reply.json()["detail"]


def test_a_team_sees_and_changes_its_own_deployments_only(api: Api, people: None, put: Put) -> None:
    put("ours", team="a")
    put("theirs", team="b")
    tom = api("tom")

    listed = tom.get("/api/v1/deployments").json()["items"]
    assert [each["name"] for each in listed] == ["ours"]
    hidden = tom.get("/api/v1/deployments/theirs")
    assert (hidden.status_code, "theirs" in hidden.json()["detail"].partition(";")[2]) == (
        404,
        False,
    )
    assert tom.post("/api/v1/deployments/theirs/stop").status_code == 404
    assert tom.post("/api/v1/deployments/ours/stop").status_code == 200
    for path, label in [("theirs", "team=a"), ("ours", "team=b"), ("new", "team=b")]:
        address = f"/api/v1/deployments/{path}?label={label}"
        reply = tom.put(address, content=SPEC.format(path), headers=YAML)
        assert reply.status_code == 403, (path, reply.text)
    bare = tom.put("/api/v1/deployments/new", content=SPEC.format("new"), headers=YAML)
    assert bare.status_code == 403
    assert tom.patch("/api/v1/deployments/ours", json={"labels": {"team": "b"}}).status_code == 403


def test_a_rollback_does_not_give_a_deployment_to_another_team(
    api: Api, people: None, put: Put
) -> None:
    put("moved", team="b")
    put("moved", team="a")
    tom = api("tom")

    assert tom.post("/api/v1/deployments/moved/rollback", json={"generation": 1}).status_code == 403
    assert [
        each["generation"] for each in tom.get("/api/v1/deployments/moved/history").json()["items"]
    ] == [2]
    assert tom.get("/api/v1/deployments/moved/history/1").status_code == 404


def test_state_that_cannot_move_is_refused_on_several_machines(
    client: TestClient, store: ControlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store.database, "dialect", "postgresql")
    reply = client.post(ONE + "/validate", content=SPEC.format("orders"), headers=YAML).json()

    assert "cannot move to another worker" in reply["problems"][0]["message"]


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("resolution=5", "allowed: 10, 60"),
        ("since=nan", "query.since"),
        ("since=-1", "query.since"),
        ("since=1e400", "query.since"),
    ],
)
def test_wrong_samples_are_refused(client: TestClient, put: Put, query: str, words: str) -> None:
    put()
    reply = client.get(f"{ONE}/samples?{query}")

    assert reply.status_code == 400
    assert words in reply.json()["detail"]
