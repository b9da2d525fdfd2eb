"""How `penstock run` and `penstock jobs run` end: by Ctrl-C, by two of them, and when Java is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pyarrow.parquet as pq
import pytest

from penstock import Connection
from penstock.testing import eventually, fill

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

DEFINITION = """\
name: {name}
connection: {{bootstrap.servers: "{brokers}"}}
source: {{kafka: "{name}"}}
decode: {decode}
sink: {{files: "{folder}/table"}}
state: "{folder}/state"
restart: {{wait: 200ms}}
"""
JSON = '{json: {schema: "n bigint not null"}}'
SLOW = '{python: {function: "slow:parse", schema: "n bigint"}}'
PARSER = """\
import pathlib, time

def parse(value):
    pathlib.Path(__file__).with_name("begun").touch()
    time.sleep(600)
"""
NOISE = ("Traceback", "ConnectionRefused", "py4j", "Py4J", "Exception in thread", "Aborted")


class Command:
    """A command in the foreground, with what it prints and the processes that it started."""

    def __init__(self, folder: Path, *arguments: object) -> None:
        self._printed = folder / "printed"
        self._output = self._printed.open("w")
        self.process = subprocess.Popen(
            [str(Path(sys.executable).with_name("penstock")), *map(str, arguments)],
            cwd=folder,
            stderr=self._output,
            env=os.environ | {"PENSTOCK_JOBS": str(folder / "jobs.sqlite")},
        )

    def family(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children(recursive=True)

    def java(self) -> psutil.Process:
        (found,) = [one for one in self.family() if one.name() == "java"]
        return found

    def interrupt(self) -> None:
        self.process.send_signal(signal.SIGINT)

    @property
    def printed(self) -> str:
        return self._printed.read_text()

    def close(self) -> None:
        self._output.close()
        if self.process.poll() is None:
            for one in [*self.family(), psutil.Process(self.process.pid)]:
                one.kill()
            self.process.wait()


@pytest.fixture
def penstock(tmp_path: Path) -> Iterator[Callable[..., Command]]:
    started: list[Command] = []

    def start(*arguments: object) -> Command:
        started.append(Command(tmp_path, *arguments))
        return started[-1]

    yield start
    for one in started:
        one.close()


@pytest.fixture
def define(connection: Connection, unique: str, tmp_path: Path) -> Callable[[str], Path]:
    def write(decode: str) -> Path:
        (tmp_path / "slow.py").write_text(PARSER)
        file = tmp_path / "pipeline.yaml"
        given = {"name": unique, "brokers": connection.brokers, "folder": tmp_path}
        file.write_text(DEFINITION.format(**given, decode=decode))
        fill(connection, unique, [{"n": n} for n in range(3)])
        return file

    return write


@pytest.mark.by_turns
@pytest.mark.parametrize("kind", ["run", "jobs"])
def test_the_second_ctrl_c_ends_at_once_with_every_child(
    penstock: Callable[..., Command],
    define: Callable[[str], Path],
    unique: str,
    tmp_path: Path,
    kind: str,
) -> None:
    file = define(SLOW)
    if kind == "jobs":
        assert penstock("jobs", "create", file).process.wait(60) == 0
    running = penstock("run", file) if kind == "run" else penstock("jobs", "run", unique)
    eventually((tmp_path / "begun").exists, 300)
    family = running.family()

    running.interrupt()
    eventually(lambda: "press Ctrl-C again to exit immediately" in running.printed, 30)
    assert running.process.poll() is None  # the batch is being finished
    began = time.monotonic()
    running.interrupt()
    assert running.process.wait(60) == 130
    assert time.monotonic() - began < 60  # the batch takes ten minutes
    eventually(lambda: not any(one.is_running() for one in family), 15)
    assert not [word for word in NOISE if word in running.printed], running.printed


def test_a_killed_java_process_is_one_line_and_the_pipeline_goes_on(
    penstock: Callable[..., Command],
    define: Callable[[str], Path],
    connection: Connection,
    unique: str,
    tmp_path: Path,
) -> None:
    running = penstock("run", define(JSON))
    table = tmp_path / "table"
    eventually(lambda: list(table.glob("*.parquet")), 300)

    running.java().kill()
    fill(connection, unique, [{"n": n} for n in range(3, 6)])
    eventually(lambda: _numbers(table) == list(range(6)), 300)
    running.interrupt()
    assert running.process.wait(120) == 130

    printed = running.printed
    assert not [word for word in NOISE if word in printed], printed
    lines = [line for line in printed.splitlines() if not line.startswith((unique, "starting"))]
    (line,) = [line for line in lines if "the Java process of Spark" in line]
    assert "killed by signal 9; its log is " in line
    assert len(lines) == 2, printed  # and the one about Ctrl-C


def _numbers(table: Path) -> list[int]:
    files = table.glob("*.parquet")
    return sorted(n for file in files for n in pq.read_table(file).column("n").to_pylist())
