"""Counters of deployments: exact across kills, because the mark of a batch is stored with them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from penstock.control.store.database import Database
from penstock.control.store.durations import Durations, with_duration
from penstock.control.store.tables import COUNTERS, RUNS, TOOK
from penstock.control.store.texts import storable
from penstock.engine import Done
from penstock.errors import FencedError


@dataclass(frozen=True)
class CounterRow:
    """The counts of a deployment, and the mark of the last batch in them."""

    deployment: str
    epoch: int = -1
    batch: int = -1
    batches: int = 0
    records: int = 0
    rows: int = 0
    failed: int = 0
    lost: int = 0
    rate: float = 0.0
    last_batch: float | None = None
    last_error: str | None = None
    last_failed: float | None = None


_COLUMNS = [COUNTERS.c[name] for name in CounterRow.__dataclass_fields__]
_DURATIONS = [COUNTERS.c[name] for name in ("deployment", "seconds", *TOOK)]


class Counters:
    """The counters, one row for each deployment."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def count(self, deployment: str, token: int, done: Done) -> bool:
        """Add the counts of a batch; return False if it was counted before.

        One statement: a process that is killed has either added all of a batch, or nothing.

        Raises
        ------
        FencedError
            When another worker has a later token. The batch must not be noted as done: the other
            worker runs it again, finds it in the sink, and counts it.
        """
        # The epoch may have had other numbers in other processes: its batches have one sequence.
        same_epoch = COUNTERS.c.epoch.in_([done.mark.epoch, *done.earlier])
        newer = sa.or_(
            sa.and_(same_epoch, COUNTERS.c.batch < done.mark.batch),
            sa.and_(~same_epoch, COUNTERS.c.epoch < done.mark.epoch),
        )
        holds = sa.exists().where(RUNS.c.deployment == deployment, RUNS.c.token == token)
        same = COUNTERS.update().where(COUNTERS.c.deployment == deployment, newer, holds)
        with self._database.write() as session:
            if session.execute(same.values(**self._values(done))).rowcount:
                return True
            if session.execute(sa.select(holds)).scalar():
                return False
        raise FencedError(
            f"another worker has the lease of {deployment!r}, which this one had with token {token}: it "
            f"counts the batch {done.mark.batch}"
        )

    def _values(self, done: Done) -> dict[str, Any]:
        now = self._database.now
        values: dict[str, Any] = {
            "epoch": done.mark.epoch,
            "batch": done.mark.batch,
            "batches": COUNTERS.c.batches + 1,
            "records": COUNTERS.c.records + done.records,
            "rows": COUNTERS.c.rows + done.rows,
            "failed": COUNTERS.c.failed + done.failed,
            "lost": COUNTERS.c.lost + done.lost,
            "rate": done.rows_per_second,
            "last_batch": now,
            **with_duration(done.seconds),
        }
        if done.failed or done.lost:
            values |= {"last_error": storable(done.error or ""), "last_failed": now}
        return values

    def get(self, deployment: str) -> CounterRow:
        """Return the counters of a deployment."""
        return next(iter(self.all([deployment])), CounterRow(deployment))

    def all(self, deployments: Iterable[str] | None = None) -> list[CounterRow]:
        """Return the counters of these deployments, or of all."""
        query = sa.select(*_COLUMNS).order_by(COUNTERS.c.deployment)
        if deployments is not None:
            query = query.where(COUNTERS.c.deployment.in_(list(deployments)))
        with self._database.read() as session:
            return [CounterRow(**row) for row in session.execute(query).mappings()]

    def durations(self) -> dict[str, Durations]:
        """Return how long batches took, by the names of all deployments."""
        with self._database.read() as session:
            rows = session.execute(sa.select(*_DURATIONS)).mappings().all()
        return {row["deployment"]: Durations.of(row) for row in rows}
