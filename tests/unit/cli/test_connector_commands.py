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
        ["connector", "PAUSED"],
        ["task 0", "PAUSED"],
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
    assert [line.split("\t")[0] for line in wrong.out.splitlines()] == ["key", "tasks.max", "topic"]
    refused = command("connectors", "create", "wrong.properties")
    assert "contains the following 2 error(s)" in refused.err


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


def test_classes_are_listed(command: Command, server: PenstockServer) -> None:
    assert "FileStreamSinkConnector\tsink\t4.3.1" in command("connectors", "plugins").out
