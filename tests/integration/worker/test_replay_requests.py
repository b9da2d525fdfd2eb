"""Dead letters that are corrected over the API: a worker with a real broker and Spark replays them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml
from starlette.testclient import TestClient

from penstock import Connection
from penstock.control.store import ControlStore
from penstock.control.store.rows import Desired, Kind
from penstock.server.app import create_app
from penstock.server.kafka.connections import Connections
from penstock.server.kafka.kafka_routers import kafka_routers
from penstock.server.settings import ServerSettings
from penstock.testing import eventually, fill
from penstock.worker.starting import Starting
from penstock.worker.worker import Worker, WorkerSettings

QUICK = WorkerSettings(reconcile_every=0.1, report_every=0.1)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ControlStore]:
    opened = ControlStore.at(tmp_path / "control.sqlite", tmp_path / "keys", 5.0)
    yield opened
    opened.close()


@pytest.fixture
def worker(store: ControlStore, tmp_path: Path) -> Iterator[Worker]:
    worker = Worker(store, Starting(store, str(tmp_path / "states")), QUICK)
    thread = Thread(target=worker.run)
    thread.start()
    yield worker
    worker.drain()
    thread.join(120)
    assert not thread.is_alive()


@pytest.fixture
def api(store: ControlStore, connection: Connection) -> Iterator[TestClient]:
    connections = Connections(lambda _: connection)
    app = create_app(store, ServerSettings(), kafka_routers(connections, store))
    with TestClient(app, "http://127.0.0.1", client=("127.0.0.1", 50000)) as client:
        yield client
    connections.close()


@pytest.fixture
def replayed(api: TestClient, unique: str) -> Callable[..., dict[str, Any]]:
    """Asks for a replay, and returns it after its end."""

    def ask(**body: Any) -> dict[str, Any]:
        asked = api.post(f"/api/v1/deployments/{unique}/dead-letters/replay", json=body)
        assert asked.status_code == 202, asked.text

        def ended() -> Any:
            row = api.get(asked.headers["location"]).json()
            return row["ended"] and row

        return dict(eventually(ended, timeout=120))

    return ask


def rows(tmp_path: Path) -> list[int]:
    files = (tmp_path / "table").glob("*.parquet")
    return sorted(n for file in files for n in pq.read_table(file).column("n").to_pylist())


@pytest.mark.timeout(600)
def test_a_bad_record_that_is_corrected_over_the_api_is_in_the_table_once(
    store: ControlStore,
    worker: Worker,
    api: TestClient,
    replayed: Callable[..., dict[str, Any]],
    connection: Connection,
    tmp_path: Path,
    unique: str,
) -> None:
    fill(connection, unique, ['{"n": 1}', "not json", '{"n": "two"}'])
    definition = {
        "name": unique,
        "connection": {"bootstrap.servers": connection.brokers},
        "source": {"kafka": unique},
        "decode": {"json": {"schema": "n bigint not null"}},
        "sink": {"files": {"path": str(tmp_path / "table")}},
        "delivery": "exactly-once",
    }
    text = store.secrets.sealed(unique, yaml.safe_dump(definition))
    store.deployments.put(unique, Kind.PIPELINE, text, by="a test")

    def letters() -> list[str]:
        found = api.get(f"/api/v1/deployments/{unique}/dead-letters").json()["items"]
        return [each["id"] for each in found]

    eventually(lambda: store.counters.get(unique).failed == 2, timeout=240)
    assert letters() == [f"{unique}-0-1", f"{unique}-0-2"]

    # While the pipeline runs.
    done = replayed(ids=[f"{unique}-0-1"], value={"n": 2})
    assert (done["state"], done["worker"], done["error"]) == ("done", worker.id, None)
    assert (done["outcome"]["letters"], done["outcome"]["rows"]) == (1, 1)
    assert (rows(tmp_path), letters()) == ([1, 2], [f"{unique}-0-2"])
    again = replayed(ids=[f"{unique}-0-1"], value={"n": 2})
    assert (again["state"], "there is no dead letter" in again["error"]) == ("failed", True)
    fill(connection, unique, ['{"n": 4}'])
    eventually(lambda: rows(tmp_path) == [1, 2, 4], timeout=120)
    assert store.leases.get(unique).restarts == 0

    # While no worker runs it: as it was, it fails again.
    store.deployments.set_desired(unique, Desired.PAUSED, by="a test")
    eventually(lambda: store.leases.get(unique).state == "PAUSED", timeout=60)
    unchanged = replayed(all=True)
    assert unchanged["outcome"] == {
        "letters": 1, "rows": 0, "failed_again": 1, "taken": 0, "finished": 0, "elsewhere": [],
    }  # fmt: skip
    assert letters() == [f"{unique}-0-2"]
    assert replayed(ids=letters(), value='{"n": 3}')["outcome"]["rows"] == 1
    assert (rows(tmp_path), letters()) == ([1, 2, 3, 4], [])
