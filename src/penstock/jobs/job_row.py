"""The tables of a store, and one row of each as a value."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields
from typing import Any

import sqlalchemy as sa

from penstock.engine import State
from penstock.jobs.liveness import lives

METADATA = sa.MetaData()
JOBS = sa.Table(
    "penstock_jobs",
    METADATA,
    sa.Column("name", sa.String(200), primary_key=True),
    sa.Column("id", sa.String(40), nullable=False),
    sa.Column("user", sa.String(100), nullable=False),
    sa.Column("created", sa.Double, nullable=False),
    sa.Column("definition", sa.Text, nullable=False),
    sa.Column("options", sa.Text, nullable=False),
    sa.Column("cancelled", sa.Boolean, nullable=False),
    sa.Column("batches", sa.BigInteger, nullable=False),
    sa.Column("records", sa.BigInteger, nullable=False),
    sa.Column("rows", sa.BigInteger, nullable=False),
    sa.Column("failed", sa.BigInteger, nullable=False),
    sa.Column("epoch", sa.BigInteger, nullable=False),
    sa.Column("batch", sa.BigInteger, nullable=False),
    sa.Column("last_error", sa.Text),
    sa.Column("last_failed", sa.Double),
    sa.Column("last_batch", sa.Double),
    sa.Column("rate", sa.Double, nullable=False),
    sa.Column("state", sa.String(20), nullable=False),
    sa.Column("lag", sa.BigInteger, nullable=False),
    sa.Column("seen", sa.Double, nullable=False),
    sa.Column("host", sa.String(255), nullable=False, server_default=""),
    sa.Column("pid", sa.Integer, nullable=False, server_default="0"),
    sa.Column("owner", sa.String(200), nullable=False, server_default=""),
)
EVENTS = sa.Table(
    "penstock_job_events",
    METADATA,
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("name", sa.String(200), nullable=False, index=True),
    sa.Column("at", sa.Double, nullable=False),
    sa.Column("text", sa.Text, nullable=False),
)
_AS_JSON = ("definition", "options")
_ENDED = (State.STOPPED.value, State.FAILED.value)


@dataclass(frozen=True)
class JobRow:
    """One stored job. Reading it loads no code."""

    name: str
    id: str
    user: str
    created: float
    definition: dict[str, Any] = field(repr=False)  # it may contain secrets
    options: dict[str, Any]
    cancelled: bool = False
    batches: int = 0
    records: int = 0
    rows: int = 0
    failed: int = 0
    epoch: int = -1
    batch: int = -1
    last_error: str | None = None
    last_failed: float | None = None
    last_batch: float | None = None
    rate: float = 0.0
    state: str = State.STARTING.value
    lag: int = 0
    seen: float = 0.0
    host: str = ""
    pid: int = 0
    # The process that runs it, by the name of `liveness.this_process`.
    owner: str = ""

    @classmethod
    def of(cls, row: Any) -> JobRow:
        """Read a row of the table."""
        return cls(**dict(row) | {name: json.loads(row[name]) for name in _AS_JSON})

    def columns(self) -> dict[str, Any]:
        """Return the row of the table."""
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        return values | {name: json.dumps(values[name]) for name in _AS_JSON}

    @property
    def is_alive(self) -> bool:
        """Return whether the process that runs it is alive, as far as this machine can tell."""
        return self.is_claimed and lives(self.owner, self.seen)

    @property
    def is_claimed(self) -> bool:
        """Return whether a process has claimed the job and not released it."""
        return bool(self.owner) and self.state not in _ENDED

    @property
    def shown_state(self) -> str:
        """Return the state, corrected for a job that no process runs."""
        return self.state if self.is_alive or self.state == State.FAILED.value else "STOPPED"


@dataclass(frozen=True)
class Event:
    """An event in the life of a job."""

    number: int
    name: str
    at: float
    text: str
