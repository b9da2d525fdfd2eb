"""A private folder for what Spark writes aside: shuffles, broadcasts, shipped files, its warehouse.

It is on the disk for temporary files, belongs to one process, and goes with it. What a killed process
left is removed by the next.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import tempfile
from pathlib import Path
from typing import IO

_LOCK = "lock"


class Scratch:
    """A folder for this process alone, until `remove`."""

    def __init__(self) -> None:
        root = _root()
        with (root / _LOCK).open("w") as turn:
            fcntl.flock(turn, fcntl.LOCK_EX)
            _remove_abandoned(root)
            self.path = Path(tempfile.mkdtemp(prefix="spark-", dir=root))
            self._lock: IO[str] = (self.path / _LOCK).open("w")
            fcntl.flock(self._lock, fcntl.LOCK_EX)

    def remove(self) -> None:
        """Remove the folder with everything in it."""
        shutil.rmtree(self.path, ignore_errors=True)
        self._lock.close()


def _root() -> Path:
    """Return a folder of this user's, under a name that the next process finds again."""
    root = Path(tempfile.gettempdir()) / f"penstock-{os.geteuid()}"
    try:
        root.mkdir(mode=0o700)
    except FileExistsError:
        status = root.lstat()
        # Another user may have made it first, in a folder that all may write.
        ours = stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()
        if not ours or stat.S_IMODE(status.st_mode) & 0o077:
            return Path(tempfile.mkdtemp(prefix="penstock-"))
    return root


def _remove_abandoned(root: Path) -> None:
    for folder in root.glob("spark-*"):
        try:
            with (folder / _LOCK).open("r+") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
        except OSError:
            continue  # in use
