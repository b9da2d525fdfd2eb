"""Starts Spark's Java process directly, without the shell scripts and the second Java they need.

Two things make a start fast: this, and a class-data archive that Java writes once, when the first
process ends, and maps into memory ever after. The process ends with its parent: it reads a pipe.
"""

from __future__ import annotations

import hashlib
import os
import struct
import subprocess
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from penstock.config.directories import cache_dir, log_dir
from penstock.embedded import jars
from penstock.embedded.java import find_java
from penstock.engine.scratch import Scratch
from penstock.errors import MissingExtraError, SetupError
from penstock.pipeline.storage import is_local
from penstock.retry import wait_for

START_DEADLINE = 120.0
_GRACE = 30.0
# On a busy machine an archive takes longer than that to write; without one, every start takes longer.
_ARCHIVING = 180.0
# An archive has 200 MB, and each upgrade of Java, Spark or a jar makes another one.
_UNUSED = 14 * 86400.0

# What Spark reaches into on Java 17 and newer.
_OPENED = (
    "java.lang",
    "java.lang.invoke",
    "java.lang.reflect",
    "java.io",
    "java.net",
    "java.nio",
    "java.util",
    "java.util.concurrent",
    "java.util.concurrent.atomic",
    "jdk.internal.ref",
    "sun.nio.ch",
    "sun.nio.cs",
    "sun.security.action",
    "sun.util.calendar",
)
_JAVA_OPTIONS = [
    "-XX:+IgnoreUnrecognizedVMOptions",
    *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED),
    "--add-opens=java.security.jgss/sun.security.krb5=ALL-UNNAMED",
    "--enable-native-access=ALL-UNNAMED",
    "-Djdk.reflect.useDirectMethodHandle=false",
    "-Dio.netty.tryReflectionSetAccessible=true",
    # Much of what runs while pipelines start never runs again: compile it only once it is truly hot.
    # Loops over records are noticed by their turns, which count as ever.
    "-XX:Tier4InvocationThreshold=20000",
    "-XX:Tier4MinInvocationThreshold=2400",
    "-XX:Tier4CompileThreshold=60000",
    "-Xlog:disable",
    "-Xlog:all=error:stderr",
]
_LOGGING = """\
status = error
rootLogger.level = warn
rootLogger.appenderRef.out.ref = out
appender.out.type = Console
appender.out.name = out
appender.out.target = SYSTEM_ERR
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d{yyyy-MM-dd HH:mm:ss} %p %c{1}: %m%n%ex
"""


@dataclass
class Jvm:
    """A running Java process with Spark in it, and how to talk to it."""

    process: subprocess.Popen[bytes]
    port: int
    secret: str
    log: Path
    _archive: _Archive
    _scratch: Scratch

    def death(self) -> str | None:
        """Return how the process ended, and where its log is; None while it runs."""
        code = self.process.poll()
        if code is None:
            return None
        how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
        return f"the Java process of Spark {how}; its log is {self.log}"

    def stop(self) -> None:
        """End the process; the first one of its kind takes some seconds to write its archive."""
        if self.process.stdin:
            with suppress(BrokenPipeError):  # it is dead
                self.process.stdin.close()
        try:
            self.process.wait(_GRACE if self._archive.path.exists() else _ARCHIVING)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        if self.process.returncode == 0:
            self._archive.keep()
        self._scratch.remove()


@dataclass(frozen=True)
class _Archive:
    """Java's class-data archive for one class path: used when there, made when not."""

    path: Path

    @property
    def fresh(self) -> Path:
        return self.path.with_suffix(f".{os.getpid()}")

    def options(self) -> list[str]:
        if self.path.exists():
            self.path.touch()  # so that it is known to be in use
            return [f"-XX:SharedArchiveFile={self.path}", "-Xshare:auto"]
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._remove_old()
        return [f"-XX:ArchiveClassesAtExit={self.fresh}"]

    def _remove_old(self) -> None:
        """Remove unfinished archives of killed processes, and archives that were not used for long."""
        for file in self.path.parent.glob("spark-*"):
            pid = file.suffix.removeprefix(".")
            left = pid.isdigit() and not Path(f"/proc/{pid}").exists()
            # A Java process whose parent was killed may just now replace its own.
            with suppress(FileNotFoundError):
                if left or time.time() - file.stat().st_mtime > _UNUSED:
                    file.unlink()

    def keep(self) -> None:
        if self.fresh.exists():
            self.fresh.replace(self.path)


def start_jvm(memory: str, settings: dict[str, str]) -> Jvm:
    """Start Java with Spark and wait until it listens."""
    java = find_java()
    classpath = _classpath()
    archive = _Archive(archive_path())
    cluster = not is_local(settings["spark.master"])
    hadoop = _hadoop_settings() if cluster else []
    log = log_dir() / f"spark-{os.getpid()}.log"
    scratch = Scratch()
    with tempfile.TemporaryDirectory(prefix="penstock-") as folder:
        connection = Path(folder) / "connection"
        command = [
            str(java.path),
            "-cp",
            os.pathsep.join(map(str, [*classpath, *hadoop])),
            f"-Xms{memory}",  # whole from the start: a long backlog must not take more than a short one
            f"-Xmx{memory}",
            *(
                [] if hadoop else archive.options()
            ),  # no archive is made for folders that hold files
            *_JAVA_OPTIONS,
            f"-Dlog4j2.configurationFile={_file(folder, 'log4j2.properties', _LOGGING)}",
            "org.apache.spark.deploy.SparkSubmit",
            "--properties-file",
            _file(
                folder, "spark.properties", _properties(_own_folders(scratch, cluster) | settings)
            ),
            "pyspark-shell",
        ]
        process = _spawn(command, connection, log, home=cluster)
        port, secret = _wait_until_it_listens(process, connection, log)
    return Jvm(process, port, secret, log, archive, scratch)


def _own_folders(scratch: Scratch, cluster: bool) -> dict[str, str]:
    """Return settings that keep Spark's temporary files private from other users of this machine."""
    folders = {"spark.sql.warehouse.dir": str(scratch.path / "warehouse")}
    # On a cluster the setting goes to the executors as well, which have folders of their own.
    return folders if cluster else {**folders, "spark.local.dir": str(scratch.path)}


def own_jars() -> list[Path]:
    """Return the jars beyond Spark's own: all of them, always.

    Pipelines share one session, and the next one may need what this does not. With the class-data
    archive that costs no start-up time that could be measured.
    """
    return [jar for group in jars.SPARK_GROUPS for jar in jars.fetch(group)]


def _hadoop_settings() -> list[Path]:
    """Return the configuration folders of HDFS and YARN: Spark's own scripts use them as well."""
    named = [os.environ.get(name) for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR")]
    return [Path(folder) for folder in dict.fromkeys(filter(None, named)) if Path(folder).is_dir()]


def _spark_home() -> Path:
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise MissingExtraError("spark", "a pipeline")
    return Path(spec.origin).parent


def _classpath() -> list[Path]:
    return [*sorted(_spark_home().joinpath("jars").glob("*.jar")), *own_jars()]


def archive_path() -> Path:
    """Return the path of the class-data archive of this Java and these jars; it may not exist."""
    stats = [(jar, jar.stat()) for jar in _classpath()]
    stamps = "\n".join(f"{jar} {stat.st_size} {stat.st_mtime_ns}" for jar, stat in stats)
    digest = hashlib.sha256(f"{find_java().version}\n{stamps}".encode()).hexdigest()[:16]
    return cache_dir() / "classes" / f"spark-{digest}.jsa"


def _file(folder: str, name: str, text: str) -> str:
    path = Path(folder) / name
    path.write_text(text, encoding="utf-8")
    path.chmod(0o600)
    return str(path)


def _properties(settings: dict[str, str]) -> str:
    def escaped(text: str) -> str:
        return text.replace("\\", "\\\\").replace("\n", "\\n")

    return "".join(f"{key} {escaped(value)}\n" for key, value in settings.items())


def _spawn(
    command: list[str], connection: Path, log: Path, *, home: bool
) -> subprocess.Popen[bytes]:
    # No SPARK_HOME for workers of this machine: with it, they would import PySpark from a zip, not from
    # where it is installed. For a cluster Spark takes from there what executors lack.
    inherited = {name: value for name, value in os.environ.items() if name != "SPARK_HOME"}
    environment = inherited | {
        **({"SPARK_HOME": str(_spark_home())} if home else {}),
        "SPARK_CONNECT_MODE": "0",
        "MALLOC_ARENA_MAX": "2",  # glibc keeps freed memory per thread otherwise, and Java has many
        "_PYSPARK_DRIVER_CONN_INFO_PATH": str(connection),
    }
    with log.open("ab") as output:
        return subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            env=environment,
            start_new_session=True,  # Ctrl-C is for us: we stop Java in order
        )


def _wait_until_it_listens(
    process: subprocess.Popen[bytes], connection: Path, log: Path
) -> tuple[int, str]:
    def is_over() -> bool:
        return process.poll() is not None or connection.exists()

    if not wait_for(is_over, within=START_DEADLINE, every=0.02):
        process.kill()
        raise SetupError(f"Spark was not up after {START_DEADLINE:.0f} s; its output is in {log}")
    if process.poll() is not None:
        raise SetupError(f"Java ended before Spark was up; its output is in {log}")
    content = connection.read_bytes()
    port, length = struct.unpack(">ii", content[:8])
    return port, content[8 : 8 + length].decode()
