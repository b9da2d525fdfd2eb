"""`penstock run` with six pipelines, killed at random moments: it starts again, and never ends itself."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pyarrow.parquet as pq
import pytest

from penstock import Connection
from penstock.testing import eventually, fill

KILLS, PIPELINES = 3, 6
# Seconds until a kill: in the middle of a start, or in the middle of a batch.
EARLIEST, LATEST = 0.5, 20.0
DEFINITION = """\
name: {name}
connection: {{bootstrap.servers: "{brokers}"}}
source: {{kafka: "{topic}"}}
decode: {{json: {{schema: "n bigint not null"}}}}
sink: {{files: "{folder}/{name}"}}
state: "{folder}/state"
delivery: exactly-once
"""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def test_six_pipelines_start_again_after_every_kill(
    connection: Connection, unique: str, tmp_path: Path
) -> None:
    names = [f"{unique}-{number}" for number in range(PIPELINES)]
    files = [tmp_path / f"{name}.yaml" for name in names]
    for name, file in zip(names, files, strict=True):
        given = {"name": name, "brokers": connection.brokers, "topic": unique, "folder": tmp_path}
        file.write_text(DEFINITION.format(**given))
    fill(connection, unique, [{"n": n} for n in range(10)])

    sent = 10
    for kill in range(KILLS):
        log = tmp_path / f"run-{kill}.log"
        with log.open("w") as output:
            process = _run(files, output)
            try:
                code = process.wait(random.uniform(EARLIEST, LATEST))
                pytest.fail(f"ended by itself with {code}: {log.read_text()}")
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
            process.wait()
        fill(connection, unique, [{"n": n} for n in range(sent, sent + 10)])
        sent += 10

    last = tmp_path / "last.log"
    with last.open("w") as output:
        process = _run(files, output)
        try:
            for name in names:
                eventually(
                    lambda name=name: _numbers(tmp_path / name) == list(range(sent)), 300, every=0.5
                )
        finally:
            _end(process)
    assert "Traceback" not in last.read_text()


def _run(files: list[Path], output: object) -> subprocess.Popen[bytes]:
    command = [str(Path(sys.executable).with_name("penstock")), "run", *map(str, files)]
    return subprocess.Popen(command, stderr=output)  # type: ignore[call-overload,no-any-return]


def _end(process: subprocess.Popen[bytes]) -> None:
    for one in psutil.Process(process.pid).children(recursive=True):
        one.kill()
    process.kill()
    process.wait()


def _numbers(table: Path) -> list[int]:
    files = table.glob("*.parquet")
    return sorted(n for file in files for n in pq.read_table(file).column("n").to_pylist())
