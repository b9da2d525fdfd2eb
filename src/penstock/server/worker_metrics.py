"""The metrics of workers, which callers see who may see everything."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from penstock.control.placement import is_alive
from penstock.control.store.rows import WorkerRow
from penstock.server.prometheus_text import Sample, family

_Value = Callable[[WorkerRow, float], float | None]
_METRICS: list[tuple[str, str, str, _Value]] = [
    ("heartbeat_age_seconds", "gauge", "Seconds since the last heartbeat.",
     lambda row, now: max(0.0, now - row.seen)),
    ("age_seconds", "gauge", "Seconds since the worker started.",
     lambda row, now: max(0.0, now - row.started)),
    ("load", "gauge", "The load of its machine: 1 if all cores are busy.", lambda row, _: row.load),
    ("draining", "gauge", "Whether the worker is being drained.", lambda row, _: row.draining),
    ("alive", "gauge", "Whether the worker is heard of.", is_alive),
    ("lease_renewals_total", "counter", "Renewals of leases.", lambda row, _: row.renewals),
    ("running_queries", "gauge", "Deployments that run in it.", lambda row, _: row.queries),
    ("cpu_seconds_total", "counter", "Processor time of the worker, its Java and their children.",
     lambda row, _: row.cpu_seconds),
    ("resident_memory_bytes", "gauge", "Resident memory of the same; shared pages count in each.",
     lambda row, _: row.memory),
    ("heap_used_bytes", "gauge", "Used heap of its Java process.", lambda row, _: row.heap_used),
    ("heap_max_bytes", "gauge", "Largest heap of its Java process.", lambda row, _: row.heap_max),
]  # fmt: skip


def worker_metrics(rows: Sequence[WorkerRow], now: float) -> list[str]:
    """Return the lines of all workers; what a worker has not reported is left out."""
    lines: list[str] = []
    for name, kind, text, value in _METRICS:
        samples: list[Sample] = [
            ({"worker": row.id, "host": row.host}, float(number))
            for row in rows
            if (number := value(row, now)) is not None
        ]
        lines += family(f"penstock_worker_{name}", kind, text, samples)
    return lines
