"""How Java is called for the broker: its jars, its flags, and the archive that makes it start quickly."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from penstock.config.directories import cache_dir
from penstock.embedded.jars import fetch
from penstock.embedded.java import Java, find_java

# The serial collector starts soonest and takes the least memory.
FLAGS = ("-XX:+UseSerialGC", "-XX:-UsePerfData", "-Djava.awt.headless=true")
LOGGING = Path(__file__).with_name("log4j2.properties")


@dataclass(frozen=True)
class Archive:
    """The class-data archive of one program, whether it exists or not.

    The first run that exits cleanly writes it, for one Java and one set of jars. Later runs map their
    classes from it, and start in half the time.
    """

    path: Path

    @property
    def made(self) -> bool:
        """Return whether it exists."""
        return self.path.is_file()

    @property
    def growing(self) -> Path:
        """Return the temporary path to which a run of this process writes it."""
        return self.path.with_suffix(f".{os.getpid()}.tmp")

    def flags(self) -> list[str]:
        """Return the Java option that uses the archive, or writes it at exit."""
        if self.made:
            return [f"-XX:SharedArchiveFile={self.path}", "-Xshare:auto", "-Xlog:cds=off"]
        return [f"-XX:ArchiveClassesAtExit={self.growing}", "-Xlog:cds=off"]

    def keeping(self) -> tuple[Path, Path] | None:
        """Return the paths that the guard of a run renames at the end."""
        return None if self.made else (self.growing, self.path)


@dataclass(frozen=True)
class Runtime:
    """One Java with Kafka's jars."""

    java: Java
    jars: tuple[Path, ...]
    archive: Archive

    def command(self, main: str, *flags: str, archived: bool = True) -> list[str]:
        """Return the command line that runs a class; its arguments are for the caller to add."""
        share = self.archive.flags() if archived or self.archive.made else []
        path = os.pathsep.join(str(jar) for jar in self.jars)
        logging = f"-Dlog4j2.configurationFile={LOGGING.as_uri()}"
        return [str(self.java.path), *FLAGS, *flags, *share, logging, "-cp", path, main]


def kafka_runtime(*groups: str) -> Runtime:
    """Find Java, fetch Kafka's jars (and those of further groups), choose the archive."""
    java = find_java()
    # Archives know jars by their paths: the same jar must not have two.
    jars = tuple(jar.resolve() for group in ("broker", *groups) for jar in fetch(group))
    return Runtime(java, jars, archive_for("-".join(("kafka", *groups)), java, jars, FLAGS))


def archive_for(name: str, java: Java, jars: Sequence[Path], flags: Sequence[str]) -> Archive:
    """Find the archive that fits exactly this Java, these jars and these flags."""
    modules = java.home / "lib" / "modules"
    stamp = modules.stat().st_mtime_ns if modules.exists() else 0
    parts = [str(java.home), str(stamp), *(str(jar) for jar in jars), *flags]
    key = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
    folder = cache_dir() / "archives"
    folder.mkdir(exist_ok=True)
    return Archive(folder / f"{name}-{key}.jsa")
