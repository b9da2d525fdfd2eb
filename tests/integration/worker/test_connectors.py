"""Connectors through Connect's REST API, run by a worker: lines of a file, a topic, another file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from starlette.testclient import TestClient

from penstock import Admin, Connection
from penstock.control.store import ControlStore
from penstock.server.app import create_app
from penstock.server.settings import ServerSettings
from penstock.testing import eventually, fill
from penstock.worker.starting import Starting
from penstock.worker.worker import Worker, WorkerSettings


@pytest.fixture
def api(
    connection: Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[TestClient]:
    """The API of a store with one worker."""
    monkeypatch.setenv("PENSTOCK_KAFKA_BOOTSTRAP_SERVERS", connection.brokers)
    monkeypatch.chdir(tmp_path)
    store = ControlStore.at(tmp_path / "control.sqlite", tmp_path / "keys", 5.0)
    settings = WorkerSettings(reconcile_every=0.1, report_every=0.1)
    worker = Worker(store, Starting(store, str(tmp_path / "states")), settings)
    thread = Thread(target=worker.run)
    thread.start()
    app = create_app(store, ServerSettings())
    yield TestClient(app, "http://127.0.0.1", client=("127.0.0.1", 50000))
    worker.drain()
    thread.join(120)
    assert not thread.is_alive()
    store.close()


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def states(api: TestClient, name: str) -> tuple[str, list[str]]:
    shown: Any = api.get(f"/connectors/{name}/status").json()
    return shown["connector"]["state"], [task["state"] for task in shown["tasks"]]


def test_lines_go_from_file_to_topic_to_file_and_offsets_can_be_moved(
    api: TestClient, connection: Connection, unique: str, tmp_path: Path
) -> None:
    given, out = tmp_path / "in.txt", tmp_path / "out.txt"
    given.write_text("one\ntwo\n")
    fill(connection, unique, [])
    source = {"connector.class": "FileStreamSource", "file": str(given), "topic": unique}
    sink = {"connector.class": "FileStreamSink", "file": str(out), "topics": unique}
    for name, config in ((f"{unique} in", source), (f"{unique}/out", sink)):
        assert api.post("/connectors", json={"name": name, "config": config}).status_code == 201
    eventually(lambda: lines(out) == ["one", "two"], timeout=120)
    eventually(lambda: states(api, f"{unique}%2Fout") == ("RUNNING", ["RUNNING"]), timeout=60)
    with given.open("a") as file:
        file.write("three\n")
    eventually(lambda: lines(out) == ["one", "two", "three"], timeout=60)

    # Offsets change only when the connector is stopped.
    place = {"kafka_topic": unique, "kafka_partition": 0}
    body = {"offsets": [{"partition": place, "offset": {"kafka_offset": 1}}]}
    path = f"/connectors/{unique}%2Fout"
    refused = api.patch(f"{path}/offsets", json=body)
    assert (refused.status_code, "must be in the STOPPED state" in refused.text) == (400, True)
    api.put(f"{path}/stop")
    altered = eventually(
        lambda: (r := api.patch(f"{path}/offsets", json=body)).status_code == 200 and r, timeout=60
    )
    assert altered.json()["message"].endswith("altered successfully")
    assert api.get(f"{path}/offsets").json() == body
    api.put(f"{path}/resume")
    eventually(lambda: lines(out) == ["one", "two", "three", "two", "three"], timeout=120)

    read = api.get(f"/connectors/{unique} in/offsets").json()["offsets"]
    assert [each.keys() for each in read] == [{"partition", "offset"}]
    assert api.get(f"/connectors/{unique} in/topics").json()[f"{unique} in"]["topics"] == [unique]
    for name in ("%20in", "%2Fout"):
        assert api.delete(f"/connectors/{unique}{name}").status_code == 204
    with Admin(connection) as admin:
        assert f"connect-{unique}/out" in {group.name for group in admin.groups()}


@pytest.mark.timeout(600)
def test_a_sink_whose_offsets_are_removed_reads_them_again(
    api: TestClient, connection: Connection, unique: str, tmp_path: Path
) -> None:
    out, path = tmp_path / "out.txt", f"/connectors/{unique}"
    fill(connection, unique, ["one", "two"])
    config = {"connector.class": "FileStreamSink", "file": str(out), "topics": unique}
    api.put(f"{path}/config", json=config)
    eventually(lambda: lines(out) == ["one", "two"], timeout=120)

    for expected in (4, 6):
        # All of them, then one.
        api.put(f"{path}/stop")
        one = {"kafka_topic": unique, "kafka_partition": 0}
        body = {"offsets": [{"partition": one, "offset": None}]}
        how: Any = {"method": "DELETE"} if expected == 4 else {"method": "PATCH", "json": body}
        eventually(lambda h=how: api.request(url=f"{path}/offsets", **h).status_code == 200, 60)
        assert api.get(f"{path}/offsets").json() == {"offsets": []}
        api.put(f"{path}/resume")
        eventually(lambda n=expected: len(lines(out)) >= n, timeout=120)
        assert lines(out) == ["one", "two"] * (expected // 2)
        eventually(lambda: api.get(f"{path}/offsets").json()["offsets"], timeout=60)

    # New ones only: as the configuration says when the connector starts.
    api.put(f"{path}/stop")
    eventually(lambda: api.delete(f"{path}/offsets").status_code == 200, timeout=60)
    fill(connection, unique, ["three"])
    api.put(f"{path}/config", json={**config, "consumer.override.auto.offset.reset": "latest"})
    api.put(f"{path}/resume")
    eventually(lambda: api.get(f"{path}/offsets").json()["offsets"], timeout=120)
    fill(connection, unique, ["four"])
    eventually(lambda: lines(out)[6:] == ["four"], timeout=60)


def test_a_connector_whose_file_cannot_be_written_waits(
    api: TestClient, connection: Connection, unique: str, tmp_path: Path
) -> None:
    fill(connection, unique, ["one"])
    missing = tmp_path / "later" / "out.txt"
    config = {"connector.class": "FileStreamSink", "file": str(missing), "topics": unique}
    api.put(f"/connectors/{unique}/config", json=config)
    eventually(lambda: states(api, unique)[0] == "RUNNING" and not missing.exists(), timeout=60)
    missing.parent.mkdir()
    eventually(lambda: lines(missing) == ["one"], timeout=120)
