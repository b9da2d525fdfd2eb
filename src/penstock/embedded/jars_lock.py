"""Reads jars.lock: which files make up each embedded system, and the checksum each must have."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

from penstock.errors import ConfigError, nearest

HEADER = "# group  organisation:name:version[:classifier][@type]  bytes  sha256"
_WORD = r"([^:@\s]+)"
LINE = re.compile(
    rf"(\S+)\s+{_WORD}:{_WORD}:{_WORD}(?::{_WORD})?(?:@{_WORD})?\s+(\d+)\s+([0-9a-f]{{64}})"
)


@dataclass(frozen=True)
class Artifact:
    """One file of a Maven repository, pinned."""

    group: str
    organisation: str
    name: str
    version: str
    classifier: str
    extension: str
    size: int
    sha256: str

    @property
    def file_name(self) -> str:
        """Return how the file is called, in a repository and in the cache."""
        classifier = f"-{self.classifier}" if self.classifier else ""
        return f"{self.name}-{self.version}{classifier}.{self.extension}"

    @property
    def repository_path(self) -> str:
        """Return where a Maven repository keeps the file, below its base address."""
        folder = self.organisation.replace(".", "/")
        return f"{folder}/{self.name}/{self.version}/{self.file_name}"

    @property
    def coordinates(self) -> str:
        """Return the name in one word, as the lock file writes it."""
        classifier = f":{self.classifier}" if self.classifier else ""
        extension = f"@{self.extension}" if self.extension != "jar" else ""
        return f"{self.organisation}:{self.name}:{self.version}{classifier}{extension}"

    def line(self) -> str:
        """Return the artifact as a line of the lock file."""
        return f"{self.group} {self.coordinates} {self.size} {self.sha256}"


def parse(text: str) -> list[Artifact]:
    """Read a lock file's text."""
    artifacts = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        match = LINE.fullmatch(line.strip())
        if not match:
            raise ConfigError(
                f"jars.lock line {number} is {line!r}; it must be {HEADER[2:]!r}: "
                "make the file again with scripts/lock-jars"
            )
        group, organisation, name, version, classifier, extension, size, sha256 = match.groups()
        names = (group, organisation, name, version, classifier or "", extension or "jar")
        artifacts.append(Artifact(*names, int(size), sha256))
    return artifacts


@lru_cache
def locked() -> tuple[Artifact, ...]:
    """Return everything that the package's own jars.lock pins."""
    text = (files("penstock.embedded") / "jars.lock").read_text(encoding="utf-8")
    return tuple(parse(text))


def artifacts_of(group: str) -> list[Artifact]:
    """Return the files of one group, in the order of the lock file."""
    artifacts = [artifact for artifact in locked() if artifact.group == group]
    if not artifacts:
        raise ConfigError(f"There is no group of jars {group!r}: {nearest(group, groups())}")
    return artifacts


def groups() -> list[str]:
    """Return the names of the groups, each once."""
    return list(dict.fromkeys(artifact.group for artifact in locked()))
