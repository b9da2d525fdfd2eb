"""Dead letters that are corrected over the API: a worker with a real broker and Spark replays them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml
from starlette.testclient import TestClient

from penstock import Admin, Connection
from penstock.control.store import ControlStore
from penstock.control.store.rows import DeploymentRow, Desired, Kind
from penstock.engine.dead_letters import DeadLetter, DeadLetterStore
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


@contextmanager
def working(store: ControlStore, states: Path) -> Iterator[Worker]:
    worker = Worker(store, Starting(store, str(states)), QUICK)
    thread = Thread(target=worker.run)
    thread.start()
    try:
        yield worker
    finally:
        worker.drain()
        thread.join(120)
    assert not thread.is_alive()


@pytest.fixture
def worker(store: ControlStore, tmp_path: Path) -> Iterator[Worker]:
    with working(store, tmp_path / "states") as started:
        yield started


@pytest.fixture
def deploy(
    store: ControlStore, connection: Connection, unique: str, tmp_path: Path
) -> Callable[..., DeploymentRow]:
    def put(desired: Desired) -> DeploymentRow:
        definition = {
            "name": unique,
            "connection": {"bootstrap.servers": connection.brokers},
            "source": {"kafka": unique},
            "decode": {"json": {"schema": "n bigint not null"}},
            "sink": {"files": {"path": str(tmp_path / "table")}},
            "delivery": "exactly-once",
        }
        text = store.secrets.sealed(unique, yaml.safe_dump(definition))
        return store.deployments.put(unique, Kind.PIPELINE, text, by="a test", desired=desired)

    return put


@pytest.fixture
def api(store: ControlStore, connection: Connection) -> Iterator[TestClient]:
    connections = Connections(lambda _: connection)
    app = create_app(store, ServerSettings(), kafka_routers(connections, store))
    with TestClient(app, "http://127.0.0.1", client=("127.0.0.1", 50000)) as client:
        yield client
    connections.close()


@pytest.fixture
def ask(api: TestClient, unique: str) -> Callable[..., str]:
    """Asks for a replay, and returns its address."""

    def post(**body: Any) -> str:
        asked = api.post(f"/api/v1/deployments/{unique}/dead-letters/replay", json=body)
        assert asked.status_code == 202, asked.text
        return asked.headers["location"]

    return post


def ended(api: TestClient, place: str) -> dict[str, Any]:
    """Return a replay after its end."""

    def row() -> Any:
        found = api.get(place).json()
        return found["ended"] and found

    return dict(eventually(row, timeout=120))


@pytest.fixture
def letters(api: TestClient, unique: str) -> Callable[[], list[str]]:
    """Returns the ids of the letters that wait."""

    def listed() -> list[str]:
        found = api.get(f"/api/v1/deployments/{unique}/dead-letters").json()["items"]
        return [each["id"] for each in found]

    return listed


def rows(tmp_path: Path) -> list[int]:
    files = (tmp_path / "table").glob("*.parquet")
    return sorted(n for file in files for n in pq.read_table(file).column("n").to_pylist())


@pytest.mark.timeout(600)
def test_a_bad_record_that_is_corrected_over_the_api_is_in_the_table_once(
    store: ControlStore,
    worker: Worker,
    api: TestClient,
    deploy: Callable[..., DeploymentRow],
    ask: Callable[..., str],
    letters: Callable[[], list[str]],
    connection: Connection,
    tmp_path: Path,
    unique: str,
) -> None:
    def replayed(**body: Any) -> dict[str, Any]:
        return ended(api, ask(**body))

    fill(connection, unique, ['{"n": 1}', "not json", '{"n": "two"}'])
    deploy(Desired.RUNNING)
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


@pytest.mark.timeout(600)
def test_a_replay_that_a_dead_worker_has_begun_is_finished_by_another(
    store: ControlStore,
    api: TestClient,
    deploy: Callable[..., DeploymentRow],
    ask: Callable[..., str],
    letters: Callable[[], list[str]],
    connection: Connection,
    tmp_path: Path,
    unique: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    starting = Starting(store, str(tmp_path / "states"))
    pipeline = starting.pipeline(deploy(Desired.PAUSED))
    with Admin(connection) as admin:
        admin.create_topic(f"{unique}.dead-letters", 1)
    origin: Any = {"topic": "orders", "partition": 0, "stage": "decode", "epoch": 7}
    DeadLetterStore(pipeline)._add([DeadLetter(offset=n, value=b"x", **origin) for n in (1, 2)])
    place = ask(ids=["orders-0-1"], value={"n": 1})
    store.workers.join("dead", "host", 1)
    taken = store.replays.take("dead")
    assert taken
    with monkeypatch.context() as killed:  # after its rows, before it has noted their end
        killed.setattr(DeadLetterStore, "end", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            starting.replay(taken, repeated=False)
    assert (rows(tmp_path), letters()) == ([1], ["orders-0-2"])
    store.workers.leave("dead")

    with working(store, tmp_path / "states") as worker:
        done = ended(api, place)

    assert (done["state"], done["worker"], done["attempts"]) == ("done", worker.id, 2), done
    assert (done["outcome"]["finished"], done["outcome"]["letters"]) == (1, 0)
    assert (rows(tmp_path), letters()) == ([1], ["orders-0-2"])
    assert DeadLetterStore(pipeline).unfinished() == []
