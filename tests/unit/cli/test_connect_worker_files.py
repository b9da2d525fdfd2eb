"""`penstock connect standalone` and `distributed`: files that are refused before anything is started."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.cli.conftest import Command

from penstock.cli.connect_standalone import finish_removals, store_connectors
from penstock.connect.connector_files import ConnectorFile
from penstock.connect.connectors import CATALOG
from penstock.control.roles import Access, Grant, Role
from penstock.control.store import ControlStore
from penstock.control.store.rows import Desired
from penstock.server.connect.connector_store import ConnectorStore
from penstock.worker.starting import Starting

STRING = "org.apache.kafka.connect.storage.StringConverter"
WORKER = f"bootstrap.servers=b:1\nkey.converter={STRING}\nvalue.converter={STRING}\n"


@pytest.mark.parametrize("mode", ["standalone", "distributed"])
@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("offset.flush.timeout.ms=x", "error: w.properties, line 4: Invalid value x for"),
        (
            "listeners=https://localhost:8443",
            "w.properties, line 4: the listener is https; give its",
        ),
        ("listeners=http://:8443", "the server listens at 0.0.0.0, and no name is allowed"),
    ],
)
def test_a_wrong_worker_file_is_refused(
    command: Command, own_home: Path, mode: str, more: str, message: str
) -> None:
    Path("w.properties").write_text(WORKER + more)
    refused = command("connect", mode, "w.properties")
    assert refused.code == 2
    assert message in refused.err


def test_two_files_of_one_connector_are_refused(command: Command, own_home: Path) -> None:
    Path("w.properties").write_text(WORKER)
    for file in ("a.properties", "b.properties"):
        Path(file).write_text("name=x\nconnector.class=FileStreamSink\n")
    refused = command("connect", "standalone", "w.properties", "a.properties", "b.properties")
    assert refused.code == 2
    assert "a.properties and b.properties are both of the connector 'x'" in refused.err


def test_a_removal_that_an_earlier_process_did_not_finish_frees_the_name(
    control_store: ControlStore, tmp_path: Path
) -> None:
    connectors = ConnectorStore(control_store, Access("a", (Grant(Role.ADMIN),)), CATALOG)
    config = {"name": "x", "connector.class": "FileStreamSink", "topics": "a", "file": "/out"}
    file = ConnectorFile(tmp_path / "x.properties", "x", config)
    store_connectors(connectors, [file])
    connectors.set_desired(connectors.find("x"), Desired.DELETED)

    finish_removals(control_store, Starting(control_store, str(tmp_path / "states")))
    store_connectors(connectors, [file])

    assert connectors.find("x").row.desired is Desired.RUNNING
