"""One stored job as a value: its spec, its counters, and what is known of its run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from penstock.control.job_spec import JobSpec
from penstock.control.store.counters import CounterRow
from penstock.control.store.rows import FAILED, DeploymentRow, Desired, RunRow

STOPPED = "STOPPED"


@dataclass(frozen=True)
class JobRow:
    """One stored job. Reading it loads no code."""

    name: str
    id: str
    user: str
    created: float
    definition: dict[str, Any] = field(repr=False)  # it may contain secrets
    options: dict[str, Any]
    desired: Desired = Desired.STOPPED
    batches: int = 0
    records: int = 0
    rows: int = 0
    failed: int = 0
    last_error: str | None = None
    last_failed: float | None = None
    last_batch: float | None = None
    rate: float = 0.0
    lag: int = 0
    state: str = STOPPED
    # The worker that runs it: a process with jobs of its own, or a worker of the store.
    worker: str = ""
    is_alive: bool = False

    @classmethod
    def of(
        cls,
        row: DeploymentRow,
        spec: JobSpec,
        run: RunRow,
        counts: CounterRow,
        *,
        is_alive: bool,
        lag: int,
    ) -> JobRow:
        """Put the rows of a job together."""
        errors = [(counts.last_failed or 0.0, counts.last_error), (run.failed or 0.0, run.error)]
        last_failed, last_error = max(errors, key=lambda each: each[0])
        return cls(
            row.name, spec.id, row.created_by, row.created, spec.definition, spec.options, row.desired,
            counts.batches, counts.records, counts.rows, counts.failed,
            last_error, last_failed or None, counts.last_batch, counts.rate, lag,
            run.state, run.worker, is_alive,
        )  # fmt: skip

    @property
    def shown_state(self) -> str:
        """Return the state, corrected for a job that no process runs."""
        return self.state if self.is_alive or self.state == FAILED else STOPPED
