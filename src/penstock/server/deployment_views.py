"""Deployments as JSON: what people see of rows of the store."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from penstock.control.store import ControlStore
from penstock.control.store.counters import CounterRow
from penstock.control.store.rows import DeploymentRow, RunRow, SpecRow


def summaries(store: ControlStore, rows: Iterable[DeploymentRow]) -> list[dict[str, Any]]:
    """Return deployments without their definitions, with their runs and counters."""
    listed = list(rows)
    names = [row.name for row in listed]
    runs = {run.deployment: run for run in store.leases.all(names)}
    counters = {row.deployment: row for row in store.counters.all(names)}
    now = store.database.time()
    return [
        _head(row)
        | {
            "run": shown_run(runs.get(row.name) or RunRow(row.name), now),
            "counters": shown_counters(counters.get(row.name) or CounterRow(row.name)),
        }
        for row in listed
    ]


def detail(store: ControlStore, row: DeploymentRow) -> dict[str, Any]:
    """Return a deployment with its definition, in which secrets are masked."""
    return summaries(store, [row])[0] | {"definition": store.secrets.shown(row.name, row.spec)}


def shown_run(run: RunRow, now: float) -> dict[str, Any]:
    """Return what is known of the execution of a deployment."""
    return {
        "state": run.state,
        "generation": run.generation,
        "worker": run.worker or None,
        "held": run.is_held(now),
        "claimed": run.claimed or None,
        "restarts": run.restarts,
        "lapses": run.lapses,
        "error": run.error,
        "failed": run.failed,
    }


def shown_counters(row: CounterRow) -> dict[str, Any]:
    """Return the counters of a deployment."""
    values = asdict(row)
    for name in ("deployment", "epoch", "batch"):
        del values[name]
    return values


def shown_generation(row: SpecRow) -> dict[str, Any]:
    """Return one generation without its definition."""
    return {
        "generation": row.generation,
        "kind": row.kind.value,
        "labels": row.labels,
        "at": row.at,
        "by": row.by,
    }


def _head(row: DeploymentRow) -> dict[str, Any]:
    return {
        "name": row.name,
        "kind": row.kind.value,
        "labels": row.labels,
        "desired": row.desired.value,
        "generation": row.generation,
        "revision": row.revision,
        "created": row.created,
        "created_by": row.created_by,
        "changed": row.changed,
        "changed_by": row.changed_by,
    }
