"""A standalone Spark cluster on this machine, from the pip package alone: a master and its workers."""

from __future__ import annotations

import json
import shutil
import signal
import tempfile
import urllib.request
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psutil
from typing_extensions import Self

from penstock.embedded.java import find_java
from penstock.embedded.ports import HOST, free_ports
from penstock.embedded.process import Child
from penstock.errors import MissingExtraError

_DEADLINE = 120.0
# The daemons do little: small heaps, only the fast C1 compiler, no submission by HTTP.
_DAEMON = {
    "SPARK_DAEMON_MEMORY": "256m",
    "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -Dspark.master.rest.enabled=false",
}
# Variables that executors must not inherit: they may only use what is sent to them.
_HIDDEN = ("PYTHONPATH", "SPARK_HOME", "PYSPARK_PYTHON")


class SparkWorker:
    """One worker. Its executors are its children, and their Python workers the children of those."""

    def __init__(self, child: Child) -> None:
        self._child = child

    @property
    def executors(self) -> list[int]:
        """Return the process ids of the executors that run now."""
        if not self._child.running:
            return []
        return [each.pid for each in psutil.Process(self._child.pid).children()]

    def end(self, how: signal.Signals = signal.SIGTERM) -> None:
        """End the worker and all its child processes; with SIGKILL as in a power failure."""
        if not self._child.running:
            return
        worker = psutil.Process(self._child.pid)
        family = [worker, *worker.children(recursive=True)]
        for process in family:
            with suppress(psutil.NoSuchProcess):
                process.send_signal(how)
        self._child.wait(60)
        psutil.wait_procs(family, timeout=60)


class SparkCluster:
    """A master and some workers, each with a core and the memory for one executor of 1 GB.

    Examples
    --------
    ::

        with SparkCluster() as cluster:
            Pipeline(..., spark={"master": cluster.master})
    """

    def __init__(self, workers: int = 2, *, cores: int = 1, memory: str = "1g") -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="penstock-spark-"))
        self._cores, self._memory = cores, memory
        self._port, self._web = free_ports(2)
        self._wanted = workers
        self._daemon: Child | None = None
        self.workers: list[SparkWorker] = []

    @property
    def master(self) -> str:
        """Return the address for `spark.master`."""
        return f"spark://{HOST}:{self._port}"

    def __enter__(self) -> Self:
        self._daemon = self._begin("master", "--port", self._port, "--webui-port", self._web)
        self._daemon.wait_until(
            lambda: self._status() is not None, timeout=_DEADLINE, what="Spark's master"
        )
        for _ in range(self._wanted):
            self.add_worker()
        self.wait_for_workers(self._wanted)
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self.workers:
            worker.end(signal.SIGKILL)
        if self._daemon is not None:
            self._daemon.kill()
        shutil.rmtree(self._folder, ignore_errors=True)

    def add_worker(self) -> SparkWorker:
        """Start one more worker."""
        name = f"worker-{len(self.workers)}"
        sizes = ("--cores", self._cores, "--memory", self._memory, "--webui-port", *free_ports(1))
        child = self._begin(name, *sizes, "--work-dir", self._folder / name, self.master)
        self.workers.append(SparkWorker(child))
        return self.workers[-1]

    def wait_for_workers(self, count: int) -> None:
        """Wait until the master has this many live workers."""
        assert self._daemon is not None  # noqa: S101
        self._daemon.wait_until(
            lambda: int((self._status() or {}).get("aliveworkers", 0)) >= count,
            timeout=_DEADLINE,
            what=f"a cluster of {count} workers",
        )

    def _begin(self, name: str, *arguments: object) -> Child:
        kind = name.partition("-")[0]
        program = f"org.apache.spark.deploy.{kind}.{kind.capitalize()}"
        variables = {**_DAEMON, "JAVA_HOME": str(find_java().home), "SPARK_LOCAL_IP": HOST}
        hidden = [part for name in _HIDDEN for part in ("-u", name)]
        command = ["env", *hidden, *(f"{key}={value}" for key, value in variables.items())]
        command += [str(_spark_class()), program, "--host", HOST, *map(str, arguments)]
        return Child(command, log=self._folder / f"{name}.log", grace=20)

    def _status(self) -> dict[str, Any] | None:
        try:
            with urllib.request.urlopen(f"http://{HOST}:{self._web}/json/", timeout=5) as response:
                status: dict[str, Any] = json.load(response)
                return status
        except OSError:
            return None


def _spark_class() -> Path:
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise MissingExtraError("spark", "a Spark cluster")
    return Path(spec.origin).parent / "bin" / "spark-class"
