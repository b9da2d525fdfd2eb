"""Numbers of the store in the text format of Prometheus: /metrics."""

from __future__ import annotations

from collections.abc import Iterable

from penstock.control.roles import Access, Role
from penstock.control.store import ControlStore
from penstock.control.store.counters import CounterRow
from penstock.control.store.durations import BOUNDS
from penstock.control.store.rows import RunRow
from penstock.engine.restart_reason import RestartReason
from penstock.server.prometheus_text import Sample, family, histogram
from penstock.server.worker_metrics import worker_metrics

_COUNTERS = {
    "batches": "Batches that were written.",
    "records": "Records that were read.",
    "rows": "Rows that were written.",
    "failed": "Records that became dead letters.",
    "lost": "Records that were deleted before they were read.",
}


def metrics(store: ControlStore, access: Access) -> str:
    """Return the metrics of the deployments that the caller may see, and of the workers."""
    now = store.database.time()
    lines = _deployments(store, access, now)
    if access.allows(Role.VIEWER):
        lines += worker_metrics(store.workers.all(), now)
    return "\n".join(lines) + "\n"


def _deployments(store: ControlStore, access: Access, now: float) -> list[str]:
    wanted = store.view().wanted
    labels = store.deployments.labels()
    names = {name for name in wanted if access.allows(Role.VIEWER, labels.get(name, {}))}
    runs = [run for run in store.leases.all() if run.deployment in names]
    counters = [row for row in store.counters.all() if row.deployment in names]
    desired = [
        ({"deployment": name, "state": wanted[name].desired.value}, 1.0) for name in sorted(names)
    ]
    return [
        *_counted(counters),
        *_durations(store, names),
        *_lag(store, names),
        *_gauge("seconds_since_last_batch", "Seconds since a batch was written.",
                [({"deployment": row.deployment}, max(0.0, now - row.last_batch))
                 for row in counters if row.last_batch is not None]),
        *_gauge("state", "The observed state: 1 for the current one.",
                [({"deployment": run.deployment, "state": run.state}, 1.0) for run in runs]),
        *_gauge("desired", "The desired state: 1 for the current one.", desired),
        *_runs(runs, now),
        *_restarts(store, names),
    ]  # fmt: skip


def _counted(rows: list[CounterRow]) -> list[str]:
    lines: list[str] = []
    for name, text in _COUNTERS.items():
        samples = [({"deployment": row.deployment}, float(getattr(row, name))) for row in rows]
        lines += family(f"penstock_deployment_{name}_total", "counter", text, samples)
    return lines


def _durations(store: ControlStore, names: set[str]) -> list[str]:
    durations = sorted(each for each in store.counters.durations().items() if each[0] in names)
    values = [({"deployment": name}, each.cumulative(), each.seconds) for name, each in durations]
    text = "How long batches took, in seconds."
    return histogram("penstock_deployment_batch_duration_seconds", text, BOUNDS, values)


def _lag(store: ControlStore, names: set[str]) -> list[str]:
    latest = sorted(store.samples.latest().items())
    total = [({"deployment": name}, float(at.sample.lag)) for name, at in latest if name in names]
    lags = sorted(each for each in store.partition_lag.all().items() if each[0] in names)
    each = [
        ({"deployment": name, "topic": topic, "partition": partition}, float(value))
        for name, lag in lags
        for (topic, partition), value in lag.items()
    ]
    text = (
        "Records behind the end of a partition; 'others' is the sum of those after the first 1,000."
    )
    return [
        *_gauge("lag", "Records behind the ends of the partitions.", total),
        *_gauge("partition_lag", text, each),
    ]


def _runs(runs: list[RunRow], now: float) -> list[str]:
    restarts = [({"deployment": run.deployment}, float(run.restarts)) for run in runs]
    held = [({"deployment": run.deployment}, float(run.is_held(now))) for run in runs]
    text = "Restarts of the current run after failures."
    return [
        *_gauge("restarts", text, restarts),
        *_gauge("held", "Whether a worker has the lease.", held),
    ]


def _restarts(store: ControlStore, names: set[str]) -> list[str]:
    counts = store.restarts.all()
    # A counter that begins with 1 would be missed: rates need the 0 before.
    samples: list[Sample] = [
        ({"deployment": name, "reason": reason.value}, float(counts.get((name, reason), 0)))
        for name in sorted(names)
        for reason in RestartReason
    ]
    text = "Starts of a run after its first one, by reason."
    return family("penstock_deployment_restarts_total", "counter", text, samples)


def _gauge(name: str, text: str, samples: Iterable[Sample]) -> list[str]:
    return family(f"penstock_deployment_{name}", "gauge", text, samples)
