"""A real schema registry (Apicurio, Confluent API) on this machine, as a child process."""

from __future__ import annotations

import fcntl
import shutil
import tarfile
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from penstock.config.directories import cache_dir
from penstock.embedded.jars import fetch
from penstock.embedded.java import find_java
from penstock.embedded.ports import HOST, free_ports, need_free
from penstock.embedded.process import Child, log_file
from penstock.embedded.runtime import archive_for
from penstock.errors import SetupError

READY_WITHIN = 60.0
GRACE = 20.0
FLAGS = ("-XX:+UseSerialGC", "-XX:-UsePerfData", "-XX:TieredStopAtLevel=1", "-Xmx256m")


class SchemaRegistry:
    """Apicurio Registry on loopback; schemas are in memory and lost when it stops.

    Examples
    --------
    ::

        with SchemaRegistry() as registry:
            print(registry.url)  # http://127.0.0.1:21433/apis/ccompat/v7
    """

    def __init__(self, *, port: int = 0, detached: bool = False) -> None:
        self.port = port
        self.detached = detached
        self._child: Child | None = None

    def start(self) -> SchemaRegistry:
        """Start and wait until it responds; a running registry is not touched."""
        if self._child:
            return self
        folder = unpacked()
        if self.port:
            need_free(self.port)
        else:
            self.port = free_ports(1)[0]
        try:
            self._child = self._run(folder)
            self._child.wait_until(self._answers, timeout=READY_WITHIN, what="The schema registry")
        except BaseException:
            self.stop()
            raise
        return self

    def _run(self, folder: Path) -> Child:
        java, runner = find_java(), next(folder.resolve().glob("*-runner.jar"))
        archive = archive_for("registry", java, [runner], FLAGS)
        settings = [f"-Dquarkus.http.host={HOST}", f"-Dquarkus.http.port={self.port}"]
        return Child(
            [java.path, *FLAGS, *archive.flags(), *settings, "-jar", runner],
            log=self.log_path,
            grace=GRACE,
            detached=self.detached,
            keep=archive.keeping(),
        )

    def _answers(self) -> bool:
        try:
            with urlopen(f"{self.url}/subjects", timeout=2) as answer:  # noqa: S310 - our own address
                return bool(answer.status == 200)
        except (URLError, OSError):
            return False

    def stop(self) -> None:
        """End it."""
        if self._child:
            self._child.stop()
        self._child = None

    @property
    def url(self) -> str:
        """Return the base address of the Confluent API."""
        if not self.port:
            raise SetupError("The schema registry is not started; call start() or use `with`")
        return f"http://{HOST}:{self.port}/apis/ccompat/v7"

    @property
    def log_path(self) -> Path:
        """Return the path of its log."""
        return log_file(f"registry-{self.port}")

    @property
    def children(self) -> list[Child]:
        """Return the running process, if there is one."""
        return [self._child] if self._child else []

    def __enter__(self) -> SchemaRegistry:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()


def unpacked() -> Path:
    """Return the folder of the unpacked registry, unpacking it the first time."""
    packed = fetch("registry")[0]
    folder = cache_dir() / packed.name.removesuffix(".tar.gz")
    with (cache_dir() / "unpack.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            _unpack(packed, folder)
    return folder


def _unpack(packed: Path, folder: Path) -> None:
    staging = folder.with_name(f"{folder.name}.new")
    shutil.rmtree(staging, ignore_errors=True)
    with tarfile.open(packed) as tar:
        # The checksum of the file is pinned; the filter keeps even that one inside the folder.
        if hasattr(tarfile, "data_filter"):
            tar.extractall(staging, filter="data")
        else:
            tar.extractall(staging)  # noqa: S202 - Pythons before the filter
    staging.replace(folder)
