"""The peers' jars, pinned in bench/jars.lock (made by `scripts/lock-jars bench`), in Penstock's cache."""

from __future__ import annotations

from pathlib import Path

from penstock.embedded.jars import fetch_artifacts
from penstock.embedded.jars_lock import parse

LOCK = Path(__file__).parents[1] / "jars.lock"


def fetch(group: str) -> list[Path]:
    artifacts = [one for one in parse(LOCK.read_text(encoding="utf-8")) if one.group == group]
    return fetch_artifacts(group, artifacts)
