"""What a worker writes about its runs: changes of state with events, and numbers every ten seconds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.config.logs import event_logger
from penstock.control.liveness import clock
from penstock.control.store import ControlStore
from penstock.control.store.samples import Sample
from penstock.worker.hosted_run import HostedRun, Observed
from penstock.worker.restart_counts import RestartCounts
from penstock.worker.usage import UsageMeter

log = event_logger(__name__)
_SAMPLES_EVERY = 10.0
# A worker that was not heard of for this long is forgotten, by one that reported without an
# interruption for a minute: after an outage of the store the others have sent a heartbeat by then.
_GONE, _STEADY, _INTERRUPTED = 900.0, 60.0, 30.0
_Reported = tuple[int, int, int, Observed]


@dataclass
class Reporting:
    """Reports the runs of one worker; what has not changed is not written."""

    store: ControlStore
    worker: str
    _last: dict[str, _Reported] = field(default_factory=dict)
    _sampled: float = 0.0
    _reported: float = 0.0
    _steady: float = 0.0
    restarts: RestartCounts = field(default_factory=RestartCounts)
    _usage: UsageMeter = field(default_factory=UsageMeter)

    def report(self, runs: Mapping[str, HostedRun]) -> None:
        """Write what has changed since the last report."""
        for name, run in runs.items():
            if not run.is_over:
                self._changed(name, run)
                self.restarts.observe(name, run)
        self.restarts.write(self.store.restarts)
        if clock() - self._sampled >= _SAMPLES_EVERY:
            self._sampled = clock()
            self._sample(runs)
            self._forget_workers()

    def _forget_workers(self) -> None:
        now = clock()
        if now - self._reported > _INTERRUPTED:
            self._steady = now
        self._reported = now
        if now - self._steady >= _STEADY:
            self._steady = now
            for gone in self.store.workers.forget_silent(_GONE):
                log.info("worker_forgotten", worker=gone)

    def ended(self, name: str, state: str, error: str | None) -> None:
        """Write an event about the end of a run."""
        self._last.pop(name, None)
        self._note(name, state, error)

    def forget(self, name: str) -> None:
        """Forget a deployment that was removed."""
        self._last.pop(name, None)

    def _changed(self, name: str, run: HostedRun) -> None:
        seen, own = run.observed(), run.local
        now = own.token, own.generation, own.round, seen
        before = self._last.get(name)
        if before == now:
            return
        is_held = self.store.leases.report(
            name, self.worker, own.token, seen.state, error=seen.error, generation=own.generation,
            round=own.round, restarts=seen.restarts,
        )  # fmt: skip
        if not is_held:
            return
        if before is None or (before[3].state, before[3].error) != (seen.state, seen.error):
            self._note(name, seen.state, seen.error)
        self._last[name] = now

    def _note(self, name: str, state: str, error: str | None) -> None:
        text = f"{state} on {self.worker}" + (f": {error}" if error else "")
        self.store.events.add(name, state.lower(), text)

    def _sample(self, runs: Mapping[str, HostedRun]) -> None:
        """Store the totals of the counters, which are exact, the lag that runs see, and the usage."""
        totals = {row.deployment: row for row in self.store.counters.all(list(runs))}
        samples, lags = {}, {}
        for name, run in runs.items():
            progress, row = run.progress(), totals.get(name)
            if progress is not None and not run.is_over:
                lags[name] = progress.lag
            if progress is not None and row is not None:
                samples[name] = Sample(
                    row.batches, row.records, row.rows, row.failed, row.lost, progress.total_lag
                )
        self.store.samples.add(samples)
        self.store.partition_lag.put(self.worker, lags)
        self.store.workers.measured(self.worker, self._usage.measure(queries=len(lags)))
