"""Connectors of a real Connect worker are taken over while they run, with their offsets."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from typing import Any
from urllib.request import Request, urlopen

import pytest
from psycopg.errors import UndefinedTable
from tests.services.connect_worker import FILE, JDBC, ConnectWorker
from tests.services.postgres import PASSWORD, Postgres

from penstock import Connection
from penstock.cli import main
from penstock.connect.worker_defaults import WorkerDefaults
from penstock.control.store import ControlStore
from penstock.server.api_server import ApiServer
from penstock.server.app import create_app
from penstock.server.listening import listen
from penstock.server.settings import ServerSettings
from penstock.testing import eventually, read_all
from penstock.worker.starting import Starting
from penstock.worker.worker import Worker, WorkerSettings

Take = Callable[..., tuple[int, str, str]]
STRINGS = {
    f"{use}.converter": "org.apache.kafka.connect.storage.StringConverter"
    for use in ("key", "value")
}


@pytest.fixture
def there(connection: Connection, unique: str) -> Iterator[ConnectWorker]:
    with ConnectWorker(connection.brokers, f"{unique}-connect", FILE | JDBC) as worker:
        yield worker


@pytest.fixture
def here(connection: Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A server with one worker, whose connectors use the cluster of a worker's properties."""
    monkeypatch.chdir(tmp_path)
    store = ControlStore.at(tmp_path / "control.sqlite", tmp_path / "keys", 5.0)
    defaults = WorkerDefaults({"bootstrap.servers": connection.brokers})
    quick = WorkerSettings(reconcile_every=0.1, report_every=0.1)
    starting = Starting(store, str(tmp_path / "states"), connect=defaults)
    worker = Worker(store, starting, quick)
    thread = Thread(target=worker.run)
    api = ApiServer(create_app(store, ServerSettings(connect=defaults)), listen("127.0.0.1", 0))
    api.start()
    thread.start()
    yield f"http://127.0.0.1:{api.port}"
    worker.drain()
    thread.join(120)
    api.stop()
    store.close()
    assert not thread.is_alive()


@pytest.fixture
def take(there: ConnectWorker, here: str, capfdbinary: pytest.CaptureFixture[bytes]) -> Take:
    """Runs `penstock connect import`; returns its exit code and what it printed."""

    def run(*options: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as end:
            main(["connect", "import", there.url, "--to", here, *options])
        shown = capfdbinary.readouterr()
        return int(end.value.code or 0), shown.out.decode(), shown.err.decode()

    return run


class Load:
    """Appends numbered lines to a file, in a thread, until it ends."""

    def __init__(self, file: Path) -> None:
        self.count = 0
        self._file, self._ended = file, Event()
        self._thread = Thread(target=self._write)

    def __enter__(self) -> Load:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _write(self) -> None:
        with self._file.open("a") as file:
            while not self._ended.wait(0.02):
                for _ in range(5):
                    file.write(f"line {self.count}\n")
                    self.count += 1
                file.flush()


def asked(url: str, method: str = "GET", body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json"}
    with urlopen(Request(url, data, headers, method=method), timeout=60) as reply:
        text = reply.read()
    return json.loads(text) if text else None


def created(there: ConnectWorker, name: str, **config: str) -> None:
    named = {key.replace("_", "."): value for key, value in config.items()}
    body = {"name": name, "config": {**STRINGS, **named}}
    eventually(lambda: asked(f"{there.url}/connectors", "POST", body))


def state(url: str, name: str) -> str:
    found: Any = asked(f"{url}/connectors/{name}/status")
    return str(found["connector"]["state"])


def lines(file: Path) -> list[str]:
    return file.read_text().splitlines() if file.exists() else []


@dataclass(frozen=True)
class Table:
    """The table of a JDBC sink: each line of the topic as a row."""

    postgres: Postgres
    name: str

    @property
    def config(self) -> dict[str, str]:
        """Return the keys of Debezium's sink, with `_` for the dots."""
        return {
            "connector_class": "io.debezium.connector.jdbc.JdbcSinkConnector",
            "connection_url": f"jdbc:postgresql://{self.postgres.host}:{self.postgres.port}/penstock",
            "connection_username": "penstock",
            "connection_password": PASSWORD,
            "collection_name_format": self.name,
            "schema_evolution": "basic",
            "transforms": "row",
            "transforms_row_type": "org.apache.kafka.connect.transforms.HoistField$Value",
            "transforms_row_field": "line",
        }

    def lines(self) -> list[str]:
        with self.postgres.connect() as session:
            try:
                found = session.execute(f"SELECT line FROM {self.name}").fetchall()
            except UndefinedTable:
                return []
        return [line for (line,) in found]


@pytest.mark.timeout(900)
def test_connectors_go_on_here_where_they_were_there(
    there: ConnectWorker,
    here: str,
    take: Take,
    connection: Connection,
    unique: str,
    postgres: Postgres,
    tmp_path: Path,
) -> None:
    given, out = tmp_path / "in.txt", tmp_path / "out.txt"
    table = Table(postgres, unique.replace("-", "_"))
    given.touch()
    source, sink, rows_sink = f"{unique}-in", f"{unique}-out", f"{unique}-rows"
    with Load(given) as load:
        created(there, source, connector_class="FileStreamSource", file=str(given), topic=unique)
        created(there, sink, connector_class="FileStreamSink", file=str(out), topics=unique)
        created(there, rows_sink, topics=unique, **table.config)
        created(there, f"{unique}-other", connector_class="FileStreamSource", topic=unique)
        eventually(lambda: len(lines(out)) > 60 and len(table.lines()) > 60, timeout=300)

        # A report changes nothing.
        code, shown, said = take("--dry-run")
        rows = {line.split("\t")[0]: line.split("\t")[1:] for line in shown.splitlines()}
        assert (code, said) == (0, "")
        assert rows[source] == ["source", "FileStreamSource", "RUNNING", "yes", ""]
        assert rows[rows_sink][2:] == ["RUNNING", "yes", ""]
        assert rows[f"{unique}-other"][3] == "no"
        assert "whose standard input and output no one reads" in rows[f"{unique}-other"][4]
        assert asked(f"{here}/connectors") == []

        # What runs there is created here, and does not run.
        code, _, said = take("--only", source)
        assert (code, "is created here as STOPPED" in said) == (0, True)
        assert (state(here, source), state(there.url, source)) == ("STOPPED", "RUNNING")

        # All are taken over while lines are written.
        taken = (source, sink, rows_sink)
        code, _, said = take(*(part for name in taken for part in ("--only", name)), "--stop-there")
        assert all(f"{name}: it runs here; there it is STOPPED" in said for name in taken), said
        assert code == 0
        copied, stored = len(lines(out)), len(table.lines())
        eventually(
            lambda: len(lines(out)) > copied + 60 and len(table.lines()) > stored + 60, timeout=300
        )

    assert [state(there.url, name) for name in taken] == ["STOPPED"] * 3
    expected = [f"line {number}" for number in range(load.count)]
    eventually(lambda: set(expected) <= {*lines(out)} & {*table.lines()}, timeout=300)
    assert [record.value.decode() for record in read_all(connection, unique)] == expected
    # A sink of Connect writes again what it had not committed: here it ended in order.
    once = dict.fromkeys(expected, 1)
    assert (Counter(lines(out)), Counter(table.lines())) == (once, once)
    # The way back: offsets here are in the form that Connect takes.
    size = given.stat().st_size
    shown_offsets = asked(f"{here}/connectors/{source}/offsets")["offsets"]
    assert shown_offsets == [{"partition": {"filename": str(given)}, "offset": {"position": size}}]
