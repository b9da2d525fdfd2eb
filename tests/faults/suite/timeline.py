"""What the workers' logs say about the time between an event and the moment in which all runs again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

# The phases of a start, and what makes it wait; the fields that say how long their parts took.
_STEPS = {
    "lease_lost": (),
    "run_begins": (),
    "run_starts": (),
    "run_waits": (),
    "pipeline_waits": ("seconds",),
    "query_launched": ("preflight", "claiming", "launching"),
    "batch_failed": (),
    "first_batch_done": ("seconds",),
}
# Of a worker itself.
_WORKER = {
    "worker_gone": (),
    "java_started": ("seconds",),
    "spark_started": ("seconds",),
    "store_away": (),
    "store_back": (),
}


class Timeline:
    """Reads the logs of workers in one folder, each line once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[Path, int] = {}

    def slowest(self, origin: float, before: float) -> str:
        """Return the steps of the deployment that ran last, and of the workers.

        A number is in seconds since `origin`, a time of the system's clock; steps from `before` seconds
        earlier on are shown.
        """
        lines = sorted(self._lines(), key=lambda line: line[0])
        lines = [line for line in lines if line[0] >= origin - before]
        done = [line for _, _, line in lines if line["event"] == "first_batch_done"]
        if not done:
            return "no deployment was started"
        last = done[-1]["deployment"]
        own = [
            _step(at - origin, worker, line, _STEPS)
            for at, worker, line in lines
            if line.get("deployment") == last and line["event"] in _STEPS
        ]
        workers = [
            _step(at - origin, worker, line, _WORKER)
            for at, worker, line in lines
            if line["event"] in _WORKER
        ]
        return f"{last}: {', '.join(own)}; workers: {', '.join(workers) or 'nothing'}"

    def _lines(self) -> Iterator[tuple[float, str, dict[str, Any]]]:
        for log in self._folder.glob("worker-*.log"):
            with log.open("rb") as file:
                file.seek(self._read.get(log, 0))
                for line in file:
                    if not line.endswith(b"\n"):
                        break
                    self._read[log] = self._read.get(log, 0) + len(line)
                    if line.startswith(b"{") and (found := json.loads(line)).get("event"):
                        at = datetime.fromisoformat(found["timestamp"].replace("Z", "+00:00"))
                        yield at.timestamp(), log.stem.removeprefix("worker-"), found


def _step(at: float, worker: str, line: dict[str, Any], known: dict[str, tuple[str, ...]]) -> str:
    fields = [f"{name} {line[name]:.1f}" for name in known[line["event"]] if name in line]
    return f"{line['event']} {at:.1f} @{worker}" + (f" ({', '.join(fields)})" if fields else "")
