"""A stand-alone Kafka Connect worker: each measurement is a connector, made and deleted through REST.

The worker stays up, so that its Java is as warm as Spark's. The clock starts when the log says that a
consumer of the connector has found its place, and stops when the last row can be read.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from bench.harness import GaveUpError
from bench.peers.jars import fetch
from penstock.embedded.java import find_java
from penstock.embedded.ports import HOST, free_ports
from penstock.embedded.process import Child, log_file

HEAP = "2g"
READY_WITHIN = 180.0
PLUGINS = {
    "file": ("connect-file",),
    "iceberg": ("connect-iceberg",),
    "jdbc": ("connect-jdbc", "postgresql"),
    "postgres": ("connect-postgres", "postgresql"),
}
# Larger hand-overs than the 500 records of Kafka's default serve every one of these sinks better.
RECORDS_AT_ONCE = "5000"
LOGGING = """\
status = error
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d{UNIX_MILLIS} %-5p %m (%c{1})%n
rootLogger.level = info
rootLogger.appenderRef.out.ref = out
logger.config.name = org.apache.kafka.common.config
logger.config.level = warn
logger.rest.name = org.apache.kafka.connect.runtime.rest.RestServer
logger.rest.level = warn
"""
Count = Callable[[], int]


class Worker:
    """Kafka Connect in a process of its own, with the file, Iceberg and JDBC sinks, and a source."""

    def __init__(self, brokers: str) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="penstock-connect-"))
        (self._port,) = free_ports(1)
        began = time.monotonic()
        settings = _written(self._folder / "worker.properties", self._settings(brokers))
        logging = self._folder / "log4j2.properties"
        logging.write_text(LOGGING, encoding="utf-8")
        classes = os.pathsep.join(map(str, fetch("connect")))
        command: list[str | Path] = [find_java().path, f"-Xmx{HEAP}"]
        command += [f"-Dlog4j2.configurationFile={logging.as_uri()}", "-cp", classes]
        command += ["org.apache.kafka.connect.cli.ConnectStandalone", settings]
        self.log = log_file(f"connect-{self._port}")
        self.log.unlink(missing_ok=True)
        self._child = Child(command, log=self.log, remove=self._folder)
        self._child.wait_until(self._answers, timeout=READY_WITHIN, what="Kafka Connect")
        self.start_up = time.monotonic() - began

    def _settings(self, brokers: str) -> dict[str, str]:
        return {
            "bootstrap.servers": brokers,
            "listeners": f"http://{HOST}:{self._port}",
            "plugin.discovery": "service_load",
            "plugin.path": str(_plugins(self._folder / "plugins")),
            "offset.storage.file.filename": str(self._folder / "offsets"),
            "key.converter": "org.apache.kafka.connect.storage.StringConverter",
            "value.converter": "org.apache.kafka.connect.storage.StringConverter",
            "consumer.auto.offset.reset": "earliest",
            "consumer.max.poll.records": RECORDS_AT_ONCE,
            # A sink is called at least so often; Iceberg's commits only when it is called.
            "offset.flush.interval.ms": "1000",
        }

    def _answers(self) -> bool:
        try:
            return isinstance(self._ask("GET", "/connectors"), list)
        except (URLError, ConnectionError):
            return False

    def run(
        self, name: str, settings: Mapping[str, str], rows: int, count: Count, limit: float
    ) -> float:
        """Let a connector write all rows; return the seconds from its first fetch to its last row."""
        begin = self.log.stat().st_size
        self._ask("POST", "/connectors", {"name": name, "config": dict(settings)})
        try:
            self._wait(name, rows, count, time.monotonic() + limit)
            return time.time() - self._first_fetch(name, begin)
        finally:
            self._ask("DELETE", f"/connectors/{name}")

    def import_all(
        self, name: str, settings: Mapping[str, str], rows: int, count: Count, limit: float
    ) -> None:
        """Let a source connector write all rows into its topic."""
        self._ask("POST", "/connectors", {"name": name, "config": dict(settings)})
        try:
            self._wait(name, rows, count, time.monotonic() + limit, longest=0.5)
        finally:
            self._ask("DELETE", f"/connectors/{name}")

    @property
    def pid(self) -> int:
        return self._child.pid

    def _wait(
        self, name: str, rows: int, count: Count, deadline: float, longest: float = 60.0
    ) -> None:
        while True:
            asked = time.monotonic()
            if (found := count()) >= rows:
                return
            if failure := self._failure(name):
                raise GaveUpError(f"{name} failed: {failure}")
            if time.monotonic() > deadline:
                raise GaveUpError(f"{name} had {found:,} of {rows:,} rows at its deadline")
            # Looking must not be a load: at most a tenth of the time goes into it.
            time.sleep(min(max(0.05, 9 * (time.monotonic() - asked)), longest))

    def _failure(self, name: str) -> str | None:
        try:
            status = self._ask("GET", f"/connectors/{name}/status")
        except HTTPError:  # not there yet
            return None
        for part in [status["connector"], *status["tasks"]]:
            if part["state"] == "FAILED":
                return str(part.get("trace", "")).strip()[:2000]
        return None

    def _first_fetch(self, name: str, begin: int) -> float:
        with self.log.open("rb") as log:
            log.seek(begin)
            text = log.read().decode(errors="replace")
        said = rf"^(\d+) .*clientId=connector-consumer-{name}-\d+.*Resetting offset for partition"
        found = re.search(said, text, re.MULTILINE)
        if found is None:
            raise GaveUpError(f"{name}: {self.log} does not say when its consumer began")
        return int(found.group(1)) / 1000

    def _ask(self, method: str, path: str, body: Any = None) -> Any:
        request = Request(
            f"http://{HOST}:{self._port}{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        with urlopen(request, timeout=30) as answer:
            text = answer.read()
        return json.loads(text) if text else None

    def close(self) -> None:
        self._child.stop()
        shutil.rmtree(self._folder, ignore_errors=True)


def _plugins(folder: Path) -> Path:
    """Lay each sink's jars in a folder of its own: Connect keeps their classes apart."""
    for name, groups in PLUGINS.items():
        (folder / name).mkdir(parents=True)
        for jar in (jar for group in groups for jar in fetch(group)):
            (folder / name / jar.name).symlink_to(jar)
    return folder


def _written(path: Path, settings: Mapping[str, str]) -> Path:
    path.write_text(
        "".join(f"{key}={value}\n" for key, value in settings.items()), encoding="utf-8"
    )
    return path
