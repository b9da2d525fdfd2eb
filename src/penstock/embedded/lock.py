"""Reads jars.lock: which files make up each embedded system, and the checksum each must have."""

from __future__ import annotations

import re
from collections.abc import Iterable
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
        """How the file is called, in a repository and in the cache."""
        classifier = f"-{self.classifier}" if self.classifier else ""
        return f"{self.name}-{self.version}{classifier}.{self.extension}"

    @property
    def repository_path(self) -> str:
        """Where a Maven repository keeps the file, below its base address."""
        return "/".join(
            [*self.organisation.split("."), self.name, self.version, self.file_name],
        )

    @property
    def coordinates(self) -> str:
        """The name in one word, as the lock file writes it."""
        classifier = f":{self.classifier}" if self.classifier else ""
        extension = f"@{self.extension}" if self.extension != "jar" else ""
        return f"{self.organisation}:{self.name}:{self.version}{classifier}{extension}"

    def line(self) -> str:
        """The artifact as a line of the lock file."""
        return f"{self.group} {self.coordinates} {self.size} {self.sha256}"


def parse(text: str) -> list[Artifact]:
    """Read a lock file's text.

    >>> parse("tools org.x:y:1.0 12 " + "0" * 64)[0].file_name
    'y-1.0.jar'
    """
    numbered = enumerate(text.splitlines(), start=1)
    return [
        _artifact(line, number)
        for number, line in numbered
        if line.strip() and not line.startswith("#")
    ]


def _artifact(line: str, number: int) -> Artifact:
    found = LINE.fullmatch(line.strip())
    if not found:
        raise ConfigError(
            f"jars.lock line {number} is {line!r}; it must be {HEADER[2:]!r}: "
            "make the file again with scripts/lock-jars"
        )
    group, organisation, name, version, classifier, extension, size, sha256 = found.groups()
    return Artifact(
        group,
        organisation,
        name,
        version,
        classifier or "",
        extension or "jar",
        int(size),
        sha256,
    )


@lru_cache
def locked() -> tuple[Artifact, ...]:
    """Everything that the package's own jars.lock pins."""
    text = (files("penstock.embedded") / "jars.lock").read_text(encoding="utf-8")
    return tuple(parse(text))


def artifacts_of(group: str) -> list[Artifact]:
    """The files of one group, in the order of the lock file."""
    found = [artifact for artifact in locked() if artifact.group == group]
    if not found:
        raise ConfigError(
            f"There is no group of jars {group!r}: {nearest(group, groups(locked()))}"
        )
    return found


def groups(artifacts: Iterable[Artifact]) -> list[str]:
    """The names of the groups, each once."""
    return list(dict.fromkeys(artifact.group for artifact in artifacts))
