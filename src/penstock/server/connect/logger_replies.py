"""Loggers of the server: their levels, and changes of them, under the names of Connect's levels."""

from __future__ import annotations

import logging
import time
from threading import Lock
from typing import Any

from penstock.server.connect.connect_errors import ConnectError

ROOT = "root"
LEVELS = {
    "TRACE": logging.DEBUG - 5,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
    "OFF": logging.CRITICAL + 10,
}
_NAMES = {level: name for name, level in LEVELS.items()}


class Loggers:
    """The loggers of this process. Levels are those of the process: a restart forgets them."""

    def __init__(self) -> None:
        self._changed: dict[str, int] = {}
        self._lock = Lock()

    def all(self) -> dict[str, Any]:
        """Return every logger that has a level."""
        return {name: self._shown(name) for name in sorted(_named()) if _has_level(name)}

    def one(self, name: str) -> dict[str, Any]:
        """Return the level of a logger."""
        if name != ROOT and name not in _named():
            raise ConnectError(404, f"Logger {name} not found.")
        return self._shown(name)

    def set(self, name: str, given: Any) -> list[str]:
        """Set a level; return the loggers whose level changed: of the named one and those below it."""
        if not isinstance(given, dict):
            raise ConnectError(400, "the body is not a JSON object with 'level'")
        level = given.get("level")
        if level is None:
            raise ConnectError(400, "Desired 'level' parameter was not specified in request.")
        wanted = LEVELS.get(str(level).upper())
        if wanted is None:
            shown = str(level).lower() if isinstance(level, bool) else str(level)
            raise ConnectError(404, f"invalid log level '{shown[:100]}'.")
        below = [each for each in _named() if name == ROOT or each.startswith(f"{name}.")]
        with self._lock:
            changed = sorted(each for each in {name, *below} if _effective(each) != wanted)
            for each in changed:
                _logger(each).setLevel(wanted)
                self._changed[each] = int(time.time() * 1000)
        return changed

    def _shown(self, name: str) -> dict[str, Any]:
        level = _logger(name).getEffectiveLevel()
        known = max((each for each in _NAMES if each <= level), default=logging.DEBUG)
        return {"level": _NAMES[known], "last_modified": self._changed.get(name)}


def _named() -> set[str]:
    return {
        name
        for name, each in logging.root.manager.loggerDict.items()
        if isinstance(each, logging.Logger)
    } | {ROOT}


def _has_level(name: str) -> bool:
    return name == ROOT or _logger(name).level != logging.NOTSET


def _effective(name: str) -> int:
    return _logger(name).getEffectiveLevel()


def _logger(name: str) -> logging.Logger:
    return logging.getLogger() if name == ROOT else logging.getLogger(name)
