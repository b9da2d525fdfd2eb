"""What a cluster cannot do is said when the pipeline starts; and the command line takes one there."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import venv
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from penstock import Connection, start
from penstock.engine import spark_session, stop_session
from penstock.errors import ConfigError
from penstock.pipeline import SparkOptions
from penstock.testing import fill
from penstock.testing.cluster import SparkCluster

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

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
