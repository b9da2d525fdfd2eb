"""A package with components of its own, installed for a test: files and entry points on the path."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from penstock.pipeline import registry

_GROUP = r'\[project\.entry-points\."([\w.]+)"\]\n((?:"[^\n]+\n)+)'
PACKAGE = Path(__file__).parents[1] / "examples" / "components"


@contextmanager
def installed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Do what pip does with the package: write its metadata, with the entry points of its project."""
    project = (PACKAGE / "pyproject.toml").read_text()
    listed = "\n".join(map(_entries, re.findall(_GROUP, project)))
    info = folder / "acme_components-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-components\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(listed)
    with monkeypatch.context() as path:
        path.syspath_prepend(folder)
        path.syspath_prepend(PACKAGE)
        _forget_components()
        yield
    _forget_components()


def _entries(group: tuple[str, str]) -> str:
    name, lines = group
    return f"[{name}]\n{lines.replace(chr(34), '')}"


def _forget_components() -> None:
    registry._entries.cache_clear()
    registry.component.cache_clear()
