"""Fetches the jars of the embedded systems once, into a per-user cache, and checks each one.

Files reach their place only after their checksum was right, so what is in the cache can be trusted.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from penstock.config.directories import cache_dir
from penstock.embedded import download, ivy
from penstock.embedded.jars_lock import Artifact, artifacts_of
from penstock.errors import SetupError

# What a Spark session has on its class path, beyond Spark's own.
SPARK_GROUPS = ("spark-kafka", "local-files", "delta", "iceberg")

Progress = Callable[[str, int, int], None]
"""Called with the group, the bytes that are here and the bytes in all."""


def fetch(group: str, progress: Progress | None = None) -> list[Path]:
    """Return the files of a group, in the order of jars.lock, after fetching what is missing.

    Groups: those of SPARK_GROUPS for a Spark session; `broker`, `tools` (on top of `broker`) and
    `registry`.
    """
    return fetch_artifacts(group, artifacts_of(group), progress)


def fetch_artifacts(
    group: str, artifacts: Sequence[Artifact], progress: Progress | None = None
) -> list[Path]:
    """Return the files of any pinned list; `group` is what progress and errors call them."""
    if missing(artifacts):
        with _alone():
            # Another process may have fetched them while this one waited.
            if wanted := missing(artifacts):
                _fetch(group, wanted, progress)
    return [place_of(artifact) for artifact in artifacts]


def place_of(artifact: Artifact) -> Path:
    """Return the path of an artifact in the cache, whether it exists or not."""
    return cache_dir() / "jars" / artifact.file_name


def missing(artifacts: Sequence[Artifact]) -> list[Artifact]:
    """Return those artifacts that are not in the cache."""
    return [artifact for artifact in artifacts if not place_of(artifact).is_file()]


@contextmanager
def _alone() -> Iterator[None]:
    folder = cache_dir() / "jars"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _fetch(group: str, wanted: list[Artifact], progress: Progress | None) -> None:
    staging = cache_dir() / "jars" / ".staging"
    # Half a file of an interrupted run is worth nothing: begin again.
    shutil.rmtree(staging, ignore_errors=True)
    staging.mkdir()
    try:
        _obtain(group, wanted, staging, progress)
        for artifact in wanted:
            accept(artifact, staging / artifact.file_name)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _obtain(group: str, wanted: list[Artifact], staging: Path, progress: Progress | None) -> None:
    total = sum(artifact.size for artifact in wanted)

    def report(done: int) -> None:
        if progress:
            progress(group, min(done, total), total)

    mirror = os.environ.get("PENSTOCK_MAVEN_URL")
    if ivy_jar := ivy.find_ivy():
        ivy.retrieve(ivy_jar, wanted, staging, mirror, report)
    elif mirror:
        download.retrieve(mirror, wanted, staging, report)
    else:
        raise SetupError(
            f"The jars of {group!r} are not in {cache_dir() / 'jars'} and there is no way to fetch them. "
            "Either install PySpark, which brings a downloader (pip install 'penstock[spark]'), or set "
            "PENSTOCK_MAVEN_URL to the base address of a Maven repository."
        )


def accept(artifact: Artifact, staged: Path) -> None:
    """Move a staged file into the cache when its checksum is right; remove and refuse it when not."""
    if not staged.is_file():
        raise SetupError(f"{artifact.coordinates} was not fetched: {staged} is missing; try again")
    if (actual := sha256_of(staged)) != artifact.sha256:
        size = staged.stat().st_size
        staged.unlink()
        raise SetupError(
            f"{artifact.coordinates} was refused and removed: its sha256 is {actual} ({size} bytes), "
            f"expected {artifact.sha256} ({artifact.size} bytes). Try again; if it stays, the "
            "repository or mirror (PENSTOCK_MAVEN_URL) serves another file."
        )
    staged.replace(place_of(artifact))


def sha256_of(path: Path) -> str:
    """Return the checksum of a file in hexadecimal."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()
