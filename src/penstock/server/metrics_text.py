"""Numbers of the store in the text format of Prometheus."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from penstock.control.placement import is_alive
from penstock.control.roles import Access, Role
from penstock.control.store import ControlStore
from penstock.control.store.counters import CounterRow
from penstock.control.store.rows import RunRow

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_Sample = tuple[Mapping[str, str], float]


def metrics(store: ControlStore, access: Access) -> str:
    """Return the metrics of the deployments that the caller may see, and of the workers."""
    now = store.database.time()
    lines = _deployments(store, access, now)
    if access.allows(Role.VIEWER):
        lines += _workers(store, now)
    return "\n".join(lines) + "\n"


def _deployments(store: ControlStore, access: Access, now: float) -> list[str]:
    wanted = store.view().wanted
    labels = store.deployments.labels()
    names = {name for name in wanted if access.allows(Role.VIEWER, labels.get(name, {}))}
    runs = [run for run in store.leases.all() if run.deployment in names]
    counters = [row for row in store.counters.all() if row.deployment in names]
    lag = {name: point for name, point in store.samples.latest().items() if name in names}
    desired = [
        ({"deployment": name, "state": wanted[name].desired.value}, 1.0) for name in sorted(names)
    ]
    return [
        *_counted(counters),
        *_gauge("lag", "Records behind the ends of the partitions.",
                [({"deployment": name}, float(point.sample.lag)) for name, point in sorted(lag.items())]),
        *_gauge("seconds_since_last_batch", "Seconds since a batch was written.",
                [({"deployment": row.deployment}, max(0.0, now - row.last_batch))
                 for row in counters if row.last_batch is not None]),
        *_gauge("state", "The observed state: 1 for the current one.",
                [({"deployment": run.deployment, "state": run.state}, 1.0) for run in runs]),
        *_gauge("desired", "The desired state: 1 for the current one.", desired),
        *_runs(runs, now),
    ]  # fmt: skip


def _counted(rows: list[CounterRow]) -> list[str]:
    lines: list[str] = []
    texts = {
        "batches": "Batches that were written.",
        "records": "Records that were read.",
        "rows": "Rows that were written.",
        "failed": "Records that became dead letters.",
        "lost": "Records that were deleted before they were read.",
    }
    for name, text in texts.items():
        samples = [({"deployment": row.deployment}, float(getattr(row, name))) for row in rows]
        lines += _metric(f"penstock_deployment_{name}_total", "counter", text, samples)
    return lines


def _runs(runs: list[RunRow], now: float) -> list[str]:
    restarts = [({"deployment": run.deployment}, float(run.restarts)) for run in runs]
    held = [({"deployment": run.deployment}, float(run.is_held(now))) for run in runs]
    text = "Restarts of the current run after failures."
    return [
        *_gauge("restarts", text, restarts),
        *_gauge("held", "Whether a worker has the lease.", held),
    ]


def _workers(store: ControlStore, now: float) -> list[str]:
    rows = store.workers.all()
    texts = {
        "heartbeat_age_seconds": "Seconds since the last heartbeat.",
        "load": "The load that the worker reports.",
        "draining": "Whether the worker is being drained.",
        "alive": "Whether the worker is heard of.",
    }
    lines: list[str] = []
    for name, text in texts.items():
        samples: list[_Sample] = []
        for row in rows:
            values = {
                "heartbeat_age_seconds": max(0.0, now - row.seen),
                "load": row.load,
                "draining": float(row.draining),
                "alive": float(is_alive(row, now)),
            }
            samples.append(({"worker": row.id, "host": row.host}, values[name]))
        lines += _metric(f"penstock_worker_{name}", "gauge", text, samples)
    return lines


def _gauge(name: str, text: str, samples: Iterable[_Sample]) -> list[str]:
    return _metric(f"penstock_deployment_{name}", "gauge", text, samples)


def _metric(name: str, kind: str, text: str, samples: Iterable[_Sample]) -> list[str]:
    lines = [f"# HELP {name} {text}", f"# TYPE {name} {kind}"]
    return lines + [f"{name}{{{_labels(labels)}}} {value!r}" for labels, value in samples]


def _labels(labels: Mapping[str, str]) -> str:
    r"""Return labels in which no value can end its quotes.

    >>> _labels({"deployment": 'a"b\\c'})
    'deployment="a\\"b\\\\c"'
    """
    return ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items())


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
