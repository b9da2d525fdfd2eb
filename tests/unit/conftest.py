from __future__ import annotations

import itertools
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from penstock.control.store import ControlStore


@pytest.fixture(scope="session")
def empty_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an empty store and its keys, which was migrated once."""
    folder = tmp_path_factory.mktemp("control")
    ControlStore.at(folder / "control.sqlite", folder / "keys").close()
    return folder


@pytest.fixture
def control_store(tmp_path: Path, empty_store: Path) -> Iterator[ControlStore]:
    """A store in a file for each test: a copy of the empty one."""
    for file in empty_store.iterdir():
        shutil.copy(file, tmp_path)
    opened = ControlStore.at(tmp_path / "control.sqlite", tmp_path / "keys")
    yield opened
    opened.close()


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system with no room: no byte can be written, and no file made but in place of `spare`."""
    place = tmp_path / "disk"
    place.mkdir()
    options = ["-t", "tmpfs", "-o", "size=16k,nr_inodes=8", "tmpfs", str(place)]
    if subprocess.run(["mount", *options], capture_output=True, check=False).returncode:
        pytest.skip("only root can mount a small file system")
    try:
        (place / "spare").touch()
        with suppress(OSError), (place / "filler").open("wb", buffering=0) as filler:
            while filler.write(bytes(4096)):
                pass
        with suppress(OSError):
            for number in itertools.count():
                (place / f"empty-{number}").touch()
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)
