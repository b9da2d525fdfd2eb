"""`penstock connect import`: what is reported of a cluster with Connect's API, and what is created.

The cluster here is another Penstock server, which speaks the same API. A real worker of Connect, and
offsets, are in tests/integration/connect/test_takeover.py.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.services.penstock_server import PenstockServer
from tests.unit.cli.conftest import Command

from penstock.api_client.server_address import Credentials, ServerAddress
from penstock.api_client.server_client import ServerClient
from penstock.control.store.rows import Kind

STRING = "org.apache.kafka.connect.storage.StringConverter"
SINK = {"connector.class": "FileStreamSink", "file": "/out", "topics": "a"}
OWN = {"key.converter": STRING, "value.converter": STRING}
WORKER = f"bootstrap.servers=b:1\nkey.converter={STRING}\nvalue.converter={STRING}\n"


@pytest.fixture
def there(
    tmp_path: Path, empty_store: Path, own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[PenstockServer]:
    """The cluster that connectors are taken over from; no server has a Kafka cluster."""
    monkeypatch.delenv("PENSTOCK_KAFKA_BOOTSTRAP_SERVERS", raising=False)
    folder = tmp_path / "there"
    folder.mkdir()
    with PenstockServer(folder, empty_store) as started:
        yield started


def stored(server: PenstockServer, name: str, config: dict[str, str]) -> None:
    """Store a connector without the checks of the API: other clusters have other classes."""
    text = json.dumps({**config, "name": name})
    server.store.deployments.put(name, Kind.CONNECTOR, text, by="a test")


def states(server: PenstockServer) -> dict[str, str]:
    with ServerClient(ServerAddress(server.url)) as client:
        found: Any = client.connect("GET", "/connectors", expand=["status"])
    return {name: each["status"]["connector"]["state"] for name, each in found.items()}


def test_a_report_says_what_can_run_here_and_why_not(
    command: Command, there: PenstockServer, server: PenstockServer
) -> None:
    stored(there, "good", {**SINK, **OWN, "consumer.override.max.poll.records": "5"})
    stored(there, "plain", SINK)
    stored(there, "wrong", {**SINK, **OWN, "errors.tolerance": "maybe"})
    stored(there, "secret", {**SINK, **OWN, "x.password": "${vault:kv:p}", "y": "${env:Y}"})
    stored(there, "here", {**SINK, **OWN})
    stored(server, "here", {**SINK, **OWN, "file": "/another"})

    shown = command("connect", "import", there.url, "--dry-run", "--json")

    found = {each["name"]: each for each in json.loads(shown.out)}
    assert shown.code == 0
    assert {name: each["can_run"] for name, each in found.items()} == {
        "good": True, "here": False, "plain": False, "secret": False, "wrong": False,
    }  # fmt: skip
    assert found["good"] == {
        "name": "good",
        "type": "sink",
        "class": "FileStreamSink",
        "state": "UNASSIGNED",
        "can_run": True,
        "problems": [],
        "remarks": ["without effect here: consumer.override.max.poll.records"],
    }
    assert "it names no key.converter and no value.converter" in found["plain"]["problems"][0]
    assert "String must be one of: none, all" in found["wrong"]["problems"][0]
    assert found["secret"]["problems"] == [
        "x.password refers to ${vault:kv:p}: there is no provider 'vault' here; allowed: file, "
        "directory, env"
    ]
    assert "is here already, with another configuration" in found["here"]["problems"][0]
    assert states(server) == {"here": "UNASSIGNED"}


def test_without_permission_to_stop_connectors_are_created_as_stopped(
    command: Command, there: PenstockServer, server: PenstockServer
) -> None:
    stored(there, "orders a", SINK)
    stored(there, "other", SINK)
    Path("w.properties").write_text(WORKER)
    options = ("--worker", "w.properties", "--only", "orders*")

    first = command("connect", "import", there.url, "--to", server.url, *options)

    assert first.out.splitlines() == [
        "name\ttype\tclass\tstate there\tcan run here\tremarks",
        "orders a\tsink\tFileStreamSink\tUNASSIGNED\tyes\t",
    ]
    assert "orders a: it is created here as STOPPED, and goes on there" in first.err
    assert "--only 'orders a' --stop-there" in first.err
    assert (first.code, states(server)) == (0, {"orders a": "STOPPED"})
    created = command("connectors", "config", "orders a", "--json", "--server", server.url)
    assert json.loads(created.out) == {**SINK, **OWN, "name": "orders a"}
    # Once more: the connector exists here, and can still be taken over.
    again = command("connect", "import", there.url, "--to", server.url, *options)
    assert (again.code, states(server)) == (0, {"orders a": "STOPPED"})


def test_a_failure_lets_the_connector_go_on_there(
    command: Command, there: PenstockServer, server: PenstockServer
) -> None:
    stored(there, "orders", {**SINK, **OWN})
    failed = command("connect", "import", there.url, "--stop-there")
    assert "orders was not taken over: " in failed.err
    assert "no connection is configured" in failed.err
    assert failed.code == 1
    assert "orders: it goes on there" in failed.err
    assert states(there) == {"orders": "UNASSIGNED"}
    assert states(server) == {}


def test_a_server_is_not_imported_into_itself(command: Command, server: PenstockServer) -> None:
    refused = command("connect", "import", server.url)
    assert refused.code == 2
    assert "is the server that would take connectors over" in refused.err


def test_a_login_is_sent_as_basic(command: Command, there: PenstockServer) -> None:
    credentials = Credentials("YTpi", scheme="Basic")
    with ServerClient(ServerAddress(there.url), credentials) as client:
        request = client._request("GET", "/", None, {}, {})
    assert request.headers["Authorization"] == "Basic YTpi"
    assert "YTpi" not in repr(credentials)
