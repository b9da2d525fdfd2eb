"""`penstock apply`: what it shows, what it changes, and what stops it before anything is changed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.services.penstock_server import PenstockServer
from tests.unit.cli.conftest import Command

from penstock.control.store.rows import Desired

SPEC = "name: {}\nsource: {{kafka: t}}\nsink: discard\n"


def define(*names: str, folder: str = "defs", text: str = SPEC) -> Path:
    Path(folder).mkdir(exist_ok=True)
    for name in names:
        (Path(folder) / f"{name}.yaml").write_text(text.format(name))
    return Path(folder)


def answer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str) -> None:
    """Give what a person types."""
    typed = tmp_path / "typed"
    typed.write_text(text)
    monkeypatch.setattr("sys.stdin", typed.open())


def names(server: PenstockServer) -> list[str]:
    return [
        row.name for row in server.store.deployments.all() if row.desired is not Desired.DELETED
    ]


def test_a_folder_is_deployed_and_a_second_time_nothing_changes(
    server: PenstockServer, command: Command
) -> None:
    define("a", "b")
    (Path("defs") / "penstock.yaml").write_text("connections: {}\n")
    define("c", folder="defs/inner")
    define("hidden", folder="defs/.hidden")

    first = command("apply", "defs", "--yes")
    second = command("apply", "defs", "--yes")

    assert first.code == second.code == 0
    assert first.out == "create a\ncreate b\ncreate c\n"
    assert "3 changes applied" in first.err
    assert (second.out, names(server)) == ("", ["a", "b", "c"])
    assert "3 unchanged" in second.err


def test_a_difference_is_shown_and_applied_after_a_yes(
    server: PenstockServer, command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = define("a") / "a.yaml"
    command("apply", file, "--yes")
    file.write_text(SPEC.format("a").replace("kafka: t", "kafka: other"))

    answer(monkeypatch, tmp_path, "n\n")
    refused = command("apply", file)
    assert (refused.code, server.store.deployments.get("a").generation) == (1, 1)
    assert "nothing was applied" in refused.err

    answer(monkeypatch, tmp_path, "y\n")
    done = command("apply", file)
    assert (done.code, server.store.deployments.get("a").generation) == (0, 2)
    assert "-source: {kafka: t}\n+source: {kafka: other}\n" in done.out
    assert f"Apply 1 change to {server.url}? [y/N]" in done.err


def test_a_dry_run_changes_nothing(server: PenstockServer, command: Command) -> None:
    define("a")

    shown = command("apply", "defs", "--dry-run", "--json")

    (planned,) = json.loads(shown.out)
    assert (planned["name"], planned["action"], planned["applied"]) == ("a", "create", False)
    assert names(server) == []


@pytest.mark.parametrize("option", ["--yes", "--dry-run"])
def test_one_that_is_being_deleted_is_an_error(
    option: str, server: PenstockServer, command: Command
) -> None:
    define("a")
    command("apply", "defs", "--yes")
    command("delete", "a", "--yes")

    ended = command("apply", "defs", option)

    assert (ended.code, names(server)) == (2, []), ended
    assert "'a' is being deleted; wait until it is gone to create it again" in ended.err
    assert "nothing was applied" in ended.err


def test_one_invalid_definition_stops_all_with_its_file_and_line(
    server: PenstockServer, command: Command
) -> None:
    define("a", "b")
    define("wrong", text="name: {}\nsource: {{kafka: t}}\nsunk: discard\n")

    ended = command("apply", "defs", "--yes")

    assert (ended.code, names(server)) == (2, [])
    assert "defs/wrong.yaml is not a valid pipeline" in ended.err
    assert "line 3: sunk" in ended.err
    assert "nothing was applied" in ended.err


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"[]", "is not a definition: it is not a mapping"),
        (b"a: [", "is not a definition: line 1"),
        (b"\xff\xfe", "is not UTF-8 text"),
        (b"source: {}", "has no name: write `name: orders`"),
        (b"name: 7", "has no name"),
        (b"name: ../a", "has the name '../a'; allowed: up to 100 letters"),
        (b"--- {name: a}\n--- {name: b}\n", "is not a definition"),
        (b"name: other\nsource: {kafka: t}\n", "sink"),
    ],
)
def test_a_file_that_is_not_a_definition_stops_all(
    content: bytes, text: str, server: PenstockServer, command: Command
) -> None:
    (define("a") / "z.yaml").write_bytes(content)

    ended = command("apply", "defs", "--yes")

    assert (ended.code, names(server)) == (2, [])
    assert text in ended.err
    assert "z.yaml" in ended.err


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (["defs/none.yaml"], "cannot read defs/none.yaml: No such file"),
        (["empty"], "the folder empty has no definitions"),
        (["defs", "twice"], "both define 'a'; rename one"),
        (["defs", "--label", "team"], "--label 'team' is not a label"),
        (["defs", "--label", "=x"], "is not a label"),
        (["defs", "-l", "a=1", "-l", "a=2"], "--label a is given with two values"),
        (["defs/a.yaml", "--prune"], "--prune without --label deletes every deployment"),
        (["defs", "--server", "nowhere"], "'nowhere' is not the address of a server"),
    ],
)
def test_a_wrong_command_says_what_is_wrong(
    args: list[str], text: str, server: PenstockServer, command: Command
) -> None:
    define("a")
    define("b", folder="twice", text="name: a\nsource: {{kafka: t}}\nsink: discard\n")
    Path("empty").mkdir()

    ended = command("apply", *args, "--yes")

    assert (ended.code, names(server)) == (2, [])
    assert text in ended.err


def test_without_a_server_it_says_what_to_do(own_home: Path, command: Command) -> None:
    define("a", "b")

    ended = command("apply", "defs", "--yes", "--server", "http://127.0.0.1:1")

    assert ended.code == 4
    assert ended.err.count("no server replies at http://127.0.0.1:1") == 1


def test_files_from_elsewhere_are_not_sent_to_a_server_that_the_folder_names(
    own_home: Path, tmp_path: Path, command: Command
) -> None:
    Path("penstock.yaml").write_text("server: {url: 'https://evil.invalid'}\n")
    elsewhere = tmp_path / "mine.yaml"
    elsewhere.write_text(SPEC.format("a"))

    refused = command("apply", elsewhere, "--yes")
    allowed = command("apply", elsewhere, "--yes", "--server", "https://evil.invalid")

    assert (refused.code, "is outside of this folder" in refused.err) == (2, True)
    assert (allowed.code, "no server replies at https://evil.invalid" in allowed.err) == (4, True)


def test_a_definition_that_is_too_large_is_refused(
    server: PenstockServer, command: Command
) -> None:
    Path("a.yaml").write_text(SPEC.format("a") + "#" * 3_000_000)

    ended = command("apply", "a.yaml", "--yes")

    assert (ended.code, "the body is larger than" in ended.err) == (2, True), ended


def test_prune_deletes_what_the_folder_does_not_have(
    server: PenstockServer, command: Command
) -> None:
    define("a", "b")
    command("apply", "defs", "--yes")
    (Path("defs") / "b.yaml").unlink()

    kept = command("apply", "defs", "--yes")
    assert names(server) == ["a", "b"], kept
    pruned = command("apply", "defs", "--yes", "--prune")

    assert (pruned.code, names(server)) == (0, ["a"])
    assert "delete b" in pruned.out
    again = command("apply", "defs", "--yes", "--prune")
    assert again.out == ""


def test_prune_with_a_label_leaves_others_alone(server: PenstockServer, command: Command) -> None:
    command("apply", define("other", folder="others"), "--yes")
    command("apply", define("a", "b"), "--yes", "--label", "team=x")
    (Path("defs") / "b.yaml").unlink()

    command("apply", "defs", "--yes", "--prune", "--label", "team=x")

    assert names(server) == ["a", "other"]
    assert server.store.deployments.get("a").labels == {"team": "x"}


def test_a_change_of_another_person_is_not_overwritten(
    server: PenstockServer, command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = define("a") / "a.yaml"
    command("apply", file, "--yes")
    file.write_text(SPEC.format("a") + "# mine\n")

    class Other:
        """Changes the deployment while the question is asked."""

        def readline(self) -> str:
            server.store.deployments.put(
                "a",
                server.store.deployments.get("a").kind,
                SPEC.format("a") + "# theirs\n",
                by="ann",
            )
            return "y\n"

    monkeypatch.setattr("sys.stdin", Other())
    ended = command("apply", file)

    assert ended.code == 2
    assert "was changed by ann" in ended.err
    assert "theirs" in server.store.deployments.get("a").spec


def test_secrets_are_neither_shown_nor_stored_in_the_clear(
    server: PenstockServer, command: Command
) -> None:
    text = (
        "name: {}\nsource: {{kafka: t}}\nsink: discard\n"
        "connection: {{bootstrap.servers: h, security.protocol: sasl_ssl, sasl.mechanisms: PLAIN, "
        "sasl.username: u, sasl.password: '{}'}}\n"
    )
    Path("a.yaml").write_text(text.format("a", "canary-one-1"))
    first = command("apply", "a.yaml", "--yes")
    Path("a.yaml").write_text(text.format("a", "canary-two-2"))
    second = command("apply", "a.yaml", "--yes")
    shown = [command("describe", "a"), command("get", "a", "--json"), command("history", "a")]

    assert first.code == second.code == 0, (first, second)
    assert server.store.deployments.get("a").generation == 2
    assert not any("canary" in each.out + each.err for each in [first, second, *shown])
    assert "canary" not in server.store.deployments.get("a").spec


def test_many_definitions_in_one_command(server: PenstockServer, command: Command) -> None:
    define(*(f"p{number:03}" for number in range(50)))

    ended = command("apply", "defs", "--yes")

    assert ended.code == 0
    assert len(names(server)) == 50
