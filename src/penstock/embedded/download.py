"""Fetches from a Maven repository by plain HTTPS, for installations without PySpark."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from urllib.error import URLError
from urllib.request import Request, urlopen

from penstock.embedded.jars_lock import Artifact
from penstock.errors import ConfigError, SetupError

Report = Callable[[int], None]
AT_ONCE = 4
TIMEOUT = 60.0


def retrieve(base_url: str, wanted: Sequence[Artifact], folder: Path, report: Report) -> None:
    """Fetch all of `wanted` into `folder`, a few at a time."""
    if not base_url.startswith(("https://", "http://")):
        raise ConfigError(
            f"PENSTOCK_MAVEN_URL is {base_url!r}; it must be the https:// (or http://) base address "
            "of a Maven repository"
        )
    done, lock = 0, Lock()

    def count(size: int) -> None:
        nonlocal done
        with lock:
            done += size
            report(done)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(lambda artifact: _one(base_url, artifact, folder, count), wanted))


def _one(base_url: str, artifact: Artifact, folder: Path, count: Report) -> None:
    url = f"{base_url.rstrip('/')}/{artifact.repository_path}"
    try:
        with (
            urlopen(Request(url), timeout=TIMEOUT) as answer,  # noqa: S310 - checked above
            (folder / artifact.file_name).open("wb") as file,
        ):
            while chunk := answer.read(1 << 18):
                file.write(chunk)
                count(len(chunk))
    except (URLError, OSError) as error:
        raise SetupError(
            f"{artifact.coordinates} could not be fetched from {url}: {error}. Check PENSTOCK_MAVEN_URL "
            "and the network, then try again."
        ) from error
