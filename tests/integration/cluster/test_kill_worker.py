"""A worker and its executor die in the middle of a batch: nothing is lost, nothing is there twice."""

from __future__ import annotations

import fcntl
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pyarrow.parquet as pq
import pytest

from penstock import Connection, start
from penstock.engine import spark_session
from penstock.testing import eventually, fill, read_all
from penstock.testing.cluster import SparkCluster, SparkWorker

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

COUNT = 20_000
# Each task has handed on a batch of Arrow when it comes to its record that waits.
WAITING = (18_000, 18_001)

DEFINITION = """
source: {kafka: "{topic}"}
decode: {python: {function: "MODULE:parse", schema: "id bigint"}}
sink: SINK
delivery: exactly-once
"""
PARSER = """
import fcntl, json, os
from pathlib import Path

FOLDER = Path("{folder}")

def parse(value):
    row = json.loads(value)
    if row["id"] in {waiting}:
        (FOLDER / f"waits-{os.getpid()}").touch()
        with (FOLDER / "gate").open() as gate:
            fcntl.flock(gate, fcntl.LOCK_SH)  # the test holds it
    return row
"""


def in_files(folder: Path, _connection: Connection, _topic: str, _postgres: Any) -> list[int]:
    return pq.read_table(folder / "table").column("id").to_pylist()


def in_delta(folder: Path, _connection: Connection, _topic: str, _postgres: Any) -> list[int]:
    rows = spark_session().read.format("delta").load(str(folder / "table"))
    return rows.toArrow().column("id").to_pylist()


def in_kafka(_folder: Path, connection: Connection, topic: str, _postgres: Any) -> list[int]:
    return [int(record.value or b"-1") for record in read_all(connection, f"{topic}-out")]


def in_postgres(_folder: Path, _connection: Connection, topic: str, postgres: Any) -> list[int]:
    return postgres.values(topic, "id")


SINKS: dict[str, tuple[str, Callable[..., list[int]]]] = {
    "files": ("{files: {path: '{folder}/table'}}", in_files),
    "delta": ("{delta: {path: '{folder}/table'}}", in_delta),
    "kafka": ("{kafka: {topic: '{topic}-out', value: id}}", in_kafka),
    "postgres": ("{database: {url: '{url}', table: '{topic}'}}", in_postgres),
}


def worker_of(cluster: SparkCluster, pid: int) -> SparkWorker:
    above = {each.pid for each in psutil.Process(pid).parents()}
    return next(worker for worker in cluster.workers if above & set(worker.executors))


@pytest.mark.parametrize("sink", SINKS)
def test_a_killed_worker_loses_nothing_and_doubles_nothing(
    sink: str,
    cluster: SparkCluster,
    connection: Connection,
    unique: str,
    definition: Any,
    moved: Any,
    postgres: Any,
    tmp_path: Path,
) -> None:
    sink_written, found_in = SINKS[sink]
    url = postgres.url.replace("penstock@", "penstock:s3cret%2Fwith%3Asigns%40@")
    fill(connection, unique, [{"id": i} for i in range(COUNT)], partitions=2)
    parser = PARSER.replace("{folder}", str(tmp_path)).replace("{waiting}", str(WAITING))
    written = DEFINITION.replace("SINK", sink_written.replace("{url}", url))
    # Each has a name of its own: Python imports a module once in a process, here and there.
    module = f"waiting_for_{sink}"
    file = definition(written.replace("MODULE", module), **{module: parser})
    cluster.wait_for_workers(2)

    with (tmp_path / "gate").open("w") as gate:
        fcntl.flock(gate, fcntl.LOCK_EX)
        with start(moved(file), once=True) as running:
            pids = eventually(lambda: waiting(tmp_path, 2), timeout=240)
            first, second = (worker_of(cluster, pid) for pid in pids)
            assert first is not second
            first.end(signal.SIGKILL)
            fcntl.flock(gate, fcntl.LOCK_UN)
            assert running.wait(280), running.progress()
            progress = running.progress()
    cluster.add_worker()

    assert sorted(found_in(tmp_path, connection, unique, postgres)) == list(range(COUNT))
    assert (progress.records, progress.rows, progress.failed) == (COUNT, COUNT, 0)


def waiting(folder: Path, count: int) -> list[int]:
    found = [int(file.name.partition("-")[2]) for file in folder.glob("waits-*")]
    return found if len(found) == count else []
