"""Replays of dead letters that are asked for over the API, and run by a worker.

As with leases, one conditional UPDATE decides which worker has a request. One whose worker has died is
taken again: a replay that was cut short is finished by the next one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from penstock.control.liveness import SILENT
from penstock.control.store.database import Database
from penstock.control.store.events import next_number
from penstock.control.store.rows import FREE, Desired, ReplayRow, ReplayState
from penstock.control.store.tables import DEPLOYMENTS, REPLAYS, RUNS, WORKERS
from penstock.control.store.texts import storable
from penstock.errors import ConfigError

MOST_OPEN = 20
"""The number of requests of a deployment that may wait or run."""
MOST_ENDED = 100
"""The number of requests that are stored for a deployment after their end."""
MOST_ATTEMPTS = 5
"""A request is not taken again after this many workers have not brought it to an end."""
# How many requests one look for work considers.
_CONSIDERED = 20
_OPEN = (ReplayState.PENDING.value, ReplayState.RUNNING.value)


class Replays:
    """The requested replays of all deployments; those of one deployment run in their order."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._now = database.now

    def add(
        self, deployment: str, wanted: Mapping[str, Any], value: str | None = None, *, by: str
    ) -> int:
        """Store a request; return its number. The corrected value of a letter must be sealed."""
        with self._database.write() as session:
            number = next_number(session)
            mine = sa.and_(REPLAYS.c.deployment == deployment, REPLAYS.c.state.in_(_OPEN))
            count = sa.select(sa.func.count()).select_from(REPLAYS).where(mine)
            if session.execute(count).scalar_one() >= MOST_OPEN:
                raise ConfigError(
                    f"{MOST_OPEN} replays of {deployment!r} wait or run already; wait until one of them "
                    "has ended"
                )
            added = REPLAYS.insert().values(
                number=number,
                deployment=deployment,
                state=ReplayState.PENDING.value,
                wanted=json.dumps(wanted),
                value=value,
                at=self._now,
                by=by,
            )
            session.execute(added)
        return number

    def take(
        self, worker: str, *, only_own: bool = False, from_silent: bool = True
    ) -> ReplayRow | None:
        """Take the oldest request that this worker may run; return None if there is none.

        The worker that runs the deployment has it to itself; with `only_own` others are left alone. A
        worker takes one at a time: what it has taken before, without an answer, it takes again.
        `from_silent`: a worker that sent no heartbeat has died; it may have been the store that was away.
        """
        free = self._takeable(worker, only_own, from_silent)
        query = sa.select(REPLAYS.c.number).where(free).order_by(REPLAYS.c.number)
        with self._database.read() as session:
            numbers = session.execute(query.limit(_CONSIDERED)).scalars().all()
        for number in numbers:
            taken = self._take(number, worker, free)
            if taken is not None and taken.state is ReplayState.RUNNING:
                return taken
        return None

    def _take(self, number: int, worker: str, free: sa.ColumnElement[bool]) -> ReplayRow | None:
        """Take one, unless another worker was faster; one that was taken too often fails instead."""
        worn = REPLAYS.c.attempts >= MOST_ATTEMPTS
        why = f"{MOST_ATTEMPTS} workers ended while they ran it: their logs have the reason"
        failed, running = ReplayState.FAILED.value, ReplayState.RUNNING.value
        update = (
            REPLAYS.update()
            .where(REPLAYS.c.number == number, free)
            .values(
                state=sa.case((worn, failed), else_=running),
                worker=worker,
                attempts=REPLAYS.c.attempts + 1,
                started=sa.func.coalesce(REPLAYS.c.started, self._now),
                ended=sa.case((worn, self._now)),
                error=sa.case((worn, why)),
                value=sa.case((sa.not_(worn), REPLAYS.c.value)),
            )
            .returning(*REPLAYS.c)
        )
        with self._database.write() as session:
            row = session.execute(update).mappings().one_or_none()
        return None if row is None else ReplayRow.of(row)

    def _takeable(self, worker: str, only_own: bool, from_silent: bool) -> sa.ColumnElement[bool]:
        """Return the condition that a request waits, or lost its worker, and may run here."""
        now = self._now
        lives = [WORKERS.c.id == REPLAYS.c.worker]
        if from_silent:
            lives.append(WORKERS.c.seen.between(now - SILENT, now + SILENT))
        lost = sa.or_(REPLAYS.c.worker == worker, ~sa.exists().where(*lives))
        waits = sa.or_(
            REPLAYS.c.state == ReplayState.PENDING.value,
            sa.and_(REPLAYS.c.state == ReplayState.RUNNING.value, lost),
        )
        earlier = REPLAYS.alias("earlier")
        is_first = ~sa.exists().where(
            earlier.c.deployment == REPLAYS.c.deployment,
            earlier.c.number < REPLAYS.c.number,
            earlier.c.state.in_(_OPEN),
        )
        own = RUNS.c.worker == worker
        free = sa.or_(own, RUNS.c.worker == FREE, RUNS.c.lease_until <= now)
        is_here = sa.exists().where(
            RUNS.c.deployment == REPLAYS.c.deployment, own if only_own else free
        )
        stays = sa.exists().where(
            DEPLOYMENTS.c.name == REPLAYS.c.deployment,
            DEPLOYMENTS.c.desired != Desired.DELETED.value,
        )
        return sa.and_(waits, is_first, is_here, stays)

    def finish(self, taken: ReplayRow, outcome: Mapping[str, Any]) -> bool:
        """Store what became of the letters; return whether the request still was this worker's."""
        return self._end(taken, state=ReplayState.DONE.value, outcome=json.dumps(outcome))

    def fail(self, taken: ReplayRow, error: str) -> bool:
        """Store why a replay was not possible; return whether the request still was this worker's."""
        return self._end(taken, state=ReplayState.FAILED.value, error=storable(error))

    def give_back(self, taken: ReplayRow, reason: str | None = None) -> bool:
        """Let other workers take a request; return whether it still was this worker's."""
        error = None if reason is None else storable(reason)
        values = {"state": ReplayState.PENDING.value, "worker": FREE, "error": error}
        with self._database.write() as session:
            return bool(session.execute(self._mine(taken).values(**values)).rowcount)

    def get(self, deployment: str, number: int) -> ReplayRow | None:
        """Return a request of a deployment."""
        query = sa.select(REPLAYS).where(REPLAYS.c.number == number)
        with self._database.read() as session:
            found = session.execute(query.where(REPLAYS.c.deployment == deployment)).mappings()
            return next((ReplayRow.of(row) for row in found), None)

    def before(
        self, deployment: str, number: int | None = None, most: int = 100
    ) -> list[ReplayRow]:
        """Return the requests of a deployment with a smaller number, the newest first."""
        query = sa.select(REPLAYS).where(REPLAYS.c.deployment == deployment)
        if number is not None:
            query = query.where(REPLAYS.c.number < number)
        query = query.order_by(REPLAYS.c.number.desc()).limit(most)
        with self._database.read() as session:
            return [ReplayRow.of(row) for row in session.execute(query).mappings()]

    def _end(self, taken: ReplayRow, **values: Any) -> bool:
        ended = self._mine(taken).values(ended=self._now, value=None, **values)
        with self._database.write() as session:
            is_mine = bool(session.execute(ended).rowcount)
            if is_mine:
                self._remove_oldest(session, taken.deployment)
            return is_mine

    @staticmethod
    def _mine(taken: ReplayRow) -> sa.Update:
        held = (REPLAYS.c.worker == taken.worker, REPLAYS.c.attempts == taken.attempts)
        running = REPLAYS.c.state == ReplayState.RUNNING.value
        return REPLAYS.update().where(REPLAYS.c.number == taken.number, running, *held)

    @staticmethod
    def _remove_oldest(session: sa.Connection, deployment: str) -> None:
        ended = (REPLAYS.c.deployment == deployment, REPLAYS.c.state.not_in(_OPEN))
        newest = sa.select(REPLAYS.c.number).where(*ended).order_by(REPLAYS.c.number.desc())
        last = session.execute(newest.offset(MOST_ENDED).limit(1)).scalar()
        if last is not None:
            session.execute(REPLAYS.delete().where(*ended, REPLAYS.c.number <= last))
