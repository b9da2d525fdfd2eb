"""`penstock connect standalone` and `distributed` as processes, with the files of a Connect worker."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

from penstock import Connection
from penstock.config.directories import cache_dir
from penstock.testing import eventually, fill, read_all

PENSTOCK = str(Path(sys.executable).with_name("penstock"))
WORKER = """\
bootstrap.servers={brokers}
key.converter=org.apache.kafka.connect.storage.StringConverter
value.converter=org.apache.kafka.connect.storage.StringConverter
listeners=http://127.0.0.1:0
offset.storage.file.filename={folder}/connect.offsets
offset.flush.interval.ms=1000
plugin.path=/usr/share/java
{more}
"""


class Process:
    """A command that serves the API, with what it prints."""

    def __init__(self, folder: Path, *args: object) -> None:
        (folder / "home").mkdir(exist_ok=True)
        if not (folder / "home" / "cache").exists():
            (folder / "home" / "cache").symlink_to(cache_dir())  # the jars are there
        self._printed = folder / "printed"
        environment = os.environ | {"PENSTOCK_HOME": str(folder / "home")}
        with self._printed.open("w") as output:
            self.process = subprocess.Popen(
                [PENSTOCK, *map(str, args)], cwd=folder, stderr=output, env=environment
            )
        self.url = eventually(self._url, 120)

    def _url(self) -> str | None:
        assert self.process.poll() is None, self.printed()
        found = re.search(r"serving (http://[^\s,]+)", self.printed())
        return found[1] if found else None

    def printed(self) -> str:
        return self._printed.read_text()

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        request = Request(self.url + path, data, headers, method=method)
        with urlopen(request, timeout=60) as reply:
            text = reply.read()
        return json.loads(text) if text else None


Start = Callable[..., Process]


@pytest.fixture
def start(tmp_path: Path, connection: Connection) -> Iterator[Start]:
    started: list[Process] = []

    def begin(command: str, *args: object, more: str = "") -> Process:
        text = WORKER.format(brokers=connection.brokers, folder=tmp_path, more=more)
        (tmp_path / "worker.properties").write_text(text)
        started.append(Process(tmp_path, "connect", command, "worker.properties", *args))
        return started[-1]

    yield begin
    for one in started:
        if one.process.poll() is None:
            one.process.kill()
            one.process.wait(30)


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


@pytest.mark.timeout(600)
def test_standalone_runs_the_connectors_of_files_until_ctrl_c(
    start: Start, connection: Connection, unique: str, tmp_path: Path
) -> None:
    # The topic does not exist yet: the sink does not fail because it begins before the source.
    (tmp_path / "in.txt").write_text("one\ntwo\n")
    source = f"name=in\nconnector.class=FileStreamSource\nfile={tmp_path}/in.txt\ntopic={unique}\n"
    (tmp_path / "in.properties").write_text(source)
    config = {"connector.class": "FileStreamSink", "file": f"{tmp_path}/out.txt", "topics": unique}
    (tmp_path / "out.json").write_text(json.dumps({"name": f"{unique}-out", "config": config}))

    worker = start("standalone", "in.properties", "out.json", more="plugin.pth=/x")

    eventually(lambda: lines(tmp_path / "out.txt") == ["one", "two"], 300)
    assert sorted(worker.ask("GET", "/connectors")) == ["in", f"{unique}-out"]
    assert "plugin.path: connectors are Python packages" in worker.printed()
    assert (
        "warning: worker.properties, line 8: plugin.pth: this key is not known" in worker.printed()
    )
    store = tmp_path / "connect.offsets.penstock"
    assert f"the connectors are stored in {store}" in worker.printed()
    assert store.stat().st_mode & 0o777 == 0o700
    worker.process.send_signal(signal.SIGINT)
    assert worker.process.wait(120) == 130
    assert "Traceback" not in worker.printed()
    assert [record.value for record in read_all(connection, unique)] == [b"one", b"two"]


def test_distributed_serves_the_api_with_the_cluster_of_the_file(
    start: Start, connection: Connection, unique: str, tmp_path: Path
) -> None:
    fill(connection, unique, ["one"])
    store = tmp_path / "shared.sqlite"
    worker = start("distributed", "--store", store, "--workers", 0, more="group.id=connect")
    config = {"connector.class": "FileStreamSink", "file": "/out", "topics": unique}
    body = {"name": unique, "config": config, "initial_state": "STOPPED"}
    worker.ask("POST", "/connectors", body)

    place = {"kafka_topic": unique, "kafka_partition": 0}
    offsets = {"offsets": [{"partition": place, "offset": {"kafka_offset": 1}}]}
    worker.ask("PATCH", f"/connectors/{unique}/offsets", offsets)

    assert worker.ask("GET", f"/connectors/{unique}/offsets") == offsets
    assert "group.id: workers of one store work together" in worker.printed()
    assert store.exists()
    worker.process.send_signal(signal.SIGINT)
    assert worker.process.wait(60) == 130
