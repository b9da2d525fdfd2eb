"""Leases: which worker runs a deployment. One conditional UPDATE decides, by the database's clock.

Each claim has a token that is greater than all before it for the same name. The engine uses it as its
epoch, so that sinks refuse a writer whose lease went to another worker.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from penstock.control.store.database import Database
from penstock.control.store.rows import FAILED, FREE, Desired, RunRow
from penstock.control.store.tables import DEPLOYMENTS, RUNS, WORKERS
from penstock.control.store.texts import storable
from penstock.engine import State


@dataclass(frozen=True)
class ClaimedLease:
    """A lease that a worker has just received: what to run, under which token."""

    deployment: str
    token: int
    generation: int
    round: int
    desired: Desired


@dataclass(frozen=True)
class Stalled:
    """A lease that was seen without any renewal for its whole length, by a watcher's own clock.

    With it a lease can be claimed whose end is in a future that the database's clock was set back from.
    """

    token: int
    renewals: int


class Leases:
    """The leases of the deployments; `length` is their duration in seconds."""

    def __init__(self, database: Database, length: float = 15.0) -> None:
        self._database = database
        self._now = database.now
        self.length = length

    def claim(
        self,
        deployment: str,
        worker: str,
        stalled: Stalled | None = None,
        *,
        stopped: bool = False,
    ) -> ClaimedLease | None:
        """Claim a deployment that no worker holds; return None where another worker was faster.

        A deployment that is to be deleted can be claimed, too: one worker removes its state. One that
        should not run can be claimed with `stopped`, by a process that then asks for it to run.
        """
        free = sa.or_(RUNS.c.worker == FREE, RUNS.c.lease_until <= self._now)
        if stalled is not None:
            unchanged = sa.and_(RUNS.c.token == stalled.token, RUNS.c.renewals == stalled.renewals)
            free = sa.or_(free, unchanged)
        same = DEPLOYMENTS.c.name == deployment
        claimable = tuple(Desired) if stopped else (Desired.RUNNING, Desired.DELETED)
        wanted = DEPLOYMENTS.c.desired.in_([each.value for each in claimable])

        # Greater than before, and than all tokens since a backup from which the store was restored.
        second = sa.cast(self._now, sa.BigInteger)
        token = sa.case((RUNS.c.token + 1 < second, second), else_=RUNS.c.token + 1)

        def current(column: sa.Column[Any]) -> Any:
            return sa.select(column).where(same).scalar_subquery()

        claimed = (
            RUNS.update()
            .where(RUNS.c.deployment == deployment, free)
            .where(sa.exists().where(same, wanted))
            .values(
                worker=worker,
                token=token,
                renewals=0,
                lease_until=self._now + self.length,
                lease_length=self.length,
                claimed=self._now,
                state=State.STARTING.value,
                generation=current(DEPLOYMENTS.c.generation),
                round=current(DEPLOYMENTS.c.round),
                lapses=_counted_if_lapsed(RUNS.c.lapses),
                takeovers=_counted_if_lapsed(RUNS.c.takeovers),
            )
            .returning(
                RUNS.c.deployment,
                RUNS.c.token,
                RUNS.c.generation,
                RUNS.c.round,
                current(DEPLOYMENTS.c.desired),
            )
        )
        with self._database.write() as session:
            row = session.execute(claimed).one_or_none()
        if row is None:
            return None
        name, token, generation, round, desired = row
        return ClaimedLease(name, token, generation, round, Desired(desired))

    def renew(self, worker: str, load: float = 0.0) -> dict[str, int]:
        """Renew all leases of a worker, and its heartbeat; return the tokens that it holds, by name.

        A lease that ran out and that no other worker has claimed is renewed as well: no one else can
        have written in between.
        """
        renewed = RUNS.update().where(RUNS.c.worker == worker)
        values = {"lease_until": self._now + self.length, "lease_length": self.length}
        values |= {"renewals": RUNS.c.renewals + 1}
        heartbeat = WORKERS.update().where(WORKERS.c.id == worker)
        with self._database.write() as session:
            rows = session.execute(
                renewed.values(**values).returning(RUNS.c.deployment, RUNS.c.token)
            ).all()
            renewals = WORKERS.c.renewals + len(rows)
            session.execute(heartbeat.values(seen=self._now, load=load, renewals=renewals))
        return {row.deployment: row.token for row in rows}

    def release(
        self,
        deployment: str,
        worker: str,
        token: int,
        state: str,
        error: str | None = None,
        *,
        generation: int | None = None,
        round: int | None = None,
    ) -> bool:
        """Give a lease back, with the state in which the run ended; return whether it was held.

        The generation and round are those that ran, where they may differ from the claimed ones.
        """
        ended = {"worker": FREE, "lease_until": self._now, "lapses": 0}
        given = _given(generation=generation, round=round)
        held = self._mine(deployment, worker, token)
        return self._did(held.values(**ended, **given, **self._seen(state, error)))

    def report(
        self,
        deployment: str,
        worker: str,
        token: int,
        state: str,
        *,
        error: str | None = None,
        generation: int | None = None,
        round: int | None = None,
        restarts: int | None = None,
    ) -> bool:
        """Store what the holder observes; return whether it still is the holder."""
        given = _given(generation=generation, round=round, restarts=restarts)
        progress = {"lapses": 0} if state == State.RUNNING.value else {}
        held = self._mine(deployment, worker, token)
        return self._did(held.values(**given, **progress, **self._seen(state, error)))

    def advance(self, deployment: str, worker: str, token: int, above: int = 0) -> int | None:
        """Return a new token for the holder, greater than `above`; None if the lease was lost.

        For an epoch that a sink knows and that came from elsewhere: a process without the control
        plane, or one of a release whose epochs were numbered by a clock.
        """
        greatest = sa.case((RUNS.c.token < above, above), else_=RUNS.c.token)
        advanced = self._mine(deployment, worker, token).values(token=greatest + 1)
        with self._database.write() as session:
            return session.execute(advanced.returning(RUNS.c.token)).scalar()

    def expire(self, worker: str) -> list[str]:
        """End all leases of a worker whose process is known to have ended; return their names.

        Never call it for a process that may be suspended or out of reach: it could still write.
        """
        ended = RUNS.update().where(RUNS.c.worker == worker, RUNS.c.lease_until > self._now)
        with self._database.write() as session:
            rows = session.execute(ended.values(lease_until=self._now).returning(RUNS.c.deployment))
            return sorted(name for (name,) in rows)

    def get(self, deployment: str) -> RunRow | None:
        """Return the run of a deployment."""
        return next(iter(self.all([deployment])), None)

    def all(self, deployments: Iterable[str] | None = None) -> list[RunRow]:
        """Return the runs of these deployments, or of all; those of deleted ones, too."""
        query = sa.select(RUNS).order_by(RUNS.c.deployment)
        if deployments is not None:
            query = query.where(RUNS.c.deployment.in_(list(deployments)))
        with self._database.read() as session:
            return [RunRow(**row) for row in session.execute(query).mappings()]

    def close(self) -> None:
        """Close the database; for leases with one of their own (`Database.apart`)."""
        self._database.close()

    def _mine(self, deployment: str, worker: str, token: int) -> sa.Update:
        held = (RUNS.c.deployment == deployment, RUNS.c.worker == worker, RUNS.c.token == token)
        return RUNS.update().where(*held)

    def _did(self, update: sa.Update) -> bool:
        with self._database.write() as session:
            return bool(session.execute(update).rowcount)

    def _seen(self, state: str, error: str | None) -> dict[str, Any]:
        if error is None:
            return {"state": state, **({} if state == FAILED else {"error": None})}
        return {"state": state, "error": storable(error), "failed": self._now}


def _counted_if_lapsed(column: sa.Column[int]) -> Any:
    """Return one more for a lease that its holder has not given back."""
    return sa.case((RUNS.c.worker == FREE, column), else_=column + 1)


def _given(**optional: int | None) -> dict[str, int]:
    """Return the columns that were given."""
    return {name: value for name, value in optional.items() if value is not None}
