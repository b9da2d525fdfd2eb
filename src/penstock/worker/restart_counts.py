"""Counts why runs of a worker were started again, until the store has the counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from threading import Lock
from weakref import WeakKeyDictionary

from penstock.control.store.restarts import Restarts
from penstock.engine.restart_reason import RestartReason
from penstock.worker.hosted_run import HostedRun


class RestartCounts:
    """Several threads add; one writes. What the store did not take is written the next time."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._waiting: Counter[tuple[str, RestartReason]] = Counter()
        self._seen: WeakKeyDictionary[HostedRun, Mapping[str, int]] = WeakKeyDictionary()

    def add(self, deployment: str, reason: RestartReason) -> None:
        """Count a restart that the worker decided."""
        with self._lock:
            self._waiting[deployment, reason] += 1

    def observe(self, deployment: str, run: HostedRun) -> None:
        """Count the restarts that the engine made since this run was observed last."""
        progress = run.progress()
        if progress is None:
            return
        with self._lock:
            before = self._seen.get(run, {})
            for reason, count in progress.restart_reasons.items():
                self._waiting[deployment, RestartReason(reason)] += count - before.get(reason, 0)
            self._seen[run] = progress.restart_reasons

    def write(self, restarts: Restarts) -> None:
        """Write what was counted since the last time."""
        with self._lock:
            counts, self._waiting = +self._waiting, Counter()
        if not counts:
            return
        try:
            restarts.add(counts)
        except BaseException:
            with self._lock:
                self._waiting += counts
            raise
