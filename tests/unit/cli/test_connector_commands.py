"""`penstock connectors` against a server: what is printed, what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.services.penstock_server import PenstockServer
from tests.unit.cli.conftest import Command

CONFIG = {"connector.class": "FileStreamSource", "file": "/data/in.txt", "topic": "orders"}


@pytest.fixture
def file(own_home: Path) -> Path:
    path = Path("orders.json")
    path.write_text(json.dumps({"name": "orders", "config": CONFIG | {"batch.size": 7}}))
    return path


def test_a_connector_lives_from_create_to_delete(
    command: Command, server: PenstockServer, file: Path
) -> None:
    assert command("connectors", "list").err == "there are no connectors\n"
    assert command("connectors", "create", file).err == "connector orders is created\n"
    again = command("connectors", "create", file)
    assert again.err == "connector orders has a new configuration\n"
    assert command("connectors", "list").out.splitlines() == [
        "name\ttype\tclass\tstate\ttasks",
        "orders\tsource\tFileStreamSource\tUNASSIGNED\t1 UNASSIGNED",
    ]
    assert command("connectors", "pause", "orders").err == "connector orders is to be paused\n"
    shown = command("connectors", "status", "orders").out.splitlines()
    assert [line.split("\t")[:2] for line in shown[1:]] == [
        ["connector", "PAUSED"],  # no tasks before it ran
    ]
    for action in ("resume", "restart", "stop"):
        assert command("connectors", action, "orders").code == 0
    assert command("connectors", "delete", "orders", "--yes").err == "connector orders is deleted\n"
    gone = command("connectors", "status", "orders")
    assert (gone.code, gone.err) == (2, "error: No status found for connector orders\n")


def test_a_property_file_is_checked_and_created(command: Command, server: PenstockServer) -> None:
    lines = [f"{key}={value}" for key, value in {"name": "a", **CONFIG}.items()]
    Path("a.properties").write_text("\n".join(lines))
    assert command("connectors", "validate", "a.properties").err == "a.properties is valid\n"
    assert command("connectors", "create", "a.properties").code == 0
    Path("wrong.properties").write_text(
        "\n".join([*lines, "tasks.max=none"]).replace("topic=", "x=")
    )
    wrong = command("connectors", "validate", "wrong.properties")
    assert wrong.code == 2
    keys = [line.split("\t")[0] for line in wrong.out.splitlines()]
    assert keys == ["key", "tasks.max", "tasks.max", "topic"]
    refused = command("connectors", "create", "wrong.properties")
    assert "contains the following 3 error(s)" in refused.err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "is not a JSON object"),
        ("{oops", "is not JSON"),
        ('{"config": []}', "'config' of wrong.json is not a JSON object"),
        ('{"config": {"connector.class": "x"}}', "has no 'name'"),
        ('{"name": "x"}', "has no 'connector.class'"),
    ],
)
def test_a_file_that_is_no_connector_is_refused(
    command: Command, own_home: Path, text: str, message: str
) -> None:
    Path("wrong.json").write_text(text)
    refused = command("connectors", "create", "wrong.json")
    assert refused.code == 2
    assert message in refused.err


def test_keys_without_effect_are_named_when_a_connector_is_created(
    command: Command, server: PenstockServer
) -> None:
    Path("a.json").write_text(json.dumps({"name": "a", **CONFIG, "tasks.mx": "1"}))
    warning = (
        "warning: tasks.mx is not known to this connector, and has no effect; did you mean "
        "'tasks.max'?\n"
    )
    assert command("connectors", "create", "a.json").err == f"connector a is created\n{warning}"
    assert command("connectors", "validate", "a.json").err == f"{warning}a.json is valid\n"


def test_classes_are_listed(command: Command, server: PenstockServer) -> None:
    assert "FileStreamSinkConnector\tsink\t4.3.1" in command("connectors", "plugins").out


def test_configuration_and_keys_are_shown(
    command: Command, server: PenstockServer, file: Path
) -> None:
    command("connectors", "create", file)
    assert command("connectors", "config", "orders").out.splitlines()[:3] == [
        "key\tvalue",
        "batch.size\t7",
        "connector.class\tFileStreamSource",
    ]
    keys = command("connectors", "plugins", "FileStreamSource").out.splitlines()
    assert "topic\tSTRING\trequired\tThe topic of the lines." in keys
    assert "batch.size\tINT\t2000\tThe most lines of one transaction." in keys


def test_a_file_may_say_in_which_state_a_connector_begins(
    command: Command, server: PenstockServer
) -> None:
    body = {"name": "a", "config": CONFIG, "initial_state": "STOPPED"}
    Path("a.json").write_text(json.dumps(body))
    command("connectors", "create", "a.json")
    shown = json.loads(command("connectors", "status", "a", "--json").out)
    assert shown["connector"]["state"] == "STOPPED"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["{}"], "give a partition and its offset, or --from FILE"),
        (["{oops", "{}"], "'{oops' is not JSON"),
        (["{}", "4"], "'4' is not a JSON object"),
        (["--from", "none.json"], "none.json cannot be read: No such file"),
    ],
)
def test_offsets_that_are_not_objects_are_refused(
    command: Command, own_home: Path, args: list[str], message: str
) -> None:
    refused = command("connectors", "offsets", "set", "orders", *args)
    assert refused.code == 2
    assert message in refused.err


def test_offsets_change_only_while_a_connector_is_stopped(
    command: Command, server: PenstockServer, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_KAFKA_BOOTSTRAP_SERVERS", "localhost:1")
    command("connectors", "create", file)
    for change in (["set", "orders", "{}", "{}"], ["reset", "orders", "--yes"]):
        refused = command("connectors", "offsets", *change)
        assert "Connectors must be in the STOPPED state" in refused.err
