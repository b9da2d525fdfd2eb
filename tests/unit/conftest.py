from __future__ import annotations

import itertools
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest


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
