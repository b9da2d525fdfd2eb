"""`penstock serve` as a process: how it starts and ends, and what becomes of its workers."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import psutil
import pyarrow.parquet as pq
import pytest

from penstock import Connection
from penstock.config.directories import cache_dir
from penstock.control.store import ControlStore
from penstock.embedded import SchemaRegistry
from penstock.formats.registry import Registry, Schema
from penstock.testing import eventually, fill

EXAMPLE = Path(__file__).parents[2] / "examples/host-metrics.yaml"
PENSTOCK = str(Path(sys.executable).with_name("penstock"))
DEFINITION = """\
name: {name}
connection: {{bootstrap.servers: "{brokers}"}}
source: {{kafka: "{name}"}}
decode: {{json: {{schema: "n bigint not null"}}}}
sink: {{files: "{folder}/table"}}
"""


class Serve:
    """The command, with what it prints."""

    def __init__(self, folder: Path, *options: object) -> None:
        self.folder = folder
        self.environment = os.environ | {"PENSTOCK_HOME": str(folder / "home")}
        if not (folder / "home").exists():
            (folder / "home").mkdir()
            (folder / "home" / "cache").symlink_to(cache_dir())  # the jars are there
        self._printed = folder / f"printed-{len(list(folder.glob('printed-*')))}"
        with self._printed.open("w") as output:
            self.process = subprocess.Popen(
                [PENSTOCK, "serve", "--port", "0", *map(str, options)],
                cwd=folder,
                stderr=output,
                env=self.environment,
            )
        self.url = eventually(self._url, 120)

    def _url(self) -> str | None:
        assert self.process.poll() is None, self.printed()
        found = re.search(r"serving (http://\S+)", self.printed())
        return found[1] if found else None

    def printed(self) -> str:
        return self._printed.read_text()

    def end(self, *signals: signal.Signals, timeout: float = 120) -> int:
        for number in signals:
            self.process.send_signal(number)
        return self.process.wait(timeout)

    def command(self, *args: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [PENSTOCK, *map(str, args)],
            cwd=self.folder,
            env=self.environment | {"PENSTOCK_SERVER": self.url},
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        )

    def get(self, name: str) -> Any:
        found: Any = json.loads(self.command("get", name, "--json").stdout)
        return found


Start = Callable[..., Serve]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts servers in one folder; nothing of them is left after the test."""
    started: list[Serve] = []

    def begin(*options: object) -> Serve:
        started.append(Serve(tmp_path, *options))
        return started[-1]

    yield begin
    for one in started:
        if one.process.poll() is None:
            one.process.kill()
    for process in workers(tmp_path):
        for each in [*process.children(recursive=True), process]:
            with suppress(psutil.NoSuchProcess):
                each.kill()


def workers(folder: Path) -> list[psutil.Process]:
    """Return the workers of servers in a folder."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            mark = process.environ().get("PENSTOCK_SUPERVISED", "")
            if str(folder) in mark and "worker" in process.cmdline():
                found.append(process)
    return found


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 0)])
def test_it_answers_until_a_signal(start: Start, number: signal.Signals, code: int) -> None:
    server = start("--workers", 0)

    with urlopen(f"{server.url}/health") as reply:
        assert json.load(reply)["status"] == "healthy"

    assert server.end(number) == code
    assert f"described at {server.url}/api/docs" in server.printed()
    assert "Traceback" not in server.printed()


def test_it_shows_the_subjects_of_its_schema_registry(
    start: Start, schema_registry: SchemaRegistry, unique: str
) -> None:
    Registry(schema_registry.url).register(f"{unique}-value", Schema('"string"'))
    server = start("--workers", 0, "--registry", schema_registry.url)

    with urlopen(f"{server.url}/api/v1/subjects?contains={unique}") as reply:
        assert json.load(reply)["items"] == [{"name": f"{unique}-value"}]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_workers_survive_the_server_and_are_replaced_when_they_die(
    start: Start,
    connection: Connection,
    unique: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PENSTOCK_KAFKA_BOOTSTRAP_SERVERS", connection.brokers)
    fill(connection, unique, [{"n": 1}])
    file = tmp_path / "one.yaml"
    file.write_text(DEFINITION.format(name=unique, brokers=connection.brokers, folder=tmp_path))

    def rows() -> int:
        with suppress(OSError):
            return int(pq.read_table(tmp_path / "table").num_rows)
        return 0

    first = start()
    first.command("apply", file, EXAMPLE, "--yes")
    eventually(lambda: rows() == 1, 300)
    # The command that the README shows.
    eventually(lambda: first.get("host-metrics")["run"]["state"] == "RUNNING", 120, every=1)
    shown = first.command("consume", "host-metrics", "--follow", "--count", 1).stdout
    assert json.loads(shown)["kind"] in ("cpu", "memory", "load")
    (worker,) = workers(tmp_path)

    # The server is killed, and the worker goes on; the next server finds it.
    first.end(signal.SIGKILL)
    fill(connection, unique, [{"n": 2}])
    eventually(lambda: rows() == 2, 120)
    java = worker.children()
    second = start()
    assert workers(tmp_path) == [worker]
    assert worker.children() == java
    assert "worker_not_needed" not in second.printed()

    # The worker is killed: the server starts another one, which goes on.
    worker.kill()
    fill(connection, unique, [{"n": 3}])
    eventually(lambda: rows() == 3, 300)
    (replaced,) = workers(tmp_path)
    assert replaced != worker

    # SIGTERM ends the API alone.
    assert second.end(signal.SIGTERM) == 0
    assert f"the workers (process {replaced.pid}) go on" in second.printed()
    assert replaced.is_running()

    # Ctrl-C ends everything in order: no lease and no process is left.
    third = start()
    assert third.end(signal.SIGINT, timeout=300) == 130
    assert workers(tmp_path) == []
    home = tmp_path / "home" / "data"
    with ControlStore.at(home / "control.sqlite", home / "control.keys") as store:
        assert store.workers.all() == []
        assert not any(run.is_held(store.database.time()) for run in store.leases.all())
    assert rows() == 3
