"""What a worker writes to the store, without running anything: the REST API shows nothing else of it."""

from __future__ import annotations

from collections.abc import Container

from penstock.control.store import ControlStore
from penstock.control.store.rows import FAILED, FREE, PAUSED, DeploymentRow, Desired, RunRow
from penstock.engine import Done, State
from penstock.pipeline import Mark

ID = "contract-worker"
_ERROR = "the file cannot be written"


class StoreWorker:
    """Claims, reports and releases deployments through the store's API; those of `failing` fail."""

    def __init__(self, store: ControlStore, failing: Container[str]) -> None:
        self._store = store
        self._failing = failing

    def work(self) -> None:
        """Bring every run to what is desired."""
        runs = {run.deployment: run for run in self._store.leases.all()}
        for row in self._store.deployments.all():
            run = runs.get(row.name) or RunRow(row.name)
            if row.desired is Desired.RUNNING:
                self._run(row, run)
            elif row.desired is Desired.DELETED:
                self._remove(row, run)
            elif run.worker != FREE:
                state = PAUSED if row.desired is Desired.PAUSED else State.STOPPED.value
                self._store.leases.release(row.name, ID, run.token, state)

    def _run(self, row: DeploymentRow, run: RunRow) -> None:
        numbers = {"generation": row.generation, "round": row.round}
        if (run.generation, run.round) == tuple(numbers.values()) and run.state in (
            State.RUNNING.value,
            FAILED,
        ):
            return
        token = self._token(row, run)
        if row.name in self._failing:
            self._store.leases.release(row.name, ID, token, FAILED, _ERROR, **numbers)
        else:
            self._store.leases.report(row.name, ID, token, State.RUNNING.value, **numbers)
            done = Done(
                Mark(token, row.generation + row.round, 0), records=3, rows=3, failed=0, seconds=0.1
            )
            self._store.counters.count(row.name, token, done)

    def _remove(self, row: DeploymentRow, run: RunRow) -> None:
        self._store.deployments.remove(row.name, ID, self._token(row, run))

    def _token(self, row: DeploymentRow, run: RunRow) -> int:
        if run.worker == ID:
            return run.token
        claimed = self._store.leases.claim(row.name, ID)
        assert claimed is not None
        return claimed.token
