"""Users and tokens through the API."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.unit.server.conftest import PASSWORD, Api

from penstock.control.store import ControlStore

USERS, TOKENS = "/api/v1/users", "/api/v1/tokens"


@pytest.fixture
def ann(api: Api, people: None) -> TestClient:
    return api("ann")


def test_a_user_is_added_changed_and_removed(ann: TestClient, store: ControlStore) -> None:
    added = ann.post(USERS, json={"name": "new", "password": PASSWORD, "grants": ["viewer"]})
    changed = ann.patch(
        USERS + "/new", json={"grants": ["operator:team=a"], "password": "other-password"}
    )
    ann.patch(USERS + "/new", json={"disabled": True})
    assert store.users.log_in("new", "other-password") is None
    ann.patch(USERS + "/new", json={"disabled": False})
    assert store.users.log_in("new", "other-password") is not None
    removed = ann.delete(USERS + "/new")

    assert (added.status_code, changed.status_code, removed.status_code) == (201, 200, 204)
    assert changed.json()["grants"] == ["operator:team=a"]
    actions = [row.action for row in store.audit.before() if row.target == "new"]
    assert actions == ["user.remove", "user.change", "user.change", "user.change", "user.add"]
    assert "other-password" not in str(store.audit.before())


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"name": "ann", "password": PASSWORD, "grants": []}, "exists already"),
        ({"name": "a:b", "password": PASSWORD, "grants": []}, "without a colon"),
        ({"name": "", "password": PASSWORD, "grants": []}, "is not a name of a user"),
        ({"name": "a\x00", "password": PASSWORD, "grants": []}, "printable"),
        ({"name": "a", "password": "short", "grants": []}, "8 to 1000 characters"),
        ({"name": "a", "password": PASSWORD, "grants": ["admn"]}, "did you mean 'admin'?"),
        ({"name": "a", "password": PASSWORD, "grants": ["operator:team"]}, "is not a grant"),
        ({"name": "a", "password": PASSWORD, "grants": "admin"}, "body.grants"),
        ({"name": "a", "password": PASSWORD}, "body.grants"),
        ({"name": "a", "passwrd": PASSWORD, "grants": []}, "body.passwrd: this key is unknown"),
    ],
)
def test_a_wrong_user_is_refused(ann: TestClient, body: Any, words: str) -> None:
    reply = ann.post(USERS, json=body)

    assert reply.status_code == 400
    assert words in reply.json()["detail"]
    assert PASSWORD not in reply.text


@pytest.mark.parametrize(
    "change", [{"disabled": True}, {"grants": ["viewer"]}, {"grants": ["admin:team=a"]}]
)
def test_the_last_admin_stays(ann: TestClient, change: Any) -> None:
    reply = ann.patch(USERS + "/ann", json=change)

    assert (reply.status_code, "only user with the role admin" in reply.text) == (400, True)
    assert ann.delete(USERS + "/ann").status_code == 400


def test_a_changed_password_counts_at_once(ann: TestClient, api: Api) -> None:
    assert ann.patch(USERS + "/ann", json={"password": "another password"}).status_code == 200

    assert ann.get("/api/v1/me").status_code == 401


def test_a_token_is_shown_once_and_can_be_revoked(ann: TestClient, api: Api) -> None:
    made = ann.post(TOKENS, json={"user": "vic", "name": "ci", "grants": ["viewer"], "seconds": 60})
    token, id = made.json()["token"], made.json()["id"]
    listed = ann.get(TOKENS)
    robot = api(login=True)
    robot.headers["Authorization"] = f"Bearer {token}"

    assert made.status_code == 201
    assert (id in listed.text, token in listed.text) == (True, False)
    assert robot.get("/api/v1/me").json() == {
        "user": "vic",
        "grants": ["viewer"],
        "limits": ["viewer"],
    }
    assert robot.delete(f"{TOKENS}/{id}").status_code == 204
    assert robot.get("/api/v1/me").status_code == 401


def test_a_token_of_another_user_cannot_be_revoked(ann: TestClient, api: Api) -> None:
    made = ann.post(TOKENS, json={"user": "ann", "name": "ci"}).json()

    assert api("vic").delete(f"{TOKENS}/{made['id']}").status_code == 404
    assert ann.delete(f"{TOKENS}/{made['id']}").status_code == 204


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({"user": "zoe", "name": "t"}, 404, "there is no user 'zoe'"),
        ({"user": "vic", "name": "t", "seconds": 0}, 400, "positive number"),
        ({"user": "vic", "name": "t", "seconds": 1e300}, 400, "body.seconds"),
        ({"user": "vic", "name": "t", "grants": ["root"]}, 400, "is not a role"),
        ({"user": "vic", "name": "a\x00b"}, 400, "printable"),
        ({"user": "vic"}, 400, "body.name"),
    ],
)
def test_a_wrong_token_is_refused(ann: TestClient, body: Any, status: int, words: str) -> None:
    reply = ann.post(TOKENS, json=body)

    assert reply.status_code == status
    assert words in reply.json()["detail"]


def test_lists_are_paged(ann: TestClient) -> None:
    names: list[str] = []
    cursor = None
    while True:
        page = ann.get(USERS, params={"limit": 3, **({"cursor": cursor} if cursor else {})}).json()
        names += [each["name"] for each in page["items"]]
        if (cursor := page["next"]) is None:
            break

    assert names == ["ann", "olga", "tom", "vic"]
    assert ann.get(USERS, params={"cursor": "NQ=="}).status_code == 400


def test_a_login_gives_a_token_for_the_command_line(api: Api, people: None) -> None:
    client = api(login=True, login_seconds=60)
    reply = client.post("/api/v1/login", json={"user": "vic", "password": PASSWORD})
    wrong = client.post("/api/v1/login", json={"user": "vic", "password": "wrong password"})
    headers = {"Authorization": f"Bearer {reply.json()['token']}"}

    assert (reply.status_code, wrong.status_code) == (201, 401)
    assert reply.json()["expires"] - reply.json()["created"] == pytest.approx(60)
    assert client.get("/api/v1/me", headers=headers).json()["user"] == "vic"


def test_a_server_without_login_gives_no_tokens(client: TestClient) -> None:
    reply = client.post("/api/v1/login", json={"user": "vic", "password": PASSWORD})

    assert (reply.status_code, "needs no login" in reply.text) == (400, True)
    assert client.get("/api/v1/me").json()["user"] == "local"
