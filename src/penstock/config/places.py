"""Where Penstock keeps its files on this machine: four directories, all movable by one variable."""

from __future__ import annotations

import os
from pathlib import Path

from platformdirs import PlatformDirs

from penstock.errors import SetupError

_DIRS = PlatformDirs("penstock", appauthor=False)


def place(kind: str) -> Path:
    """Say where `kind` (cache, data, log, config) lives, without making it."""
    if home := os.environ.get("PENSTOCK_HOME"):
        return Path(home).expanduser().absolute() / kind
    return {
        "cache": _DIRS.user_cache_path,
        "data": _DIRS.user_data_path,
        "log": _DIRS.user_log_path,
        "config": _DIRS.user_config_path,
    }[kind]


def cache_dir() -> Path:
    """Give the directory for what can be fetched again: jars, archives."""
    return _made("cache")


def data_dir() -> Path:
    """Give the directory for what must last: broker data, the embedded connection."""
    return _made("data")


def log_dir() -> Path:
    """Give the directory for the logs of Penstock and of the programs it starts."""
    return _made("log")


def config_dir() -> Path:
    """Give the directory for the user's own `penstock.yaml`."""
    return _made("config")


def _made(kind: str) -> Path:
    path = place(kind)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SetupError(
            f"cannot make the {kind} directory {path}: {error.strerror}; "
            "set PENSTOCK_HOME to a directory that you may write"
        ) from error
    return path
