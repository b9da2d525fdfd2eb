"""What the API shows of a connector: itself, its tasks, their states."""

from __future__ import annotations

from typing import Any

from penstock.connect.common_keys import TOPICS, VERSION
from penstock.connect.connector_config import ConnectorConfig
from penstock.control.store.rows import FREE, PENDING, Desired, RunRow
from penstock.engine import State
from penstock.server.connect.connector_store import Connector

UNASSIGNED, RUNNING, PAUSED, STOPPED, FAILED, RESTARTING = (
    "UNASSIGNED",
    "RUNNING",
    "PAUSED",
    "STOPPED",
    "FAILED",
    "RESTARTING",
)


# A list of connectors has every task of each: more than these take its memory and time, and no one reads.
MOST_TASKS = 1000


def task_count(connector: Connector, run: RunRow) -> int:
    """Return how many tasks a connector shows: none if it is stopped, or was paused before it ran."""
    desired = connector.row.desired
    if desired is Desired.STOPPED or (desired is Desired.PAUSED and not _has_run(run)):
        return 0
    config = ConnectorConfig(connector.config, connector.kind.definition())
    return min(connector.kind().tasks(config), MOST_TASKS)


def _has_run(run: RunRow) -> bool:
    return run.generation > 0 and run.state != State.STOPPED.value


def info(connector: Connector, run: RunRow | None) -> dict[str, Any]:
    """Return a connector; one without a run was just made, and has no tasks yet."""
    count = 0 if run is None else task_count(connector, run)
    return {
        "name": connector.name,
        "config": connector.config,
        "tasks": [{"connector": connector.name, "task": task} for task in range(count)],
        "type": connector.kind.kind,
    }


def tasks(connector: Connector, run: RunRow) -> list[dict[str, Any]]:
    """Return the tasks with their configurations."""
    own = connector.kind.names[0].removesuffix("Connector")
    config = {**connector.config, "task.class": f"{own}Task"}
    return [
        {"id": {"connector": connector.name, "task": task}, "config": config}
        for task in range(task_count(connector, run))
    ]


def topics(connector: Connector) -> list[str]:
    """Return the topics that a connector names."""
    config = ConnectorConfig(connector.config, connector.kind.definition())
    keys = (TOPICS,) if connector.kind.kind == "sink" else ("topic",)
    found = [config[key] for key in keys if key in config.definition.by_name]
    return [name for each in found for name in (each if isinstance(each, list) else [each]) if name]


def status(connector: Connector, run: RunRow, worker: str) -> dict[str, Any]:
    """Return the states of a connector and its tasks.

    A run that has failed is a connector that runs with tasks that have failed, as in Connect: what fails
    is reading or writing, not the plan.
    """
    return {
        "name": connector.name,
        "connector": _state(connector_state(connector, run), run, worker),
        "tasks": [
            task_status(task, connector, run, worker) for task in range(task_count(connector, run))
        ],
        "type": connector.kind.kind,
    }


def task_status(task: int, connector: Connector, run: RunRow, worker: str) -> dict[str, Any]:
    """Return the state of one task."""
    found = {"id": task, **_state(task_state(connector, run), run, worker)}
    return {**found, "trace": run.error or ""} if found["state"] == FAILED else found


def _state(state: str, run: RunRow, worker: str) -> dict[str, Any]:
    """Return a state with its worker; as in Connect, what has not been started has no version."""
    version = None if state == UNASSIGNED else VERSION
    return {
        "state": state,
        "worker_id": run.worker if run.worker != FREE else worker,
        "version": version,
    }


def connector_state(connector: Connector, run: RunRow) -> str:
    """Return the state of a connector."""
    match connector.row.desired:
        case Desired.STOPPED:
            return STOPPED
        case Desired.PAUSED:
            return PAUSED
        case _:
            return UNASSIGNED if run.state == PENDING else RUNNING


def task_state(connector: Connector, run: RunRow) -> str:
    """Return the state of its tasks."""
    if run.state == FAILED:
        return FAILED
    if connector.row.desired is Desired.PAUSED:
        return PAUSED
    if run.state == PENDING or run.generation < connector.row.generation:
        return UNASSIGNED
    if run.state == State.STARTING.value:
        return UNASSIGNED
    return RUNNING
