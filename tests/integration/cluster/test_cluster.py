"""Definitions on a real cluster: what reaches the executors, what is refused, and a worker that dies.

All of it is in one file: a cluster and the session for it take long to start.
"""

from __future__ import annotations

import fcntl
import os
import signal
import sqlite3
import subprocess
import sys
import tarfile
import venv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock import Connection, Pipeline, memory_table, start
from penstock.engine import spark_session, stop_session
from penstock.errors import ConfigError
from penstock.pipeline import SparkOptions
from penstock.testing import eventually, fill, read_all
from penstock.testing.cluster import SparkCluster, SparkWorker

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

TRADES = [{"id": i, "price": i / 2} for i in range(500)]


def run_once(definition: Pipeline) -> Any:
    with start(definition, once=True) as running:
        assert running.wait(280), running.progress()
        return running.progress()


def test_the_executors_python_has_the_packages_and_not_penstock(executors_python: Path) -> None:
    def imports(name: str) -> bool:
        run = [str(executors_python), "-E", "-c", f"import {name}"]
        return subprocess.run(run, check=False, capture_output=True).returncode == 0

    assert imports("pyarrow")
    assert not imports("penstock")


def test_json_becomes_parquet_and_bad_records_dead_letters(
    connection: Connection, unique: str, definition: Any, moved: Any, tmp_path: Path
) -> None:
    file = definition("""
source: {kafka: "{topic}"}
decode: {json: {schema: "id bigint not null, price double"}}
steps: [{sql: "SELECT *, price * 2 AS twice FROM rows"}]
sink: {files: {path: "{folder}/table"}}
delivery: exactly-once
""")
    fill(connection, unique, [*TRADES, "no JSON", {"id": None}], partitions=3)

    progress = run_once(moved(file))

    table = pq.read_table(tmp_path / "table")
    assert sorted(table.column("id").to_pylist()) == list(range(500))
    assert all(row["twice"] == row["id"] for row in table.to_pylist())
    assert (progress.records, progress.rows, progress.failed) == (502, 500, 2)
    letters = read_all(connection, f"{unique}.dead-letters")
    assert sorted(letter.value for letter in letters) == [b"no JSON", b'{"id":null}']


def test_a_parser_beside_the_definition_is_sent_with_all_that_it_imports(
    connection: Connection, unique: str, definition: Any, moved: Any, tmp_path: Path
) -> None:
    file = definition(
        """
source: {kafka: "{topic}"}
decode:
  python:
    function: cluster_parser:parse
    schema: "id bigint, price double, parser string, helper string, penstock string"
sink: {delta: {path: "{folder}/table"}}
delivery: exactly-once
""",
        cluster_parser="""
import json

def parse(value):
    import cluster_helper  # not known before the first record
    import penstock

    if value == "bad":
        raise ValueError("a bad record")
    row = json.loads(value)
    return cluster_helper.widened(row) | {"parser": __file__, "penstock": penstock.__file__}
""",
        cluster_helper="""
def widened(row):
    return {**row, "helper": __file__}
""",
    )
    fill(connection, unique, [*TRADES, "bad"], partitions=2)

    progress = run_once(moved(file))

    rows = spark_session().read.format("delta").load(str(tmp_path / "table")).toArrow()
    assert sorted(rows.column("id").to_pylist()) == list(range(500))
    assert (progress.rows, progress.failed) == (500, 1)
    for name in ("parser", "helper", "penstock"):
        (place,) = set(rows.column(name).to_pylist())
        assert ".zip/" in place
        assert str(tmp_path) not in place


def test_topic_to_topic_exactly_once_through_a_step_in_python(
    connection: Connection, unique: str, definition: Any, moved: Any
) -> None:
    file = definition(
        """
source: {kafka: "{topic}"}
decode: {json: {schema: "id bigint not null, price double"}}
steps: [{python: cluster_step:expensive}]
sink: {kafka: {topic: "{topic}-out", value: id}}
delivery: exactly-once
""",
        cluster_step="""
import pyarrow.compute as pc

def expensive(table):
    return table.filter(pc.greater_equal(table["price"], 100))
""",
    )
    fill(connection, unique, TRADES, partitions=2)

    progress = run_once(moved(file))

    written = sorted(int(record.value or b"-1") for record in read_all(connection, f"{unique}-out"))
    assert written == list(range(200, 500))
    assert (progress.records, progress.rows) == (500, 300)


def test_what_a_step_keeps_is_found_again_by_the_next_run(
    connection: Connection, unique: str, definition: Any, moved: Any, tmp_path: Path
) -> None:
    file = definition("""
source: {kafka: "{topic}"}
decode: {json: {schema: "id bigint, at timestamp"}}
steps: [{deduplicate: {by: id, time: at, within: 1h}}]
sink: {files: "{folder}/table"}
delivery: exactly-once
""")
    for last in (100, 150):
        rows = [{"id": i, "at": "2024-01-02T03:04:05Z"} for i in [*range(last), *range(last)]]
        fill(connection, unique, rows, partitions=2)
        run_once(moved(file))

    found = pq.read_table(tmp_path / "table").column("id").to_pylist()
    assert sorted(found) == list(range(150))


def halved(table: pa.Table) -> pa.Table:
    return table.slice(0, table.num_rows // 2)


def test_a_function_by_value_takes_its_module_along(
    connection: Connection, unique: str, pipeline: Any, there: SparkOptions
) -> None:
    fill(connection, unique, [{"id": i} for i in range(100)])
    definition = pipeline(
        source={"kafka": unique},
        decode={"json": {"schema": "id bigint"}},
        steps=[{"python": {"function": halved}}],
        sink={"memory": unique},
        spark=there,
    )

    run_once(definition)

    assert memory_table(unique).to_arrow().column("id").to_pylist() == list(range(50))


def test_a_database_in_a_file_is_written_by_the_driver(
    connection: Connection, unique: str, pipeline: Any, there: SparkOptions, tmp_path: Path
) -> None:
    fill(connection, unique, TRADES, partitions=2)
    definition = pipeline(
        source={"kafka": unique},
        decode={"json": {"schema": "id bigint not null"}},
        sink={"database": {"url": f"sqlite:///{tmp_path}/trades.db", "table": "trades"}},
        delivery="exactly-once",
        spark=there,
    )

    run_once(definition)

    with sqlite3.connect(tmp_path / "trades.db") as database:
        found = database.execute("SELECT id FROM trades ORDER BY id").fetchall()
    assert [id for (id,) in found] == list(range(500))


# -- what is refused when a pipeline starts

TO_FILES = """
source: {kafka: "{topic}"}
decode: {json: {schema: "id bigint not null"}}
sink: {files: {path: "{folder}/table"}}
"""


def test_a_folder_that_executors_do_not_see_is_refused(
    connection: Connection, unique: str, definition: Any, moved: Any
) -> None:
    # The working directory of whoever looks: each process has another behind the same name.
    unseen = f"/proc/self/cwd/{unique}"
    fill(connection, unique, [{"id": 1}])
    file = definition(TO_FILES.replace("{folder}", unseen))

    with pytest.raises(ConfigError, match=f"does not see in {unseen}/table .* all machines share"):
        start(moved(file), once=True)


def test_a_state_folder_that_executors_do_not_see_is_refused_where_they_write_to_it(
    connection: Connection, unique: str, definition: Any, moved: Any, tmp_path: Path
) -> None:
    unseen = f"/proc/self/cwd/{unique}"
    fill(connection, unique, [{"id": 1, "at": "2024-01-02T03:04:05Z"}])
    file = definition("""
source: {kafka: "{topic}"}
decode: {json: {schema: "id bigint, at timestamp"}}
steps: [{deduplicate: {by: id, time: at, within: 1h}}]
sink: {kafka: "{topic}-out"}
""")
    file.write_text(file.read_text().replace(f"state: {tmp_path}/state", f"state: {unseen}"))

    with pytest.raises(ConfigError, match=f"does not see in {unseen}/{unique}"):
        start(moved(file), once=True)


def test_a_place_that_does_not_say_which_file_system_is_refused_where_that_matters(
    definition: Any, moved: Any, there: SparkOptions, tmp_path: Path
) -> None:
    hadoop: Any = spark_session(there).sparkContext._jsc.hadoopConfiguration()
    hadoop.set("fs.defaultFS", "hdfs://names:8020")
    try:
        with pytest.raises(
            ConfigError, match=f"hdfs://names:8020{tmp_path}.*, or file://{tmp_path}"
        ):
            start(moved(definition(TO_FILES)), once=True)
    finally:
        hadoop.set("fs.defaultFS", "file:///")


def test_a_python_that_is_not_there_is_refused(
    connection: Connection, unique: str, definition: Any, moved: Any, there: Any, monkeypatch: Any
) -> None:
    fill(connection, unique, [{"id": 1}])
    file = definition(TO_FILES)
    monkeypatch.setattr(spark_session(there).sparkContext, "pythonExec", "/no/python")

    with pytest.raises(ConfigError, match=r"they run '/no/python'.*spark\.pyspark\.python"):
        start(moved(file), once=True)


def test_a_python_without_the_packages_is_refused_with_the_package(
    connection: Connection,
    unique: str,
    definition: Any,
    moved: Any,
    there: SparkOptions,
    monkeypatch: Any,
    tmp_path: Path,
) -> None:
    fill(connection, unique, [{"id": 1}])
    file = definition(TO_FILES)
    venv.create(tmp_path / "bare", symlinks=True)
    bare = str(tmp_path / "bare" / "bin" / "python")
    monkeypatch.setattr(spark_session(there).sparkContext, "pythonExec", bare)

    with pytest.raises(ConfigError, match=r"No module named|must be installed"):
        start(moved(file), once=True)


# -- a worker and its executor die in the middle of a batch

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


@pytest.mark.by_turns
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


# -- the command line


def test_the_command_line_takes_a_definition_to_a_cluster_with_a_packed_python(
    cluster: SparkCluster,
    executors_python: Path,
    connection: Connection,
    unique: str,
    definition: Any,
    tmp_path: Path,
) -> None:
    stop_session()  # its executors hold all cores of the cluster
    file = definition(
        TO_FILES.replace("json: {schema", "python: {function: packed_parser:parse, schema"),
        packed_parser="import json, sys\n\ndef parse(value):\n    return json.loads(value)\n",
    )
    fill(connection, unique, [{"id": i} for i in range(100)], partitions=2)
    with tarfile.open(tmp_path / "python.tar.gz", "w:gz") as packed:
        packed.add(executors_python.parents[1], ".")

    done = subprocess.run(
        [
            str(Path(sys.executable).with_name("penstock")), "run", file, "--once",
            "--conf", f"spark.archives={tmp_path}/python.tar.gz#environment",
            "--conf", "spark.pyspark.python=./environment/bin/python",
        ],
        env=os.environ | {"PENSTOCK_SPARK_MASTER": cluster.master},
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    assert f"starting {unique} (Spark {cluster.master})" in done.stderr
    assert sorted(pq.read_table(tmp_path / "table").column("id").to_pylist()) == list(range(100))
