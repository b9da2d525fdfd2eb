"""`penstock users`, `login` and `logout`: from a store without users to a command with a token."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.services.penstock_server import PASSWORD, PenstockServer
from tests.unit.cli.conftest import Command

from penstock.control.places import open_store


@pytest.fixture
def guarded(
    tmp_path: Path, empty_store: Path, own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[PenstockServer]:
    """A server with login and the users ann (admin) and vic (viewer)."""
    folder = tmp_path / "store"
    folder.mkdir()
    with PenstockServer(folder, empty_store, login=True) as started:
        for name, role in (("ann", "admin"), ("vic", "viewer")):
            started.store.users.add(name, PASSWORD, [role])
        monkeypatch.setenv("PENSTOCK_SERVER", started.url)
        yield started


def type_in(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(text))


def test_a_login_gives_a_token_that_commands_use_until_the_logout(
    guarded: PenstockServer, command: Command, own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = command("get")
    assert before.code == 2
    assert f"penstock login --server {guarded.url}" in before.err

    type_in(monkeypatch, f"{PASSWORD}\n")
    done = command("login", "--user", "ann")
    assert (done.code, f"logged in to {guarded.url} as ann" in done.err) == (0, True)
    assert command("get").code == 0
    assert len(guarded.store.tokens.all()) == 1

    assert command("logout").code == 0
    assert guarded.store.tokens.all() == []
    assert command("get").code == 2
    again = command("logout")
    assert (again.code, "there is no stored token" in again.err) == (2, True)
    assert not any(own_home.rglob("*.json"))


def test_the_user_is_asked_for(
    guarded: PenstockServer, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    type_in(monkeypatch, f"vic\n{PASSWORD}\n")

    assert "as vic" in command("login").err


def test_a_drained_worker_is_in_the_audit_log(command: Command, own_home: Path) -> None:
    with open_store(None, None) as store:
        store.workers.join("w1", "host", 1)
    assert command("worker", "drain", "w1").code == 0
    assert command("worker", "drain", "w2").code == 2

    with open_store(None, None) as store:
        rows = [(each.action, each.target) for each in store.audit.before()]
    assert rows == [("worker.drain", "w1")]


@pytest.mark.parametrize(
    ("typed", "args", "text"),
    [
        ("wrong password\n", ["--user", "ann"], "the user or the password is wrong"),
        (f"{PASSWORD}\n", ["--user", "zoe"], "the user or the password is wrong"),
        ("", [], "no user was given"),
        ("", ["--with-token"], "stdin has no token"),
        ("pst_unknown\n", ["--with-token"], "the token is unknown, revoked or expired"),
        ("", ["--user", "ann", "--server", "http://penstock.example"], "is not encrypted"),
    ],
)
def test_a_login_that_fails_stores_nothing(
    typed: str,
    args: list[str],
    text: str,
    guarded: PenstockServer,
    command: Command,
    own_home: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    type_in(monkeypatch, typed)

    ended = command("login", *args)

    assert ended.code == 2
    assert text in ended.err
    assert not any(own_home.rglob("*.json"))


def test_a_token_of_the_environment_and_one_of_a_pipe(
    guarded: PenstockServer, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    token, _ = guarded.store.tokens.create("vic", "ci", grants=["viewer"], seconds=None)
    type_in(monkeypatch, f"{token}\n")
    assert "as vic" in command("login", "--with-token").err
    assert command("get").code == 0
    command("logout")

    monkeypatch.setenv("PENSTOCK_TOKEN", token)
    assert command("get").code == 0
    refused = command("pause", "a")
    assert refused.code == 2


def test_a_viewer_who_applies_is_refused(
    guarded: PenstockServer, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    type_in(monkeypatch, f"{PASSWORD}\n")
    command("login", "--user", "vic")
    Path("a.yaml").write_text("name: a\nsource: {kafka: t}\nsink: discard\n")

    ended = command("apply", "a.yaml", "--yes")

    assert ended.code == 2
    assert "it takes the role operator" in ended.err
    assert guarded.store.deployments.all() == []


def test_a_server_without_login_says_so(
    server: PenstockServer, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    type_in(monkeypatch, f"{PASSWORD}\n")

    assert "this server needs no login" in command("login", "--user", "ann").err


def test_users_are_added_listed_and_removed(
    command: Command, own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    type_in(monkeypatch, f"{PASSWORD}\n")
    added = command("users", "add", "ann", "--role", "viewer", "--role", "operator:team=x")
    assert (added.code, added.err) == (0, "ann is added: viewer, operator:team=x\n")
    assert json.loads(command("users", "list", "--json").out) == [
        {"name": "ann", "roles": ["viewer", "operator:team=x"], "disabled": False}
    ]
    assert command("users", "list").out.splitlines()[1] == "ann\tviewer, operator:team=x\tactive"

    type_in(monkeypatch, "another password 2\n")
    assert "must log in again" in command("users", "password", "ann").err
    assert command("users", "remove", "ann", "--yes").code == 0
    assert json.loads(command("users", "list", "--json").out) == []


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (["add", "ann", "--role", "king"], "'king' is not a role"),
        (["add", "a:b", "--role", "admin"], "is not a name of a user"),
        (["remove", "bob", "--yes"], "there is no user 'bob'; there are none"),
        (["password", "bob"], "there is no user 'bob'; there are none"),
    ],
)
def test_a_wrong_user_is_refused(
    args: list[str], text: str, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    type_in(monkeypatch, f"{PASSWORD}\n")

    ended = command("users", *args)

    assert (ended.code, text in ended.err) == (2, True), ended
