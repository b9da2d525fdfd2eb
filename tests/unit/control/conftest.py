"""A store in a file for each test: a copy of one that was migrated once."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.control.store import ControlStore


@pytest.fixture(scope="session")
def empty_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an empty store and its keys."""
    folder = tmp_path_factory.mktemp("control")
    ControlStore.at(folder / "control.sqlite", folder / "keys").close()
    return folder


@pytest.fixture
def store(tmp_path: Path, empty_store: Path) -> Iterator[ControlStore]:
    for file in empty_store.iterdir():
        shutil.copy(file, tmp_path)
    opened = ControlStore.at(tmp_path / "control.sqlite", tmp_path / "keys")
    yield opened
    opened.close()
