"""How Java is called for the broker: its jars, its flags, and the archive that makes it start quickly."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from penstock.embedded.archive import Archive, archive_for
from penstock.embedded.jars import fetch
from penstock.embedded.java import Java, find_java

# The serial collector starts soonest and takes the least memory.
FLAGS = ("-XX:+UseSerialGC", "-XX:-UsePerfData", "-Djava.awt.headless=true")
LOGGING = Path(__file__).with_name("log4j2.properties")


@dataclass(frozen=True)
class Runtime:
    """One Java with Kafka's jars."""

    java: Java
    jars: tuple[Path, ...]
    archive: Archive

    def command(self, main: str, *flags: str, archived: bool = True) -> list[str]:
        """Give the command line that runs a class; its arguments are for the caller to add."""
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
