"""A distributed worker of Apache Kafka Connect in a process of its own."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

from bench.peers.jars import fetch
from typing_extensions import Self

from penstock.embedded.java import find_java
from penstock.embedded.ports import HOST, free_ports
from penstock.embedded.process import Child

_READY_WITHIN = 120.0
_MAIN = "org.apache.kafka.connect.cli.ConnectDistributed"
_LOGGING = """\
status = error
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d %-5p %m (%c{1})%n
rootLogger.level = info
rootLogger.appenderRef.out.ref = out
logger.config.name = org.apache.kafka.common.config
logger.config.level = warn
"""
_TOPICS = ("config", "offset", "status")
FILE = {"file": ("connect-file",)}
"""Kafka's file connectors."""
JDBC = {"jdbc": ("connect-jdbc", "postgresql")}
"""Debezium's JDBC sink, with the driver of PostgreSQL."""


class ConnectWorker:
    """A cluster of one worker, on the test's broker. A context manager.

    `plugins` are names of folders, and the groups of jars in each: their classes are kept apart.
    """

    def __init__(
        self, brokers: str, group: str, plugins: Mapping[str, tuple[str, ...]] = FILE
    ) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="penstock-connect-"))
        (self.port,) = free_ports(1)
        self._settings = self._made_settings(brokers, group, self._laid_out(plugins))
        self._child: Child | None = None

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}"

    def __enter__(self) -> Self:
        settings, logging = self.folder / "worker.properties", self.folder / "log4j2.properties"
        lines = [f"{key}={value}\n" for key, value in self._settings.items()]
        settings.write_text("".join(lines), encoding="utf-8")
        logging.write_text(_LOGGING, encoding="utf-8")
        command: list[str | Path] = [find_java().path, "-Xmx320m", "-Xshare:auto"]
        command += ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Duser.language=en"]
        command += [f"-Dlog4j2.configurationFile={logging.as_uri()}"]
        command += ["-cp", os.pathsep.join(map(str, fetch("connect"))), _MAIN, settings]
        self._child = Child(command, log=self.folder / "log", remove=self.folder)
        self._child.wait_until(self._answers, timeout=_READY_WITHIN, what="Kafka Connect")
        return self

    def __exit__(self, *_: object) -> None:
        if self._child is not None:
            self._child.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _answers(self) -> bool:
        try:
            with urlopen(f"{self.url}/health", timeout=5) as reply:
                return bool(reply.status == 200)
        except (HTTPError, URLError, ConnectionError, TimeoutError):
            return False

    def _laid_out(self, plugins: Mapping[str, tuple[str, ...]]) -> Path:
        folder = self.folder / "plugins"
        for name, groups in plugins.items():
            (folder / name).mkdir(parents=True)
            for jar in (jar for group in groups for jar in fetch(group)):
                (folder / name / jar.name).symlink_to(jar)
        return folder

    def _made_settings(self, brokers: str, group: str, plugins: Path) -> dict[str, str]:
        stored = {f"{each}.storage.topic": f"{group}-{each}" for each in _TOPICS}
        copies = {f"{each}.storage.replication.factor": "1" for each in _TOPICS}
        return {
            "bootstrap.servers": brokers,
            "group.id": group,
            "listeners": self.url,
            "plugin.discovery": "service_load",
            "plugin.path": str(plugins),
            "key.converter": "org.apache.kafka.connect.storage.StringConverter",
            "value.converter": "org.apache.kafka.connect.storage.StringConverter",
            "offset.storage.partitions": "1",
            "status.storage.partitions": "1",
            "offset.flush.interval.ms": "500",
            "scheduled.rebalance.max.delay.ms": "0",
            **stored,
            **copies,
        }
