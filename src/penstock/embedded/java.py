"""Detection of a Java that can run Kafka and Spark, so that users need not configure it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from penstock.errors import SetupError

OLDEST = 17
JVM_ROOT = Path("/usr/lib/jvm")
HOW_TO_GET = (
    f"Install Java {OLDEST} or newer: on Debian or Ubuntu run 'apt-get install "
    f"openjdk-{OLDEST}-jre-headless' as root; elsewhere install a JDK and set JAVA_HOME to its folder."
)


@dataclass(frozen=True)
class Java:
    """One Java: its program and its major version."""

    path: Path
    version: int

    @property
    def home(self) -> Path:
        """Return the folder that JAVA_HOME would name."""
        return self.path.resolve().parent.parent


def find_java() -> Java:
    """Return the first Java that is new enough, from JAVA_HOME, PATH and the system's folder."""
    seen: list[str] = []
    for path in _candidates():
        version = _release_of(path) or (_asked(path) if path.is_file() else None)
        if version is not None and version >= OLDEST:
            return Java(path, version)
        seen.append(f"{path} ({f'Java {version}' if version else 'does not run'})")
    if not seen:
        raise SetupError(
            f"No Java was found in JAVA_HOME, on PATH or in /usr/lib/jvm. {HOW_TO_GET}"
        )
    raise SetupError(
        f"No Java of version {OLDEST} or newer was found; looked at: {', '.join(seen)}. {HOW_TO_GET}"
    )


def _candidates() -> Iterator[Path]:
    if home := os.environ.get("JAVA_HOME"):
        yield Path(home) / "bin" / "java"
    if on_path := shutil.which("java"):
        yield Path(on_path)
    # Long-term releases first: Spark and the schema registry are tested on 17.
    names = sorted(JVM_ROOT.glob("*/bin/java"), key=lambda path: path.parent.parent.name)
    yield from sorted(names, key=lambda path: str(OLDEST) not in path.parent.parent.name)


def _release_of(path: Path) -> int | None:
    # The `release` file next to bin/ has the version; starting a JVM for it would cost 50 ms.
    release = path.resolve().parent.parent / "release"
    if not (path.is_file() and os.access(path, os.X_OK) and release.is_file()):
        return None
    return _major(release.read_text(encoding="utf-8", errors="replace"), r'JAVA_VERSION="([\d.]+)')


@lru_cache
def _asked(path: Path) -> int | None:
    try:
        answer = subprocess.run(
            [path, "-version"], capture_output=True, text=True, timeout=20, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return _major(answer.stderr + answer.stdout, r'version "([\d.]+)')


def _major(text: str, pattern: str) -> int | None:
    match = re.search(pattern, text)
    if not match:
        return None
    # Until version 8 Java called itself 1.8.
    parts = match.group(1).split(".")
    return int(parts[1]) if parts[0] == "1" and len(parts) > 1 else int(parts[0])
