"""Deployments as rows of a table."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

_SHORT = 60


def row_of(deployment: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a list shows of a deployment."""
    run, counters = deployment["run"], deployment["counters"]
    return {
        "name": deployment["name"],
        "state": state_of(deployment),
        "generation": generation_of(deployment),
        "worker": run["worker"] if run["held"] else None,
        "rows": counters["rows"],
        "failed": counters["failed"],
        "restarts": run["restarts"],
        "labels": ",".join(f"{key}={value}" for key, value in deployment["labels"].items()),
        "error": short(run["error"]),
    }


def state_of(deployment: Mapping[str, Any]) -> str:
    """Return the observed state, and the desired one where that is still to come.

    >>> state_of({"desired": "paused", "run": {"state": "RUNNING"}})
    'RUNNING (to be paused)'
    >>> state_of({"desired": "running", "run": {"state": "RUNNING"}})
    'RUNNING'
    """
    state, desired = str(deployment["run"]["state"]), deployment["desired"]
    if desired == "running" or state.lower() == desired:
        return state
    return f"{state} (to be {desired})"


def generation_of(deployment: Mapping[str, Any]) -> str:
    """Return the generation; with that of the run where it is an older one.

    >>> generation_of({"generation": 3, "run": {"generation": 2}})
    '3 (running: 2)'
    """
    wanted, running = deployment["generation"], deployment["run"]["generation"]
    return str(wanted) if running in (0, wanted) else f"{wanted} (running: {running})"


def short(text: str | None) -> str | None:
    """Return the first line of a text, not too long for a column."""
    if not text:
        return None
    line = text.strip().splitlines()[0] if text.strip() else ""
    return line if len(line) <= _SHORT else line[: _SHORT - 3] + "..."


def moment(seconds: float | None) -> str:
    """Return a time of the server in the clock of this machine."""
    if not seconds:
        return ""
    return datetime.fromtimestamp(seconds).astimezone().strftime("%Y-%m-%d %H:%M:%S")
