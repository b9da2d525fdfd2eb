"""Rows of the store as values, and the words that their columns have."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import sqlalchemy as sa

FREE = ""
"""The worker of a run that no worker holds."""
PENDING = "PENDING"
"""The state of a run that was never claimed; the others are those of `engine.State`, and PAUSED."""
PAUSED = "PAUSED"
FAILED = "FAILED"


class Kind(str, Enum):
    """What a deployment runs."""

    PIPELINE = "pipeline"
    JOB = "job"
    CONNECTOR = "connector"
    FLOW = "flow"


class Desired(str, Enum):
    """What a deployment should do."""

    RUNNING = "running"
    PAUSED = "paused"
    STOPPED = "stopped"
    DELETED = "deleted"


@dataclass(frozen=True)
class DeploymentRow:
    """One deployment; secrets in its spec are references or sealed."""

    name: str
    kind: Kind
    spec: str = field(repr=False)
    labels: dict[str, str]
    desired: Desired
    generation: int
    round: int
    revision: int
    created: float
    created_by: str
    changed: float
    changed_by: str

    @classmethod
    def of(cls, row: sa.RowMapping) -> DeploymentRow:
        """Read a row of the table."""
        read = {"kind": Kind(row["kind"]), "desired": Desired(row["desired"])}
        return cls(**{**row, **read, "labels": json.loads(row["labels"])})


@dataclass(frozen=True)
class SpecRow:
    """One generation of a deployment."""

    deployment: str
    generation: int
    kind: Kind
    spec: str = field(repr=False)
    labels: dict[str, str]
    at: float
    by: str

    @classmethod
    def of(cls, row: sa.RowMapping) -> SpecRow:
        """Read a row of the table."""
        return cls(**{**row, "kind": Kind(row["kind"]), "labels": json.loads(row["labels"])})


@dataclass(frozen=True)
class RunRow:
    """What is known of the execution of a deployment, and who holds its lease."""

    deployment: str
    state: str = PENDING
    generation: int = 0
    round: int = 0
    worker: str = FREE
    token: int = 0
    lease_until: float = 0.0
    renewals: int = 0
    claimed: float = 0.0
    lapses: int = 0
    restarts: int = 0
    error: str | None = None
    failed: float | None = None
    takeovers: int = 0
    lease_length: float = 15.0

    def is_held(self, now: float) -> bool:
        """Return whether a worker has a valid lease at this time of the database."""
        return self.worker != FREE and self.lease_until > now


@dataclass(frozen=True)
class WorkerRow:
    """A worker process; `seen` is the time of its last heartbeat."""

    id: str
    host: str = ""
    pid: int = 0
    capacity: float = 1.0
    load: float = 0.0
    started: float = 0.0
    seen: float = 0.0
    draining: bool = False
    process: str = ""
    renewals: int = 0
    heap_used: int | None = None
    heap_max: int | None = None
    memory: int = 0
    cpu_seconds: float = 0.0
    queries: int = 0


@dataclass(frozen=True)
class WorkerUsage:
    """What a worker process and its children use: bytes, seconds of processors, queries of Spark."""

    memory: int = 0
    cpu_seconds: float = 0.0
    queries: int = 0
    heap_used: int | None = None
    heap_max: int | None = None


@dataclass(frozen=True)
class EventRow:
    """An event in the life of a deployment; a later one has a greater number."""

    number: int
    deployment: str
    kind: str
    text: str
    at: float


class ReplayState(str, Enum):
    """How far a requested replay is."""

    PENDING = "pending"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True)
class ReplayRow:
    """A requested replay of dead letters; `value` is the corrected one of a letter, sealed.

    `attempts` counts the workers that have taken it.
    """

    number: int
    deployment: str
    state: ReplayState
    wanted: dict[str, Any]
    value: str | None = field(repr=False)
    at: float
    by: str
    worker: str
    attempts: int
    started: float | None
    ended: float | None
    outcome: dict[str, Any] | None
    error: str | None

    @classmethod
    def of(cls, row: sa.RowMapping) -> ReplayRow:
        """Read a row of the table."""
        outcome = None if row["outcome"] is None else json.loads(row["outcome"])
        read = {"state": ReplayState(row["state"]), "wanted": json.loads(row["wanted"])}
        return cls(**{**row, **read, "outcome": outcome})


@dataclass(frozen=True)
class LogRow:
    """A line that a run or a worker logged; `deployment` is empty for a line of the worker itself."""

    number: int
    deployment: str
    worker: str
    level: str
    event: str
    fields: dict[str, Any]
    at: float

    @classmethod
    def of(cls, row: sa.RowMapping) -> LogRow:
        """Read a row of the table."""
        return cls(**{**row, "fields": json.loads(row["fields"])})
