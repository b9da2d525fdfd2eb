"""Checks before a pipeline runs on a cluster: whether all machines mean the same place and Python."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import PySparkException

from penstock.engine.preflight import (
    _loading,
    _python_errors,
    need_schemes,
    try_folders,
    try_python,
)
from penstock.errors import ConfigError
from penstock.pipeline import Pipeline

CLUSTER = "spark://somewhere:7077"


def spark(master: str, file_system: str | None = None) -> Any:
    hadoop = SimpleNamespace(get=lambda _: file_system)
    java = SimpleNamespace(hadoopConfiguration=lambda: hadoop)
    return SimpleNamespace(sparkContext=SimpleNamespace(master=master, _jsc=java))


def pipeline(path: str, *steps: Any) -> Pipeline:
    return Pipeline(
        name="p",
        connection={"bootstrap.servers": "nowhere:1"},
        source={"kafka": "t"},
        decode={"json": {"schema": "n int"}},
        steps=list(steps),
        sink={"files": path},
    )


def test_on_one_machine_nothing_is_checked() -> None:
    local, made = spark("local[*]"), pipeline("out/rows")
    need_schemes(local, made, "state")
    try_python(local, made, None, "")  # type: ignore[arg-type]
    try_folders(local, made, ["state"])


def test_a_path_without_a_scheme_is_refused_where_the_cluster_has_another_file_system() -> None:
    hadoop = spark(CLUSTER, "hdfs://names:9000/")
    with pytest.raises(ConfigError, match=r"write hdfs://names:9000/.*/out/rows, or file:///"):
        need_schemes(hadoop, pipeline("out/rows"), "hdfs://names:9000/state")
    need_schemes(hadoop, pipeline("hdfs://names:9000/rows"), "file:///state")


@pytest.mark.parametrize("file_system", [None, "file:///"])
def test_a_path_without_a_scheme_is_this_machines_where_the_cluster_has_no_other(
    file_system: str | None, tmp_path: Path
) -> None:
    need_schemes(spark(CLUSTER, file_system), pipeline(str(tmp_path)), "state")


def test_executors_without_the_packages_are_reported_with_what_to_do() -> None:
    context: Any = SimpleNamespace(master=CLUSTER, pythonExec="python3")
    with (
        pytest.raises(ConfigError, match=r"cannot run Python for this pipeline.*docs/cluster\.md"),
        _python_errors(context),
    ):
        raise PySparkException("ModuleNotFoundError: No module named 'pyarrow'")
    with pytest.raises(PySparkException), _python_errors(context):
        raise PySparkException("a disk is gone")


def test_the_functions_of_steps_are_loaded_by_tasks_only_where_there_are_some() -> None:
    assert _loading(pipeline("out/rows")) is None
    with_function = pipeline("out/rows", {"python": "json:loads"})
    load = _loading(with_function)
    assert load is not None
    assert list(load(iter(()))) == []
