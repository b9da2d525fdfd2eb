"""A real standalone cluster whose executors know nothing of Penstock, and definitions moved onto it."""

from __future__ import annotations

import sys
import sysconfig
import venv
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock import Connection, Pipeline, read_pipeline
from penstock.pipeline import SparkOptions
from penstock.testing.cluster import SparkCluster


@pytest.fixture(scope="module")
def executors_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python with every package of this one, but without Penstock, which is installed by a link.

    A path file adds the folder of the packages, and Python follows no path files in such a folder.
    """
    home = tmp_path_factory.mktemp("python")
    venv.create(home, symlinks=True)
    packages = home / Path(sysconfig.get_path("purelib")).relative_to(sysconfig.get_path("data"))
    (packages / "packages.pth").write_text(sysconfig.get_path("purelib"))
    return home / "bin" / "python"


@pytest.fixture(scope="module")
def cluster() -> Iterator[SparkCluster]:
    with SparkCluster() as started:
        yield started


@pytest.fixture(scope="module")
def there(
    cluster: SparkCluster, executors_python: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SparkOptions]:
    """Spark's options for the cluster; the session of this process ends before and after."""
    from penstock.engine import stop_session

    stop_session()
    with pytest.MonkeyPatch.context() as patch:
        # Java keeps this folder as its own; no executor works in it.
        patch.chdir(tmp_path_factory.mktemp("driver"))
        # Two cores are too few for Spark's two hundred tasks after a shuffle, and Delta's fifty.
        few = {"spark.sql.shuffle.partitions": 2, "spark.databricks.delta.snapshotPartitions": 2}
        # Executors live for minutes: they are sooner done without the thorough half of Java's compiler.
        quick = {"spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1"}
        conf = {"spark.pyspark.python": str(executors_python), **few, **quick}
        yield SparkOptions(master=cluster.master, conf=conf)
        stop_session()


@pytest.fixture
def definition(connection: Connection, unique: str, tmp_path: Path) -> Callable[..., Path]:
    """Writes a definition and the modules next to it; `{topic}` and `{folder}` are filled in."""

    def write(text: str, **modules: str) -> Path:
        home = tmp_path / "definition"
        home.mkdir()
        for name, source in modules.items():
            (home / f"{name}.py").write_text(source)
        head = f"name: {unique}\nconnection: {{bootstrap.servers: '{connection.brokers}'}}\n"
        filled = text.replace("{topic}", unique).replace("{folder}", str(tmp_path))
        file = home / "pipeline.yaml"
        file.write_text(f"{head}state: {tmp_path}/state\n{filled}")
        return file

    return write


@pytest.fixture
def moved(there: SparkOptions, monkeypatch: Any) -> Callable[[Path], Pipeline]:
    """Reads a definition as it is, with nothing but Spark's master changed."""
    monkeypatch.setattr(sys, "path", [*sys.path])

    def read(file: Path) -> Pipeline:
        return read_pipeline(file).model_copy(update={"spark": there})

    return read
