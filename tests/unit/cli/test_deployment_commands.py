"""Commands that show and change the deployments of a server."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path
from threading import Thread

import pytest
from tests.services.penstock_server import PenstockServer
from tests.unit.cli.conftest import Command

from penstock.api_client.server_address import ServerAddress
from penstock.api_client.server_client import ServerClient
from penstock.cli.event_commands import followed
from penstock.control.store.rows import Desired, Kind
from penstock.control.store.samples import Sample

SPEC = "name: {}\nsource: {{kafka: t}}\nsink: discard\n"


@pytest.fixture
def deployed(server: PenstockServer) -> PenstockServer:
    """A server with the deployments a and b."""
    for name, labels in (("a", {"team": "x"}), ("b", {})):
        server.store.deployments.put(
            name, Kind.PIPELINE, SPEC.format(name), by="ann", labels=labels
        )
    return server


def desired(server: PenstockServer, name: str) -> Desired:
    row = server.store.deployments.get(name)
    assert row
    return row.desired


def lines(text: str) -> list[list[str]]:
    return [line.split("\t") for line in text.splitlines()]


def test_get_lists_deployments(deployed: PenstockServer, command: Command) -> None:
    head, *rows = lines(command("get").out)

    assert head[:3] == ["name", "state", "generation"]
    assert [row[:3] for row in rows] == [["a", "PENDING", "1"], ["b", "PENDING", "1"]]
    assert rows[0][head.index("labels")] == "team=x"


@pytest.mark.parametrize(
    ("args", "names"),
    [
        (["-l", "team=x"], ["a"]),
        (["--label", "team"], ["a"]),
        (["-l", "team=y"], []),
        (["--state", "pending"], ["a", "b"]),
        (["--state", "RUNNING"], []),
    ],
)
def test_get_filters(
    args: list[str], names: list[str], deployed: PenstockServer, command: Command
) -> None:
    assert [each["name"] for each in json.loads(command("get", *args, "--json").out)] == names


def test_nothing_to_list_is_a_message_and_not_data(
    server: PenstockServer, command: Command
) -> None:
    assert command("get").err == "there are no deployments\n"
    assert command("get", "-l", "a=b").out == ""


def test_get_of_one_is_one_document(deployed: PenstockServer, command: Command) -> None:
    found = json.loads(command("get", "a", "--json").out)

    assert (found["name"], found["definition"]) == ("a", SPEC.format("a"))


def test_describe_shows_definition_run_counters_lag_and_events(
    deployed: PenstockServer, command: Command
) -> None:
    deployed.store.samples.add({"a": Sample(lag=17)})
    deployed.store.events.add("a", "failed", "the broker\x1b[31m is away")

    shown = command("describe", "a").out

    for text in ("state:        PENDING", "labels:       team=x", "lag:          17", "by ann"):
        assert text in shown
    assert "created" in shown
    assert "  sink: discard" in shown
    assert "\x1b" not in shown
    found = json.loads(command("describe", "a", "--json").out)
    assert found["lag"] == 17
    assert [each["kind"] for each in found["events"]] == ["created", "failed"]


@pytest.mark.parametrize(
    ("verb", "wanted", "text"),
    [
        ("pause", Desired.PAUSED, "a is to be paused; now: PENDING (to be paused)"),
        ("stop", Desired.STOPPED, "a is to be stopped; now: PENDING (to be stopped)"),
        ("resume", Desired.RUNNING, "a is to run; now: PENDING"),
        ("restart", Desired.RUNNING, "a is to be restarted; now: PENDING"),
    ],
)
def test_an_action_changes_what_is_desired(
    verb: str, wanted: Desired, text: str, deployed: PenstockServer, command: Command
) -> None:
    ended = command(verb, "a", "b")

    assert ended.code == 0
    assert text in ended.err
    assert desired(deployed, "a") is desired(deployed, "b") is wanted


def test_an_action_on_several_does_what_it_can_and_reports_the_rest(
    deployed: PenstockServer, command: Command
) -> None:
    ended = command("pause", "a", "aa", "b", "--json")

    assert ended.code == 2
    assert "there is no deployment 'aa'; did you mean 'a'?" in ended.err
    assert [each["name"] for each in json.loads(ended.out)] == ["a", "b"]


@pytest.mark.parametrize("name", ["../workers", "a/pause", "%2e%2e", "a\x00b", "", " ", "ä" * 300])
def test_a_name_cannot_reach_another_path(
    name: str, deployed: PenstockServer, command: Command
) -> None:
    for verb in ("describe", "pause", "history"):
        ended = command(verb, name)
        assert ended.code == 2, ended
    assert desired(deployed, "a") is Desired.RUNNING


def test_delete_asks_first(
    deployed: PenstockServer, command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "typed").write_text("no\n")
    monkeypatch.setattr("sys.stdin", (tmp_path / "typed").open())
    refused = command("delete", "a")
    assert (refused.code, desired(deployed, "a")) == (1, Desired.RUNNING)
    assert "Delete a on http://127.0.0.1" in refused.err

    assert command("delete", "a", "--yes").code == 0
    assert desired(deployed, "a") is Desired.DELETED


def test_history_and_rollback(deployed: PenstockServer, command: Command) -> None:
    deployed.store.deployments.put("b", Kind.PIPELINE, SPEC.format("b") + "# two\n", by="bob")

    assert [line[0] for line in lines(command("history", "b").out)] == ["generation", "2", "1"]
    assert command("history", "b", "--generation", 2).out == SPEC.format("b") + "# two\n"
    done = command("rollback", "b", 1)
    assert "b is as in generation 1 again: generation 3" in done.err
    missing = command("rollback", "b", 9)
    assert missing.code == 2
    assert "generation 9" in missing.err


def test_top_into_a_pipe_is_one_table(deployed: PenstockServer, command: Command) -> None:
    deployed.store.samples.add({"a": Sample(lag=17)})

    head, *rows = lines(command("top").out)

    assert head == ["name", "state", "worker", "rows/s", "lag", "error"]
    assert [(row[0], row[4]) for row in rows] == [("a", "17"), ("b", "")]


def test_events_of_one_or_all(deployed: PenstockServer, command: Command) -> None:
    deployed.store.events.add("b", "note", "one\ntwo")

    assert len(command("events").out.splitlines()) == 3
    assert command("events", "b", "-n", 1).out.endswith("b  note  one\\ntwo\n")
    assert [json.loads(line)["deployment"] for line in command("events", "--json").out.splitlines()] == [
        "a", "b", "b",
    ]  # fmt: skip
    missing = command("events", "nope")
    assert (missing.code, "there is no deployment 'nope'" in missing.err) == (2, True)


def test_events_are_followed_across_a_restart_of_the_server(deployed: PenstockServer) -> None:
    last = deployed.store.events.add("a", "note", "0")
    found: list[str] = []

    def read() -> None:
        with ServerClient(ServerAddress(deployed.url)) as client:
            found.extend(each["text"] for each in islice(followed(client, "a", last), 2))

    reader = Thread(target=read, daemon=True)
    reader.start()
    deployed.store.events.add("a", "note", "1")
    deployed.stop()
    deployed.store.events.add("a", "note", "2")
    deployed.start()
    reader.join(60)

    assert found == ["1", "2"]
