"""Class-data archives: Java reads its loaded classes from one file, and starts in half the time.

An archive is made once, by the first run that ends well, for one Java and one set of jars.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from penstock.config.places import cache_dir
from penstock.embedded.java import Java


@dataclass(frozen=True)
class Archive:
    """The archive of one program, made or still to be made."""

    path: Path

    @property
    def made(self) -> bool:
        """Whether runs can use it already."""
        return self.path.is_file()

    @property
    def growing(self) -> Path:
        """Where a run of this process writes it, until it is whole."""
        return self.path.with_suffix(f".{os.getpid()}.tmp")

    def flags(self) -> list[str]:
        """What to tell Java: to use the archive, or to write it when it ends."""
        if self.made:
            return [f"-XX:SharedArchiveFile={self.path}", "-Xshare:auto", "-Xlog:cds=off"]
        return [f"-XX:ArchiveClassesAtExit={self.growing}", "-Xlog:cds=off"]

    def keeping(self) -> tuple[Path, Path] | None:
        """What the guard of a run must rename when the run is over."""
        return None if self.made else (self.growing, self.path)


def archive_for(name: str, java: Java, jars: Sequence[Path], flags: Sequence[str]) -> Archive:
    """Find the archive that fits exactly this Java, these jars and these flags."""
    modules = java.home / "lib" / "modules"
    stamp = modules.stat().st_mtime_ns if modules.exists() else 0
    parts = [str(java.home), str(stamp), *(str(jar) for jar in jars), *flags]
    key = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
    folder = cache_dir() / "archives"
    folder.mkdir(exist_ok=True)
    return Archive(folder / f"{name}-{key}.jsa")
