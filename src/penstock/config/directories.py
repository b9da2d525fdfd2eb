"""Where Penstock stores its files on this machine: four directories, all movable with one variable."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from platformdirs import PlatformDirs

from penstock.errors import SetupError

# Records, passwords of embedded brokers, definitions of jobs; downloads are not secret.
_HOLDS_SECRETS = ("data", "log", "config")
_PRIVATE = 0o700
_DIRS = PlatformDirs("penstock", appauthor=False)


def place(kind: str) -> Path:
    """Return the path of `kind` (cache, data, log, config), without creating it."""
    if home := os.environ.get("PENSTOCK_HOME"):
        return Path(home).expanduser().absolute() / kind
    path: Path = getattr(_DIRS, f"user_{kind}_path")
    return path


def cache_dir() -> Path:
    """Return the directory for files that can be downloaded or built again: jars, archives."""
    return _made("cache")


def data_dir() -> Path:
    """Return the directory for persistent files: broker data, the embedded connection."""
    return _made("data")


def log_dir() -> Path:
    """Return the directory for the logs of Penstock and of the programs it starts."""
    return _made("log")


def config_dir() -> Path:
    """Return the directory for the user's own `penstock.yaml`."""
    return _made("config")


def make_private(path: Path) -> Path:
    """Create a folder that only its owner may enter; close an existing one of ours to others."""
    create_private(path)
    status = path.stat()
    if status.st_uid == os.geteuid() and stat.S_IMODE(status.st_mode) & ~_PRIVATE:
        path.chmod(_PRIVATE)
    return path


def create_private(path: Path) -> None:
    """Create a folder and its missing parents, accessible only to their owner."""
    # `Path.mkdir(mode, parents=True)` gives the mode to the last one only.
    for each in (*reversed(path.parents), path):
        if not each.is_dir():
            each.mkdir(mode=_PRIVATE, exist_ok=True)


def _made(kind: str) -> Path:
    path = place(kind)
    try:
        if kind in _HOLDS_SECRETS:
            return make_private(path)
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SetupError(
            f"cannot make the {kind} directory {path}: {error.strerror}; "
            "set PENSTOCK_HOME to a directory that you may write"
        ) from error
    return path
