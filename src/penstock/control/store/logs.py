"""Lines that runs and workers logged: the newest of each deployment, and of each worker itself.

Their numbers come from a row of their own in the order of commits, as those of events do: who writes logs
does not wait for who changes deployments.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from penstock.control.store.database import Database
from penstock.control.store.events import next_number
from penstock.control.store.rows import LogRow
from penstock.control.store.tables import DEPLOYMENTS, LOGS, WORKERS

LEVELS = ("debug", "info", "warning", "error", "critical")
"""The levels of lines, in ascending order."""
MOST_LINES = 2000
"""The number of lines that are stored for a deployment, and for a worker itself."""
# Old lines are deleted when there are this many more: not with every write.
_SLACK = 200
# For how long lines of a worker that has gone are stored, in seconds.
_GONE_FOR = 7 * 86_400.0
_NUMBERS = "logs"


@dataclass(frozen=True)
class LogLine:
    """A line before it is stored: masked, and short; `age` is in seconds.

    `deployment` is empty for a line of the worker itself.
    """

    deployment: str
    level: str
    event: str
    fields: dict[str, Any] = field(default_factory=dict)
    age: float = 0.0


@dataclass(frozen=True)
class LogFilter:
    """Which lines are wanted: those of a deployment, or a worker's own.

    `level` is the lowest one; `since` a time of the database.
    """

    deployment: str = ""
    worker: str | None = None
    level: str | None = None
    since: float | None = None

    def accepts(self, row: LogRow) -> bool:
        """Return whether a line is one of those."""
        return (
            row.deployment == self.deployment
            and self.worker in (None, row.worker)
            and (self.level is None or row.level in levels_from(self.level))
            and (self.since is None or row.at >= self.since)
        )

    def conditions(self) -> list[sa.ColumnElement[bool]]:
        """Return the same for SQL."""
        found: list[sa.ColumnElement[bool]] = [LOGS.c.deployment == self.deployment]
        if self.worker is not None:
            found.append(LOGS.c.worker == self.worker)
        if self.level is not None:
            found.append(LOGS.c.level.in_(levels_from(self.level)))
        if self.since is not None:
            found.append(LOGS.c.at >= self.since)
        return found


def levels_from(lowest: str) -> tuple[str, ...]:
    """Return a level and those above it.

    >>> levels_from("error")
    ('error', 'critical')
    """
    return LEVELS[LEVELS.index(lowest) :]


class Logs:
    """The newest lines; their number is bounded. `most` is the number of those of one owner."""

    def __init__(self, database: Database, most: int = MOST_LINES) -> None:
        self._database = database
        self._most = most
        # Lines of each deployment and worker that this process added since it last deleted old ones.
        self._added: dict[tuple[str, str], int] = {}

    def add(self, worker: str, lines: Sequence[LogLine]) -> None:
        """Store lines of a worker, in their order; lines of unknown deployments are the worker's own."""
        if not lines:
            return
        with self._database.write() as session:
            last = next_number(session, _NUMBERS, len(lines))
            known = _known(session, {line.deployment for line in lines if line.deployment})
            first = last - len(lines) + 1
            rows = [_row(number, line, known) for number, line in enumerate(lines, first)]
            insert = LOGS.insert().values(
                worker=worker, at=self._database.now - sa.bindparam("age", type_=sa.Double)
            )
            session.execute(insert, rows)
            counts = self._counted(worker, rows)
            full = [owner for owner, count in counts.items() if count >= _SLACK]
            for owner in full:
                self._thin(session, *owner)
        self._added.update(counts | dict.fromkeys(full, 0))

    def after(
        self, number: int = 0, wanted: LogFilter | None = None, *, most: int = 1000
    ) -> list[LogRow]:
        """Return lines with a greater number, the oldest first; without a filter those of all."""
        query = sa.select(LOGS).where(LOGS.c.number > number).order_by(LOGS.c.number).limit(most)
        return self._read(query.where(*wanted.conditions()) if wanted else query)

    def newest(self, wanted: LogFilter, most: int) -> list[LogRow]:
        """Return the newest lines, the oldest of them first."""
        query = sa.select(LOGS).where(*wanted.conditions()).order_by(LOGS.c.number.desc())
        return self._read(query.limit(most))[::-1]

    def last(self) -> int:
        """Return the number of the newest line; 0 if there is none."""
        with self._database.read() as session:
            return int(session.execute(sa.select(sa.func.max(LOGS.c.number))).scalar() or 0)

    def has_worker(self, worker: str) -> bool:
        """Return whether there are lines of a worker."""
        with self._database.read() as session:
            query = sa.select(LOGS.c.number).where(LOGS.c.worker == worker).limit(1)
            return session.execute(query).first() is not None

    def remove_orphans(self) -> None:
        """Delete lines of deployments that were removed, and old ones of workers that have gone."""
        gone = ~sa.exists().where(DEPLOYMENTS.c.name == LOGS.c.deployment)
        silent = ~sa.exists().where(WORKERS.c.id == LOGS.c.worker)
        old = LOGS.c.at < self._database.now - _GONE_FOR
        own = LOGS.c.deployment == ""
        with self._database.read() as session:
            found = session.execute(sa.select(LOGS.c.deployment).distinct().where(~own, gone))
            names = sorted(found.scalars())
        with self._database.write() as session:
            session.execute(LOGS.delete().where(LOGS.c.deployment.in_(names), gone))
            session.execute(LOGS.delete().where(own, silent, old))

    def _read(self, query: sa.Select[Any]) -> list[LogRow]:
        with self._database.read() as session:
            return [LogRow.of(row) for row in session.execute(query).mappings()]

    def _counted(self, worker: str, rows: Sequence[dict[str, Any]]) -> dict[tuple[str, str], int]:
        """Return how many lines were added since old ones were deleted, for the owners of these."""
        added = Counter((row["deployment"], "" if row["deployment"] else worker) for row in rows)
        # One that is new to this process may have as many lines as it can.
        return {owner: self._added.get(owner, _SLACK) + count for owner, count in added.items()}

    def _thin(self, session: sa.Connection, deployment: str, worker: str) -> None:
        """Delete the oldest lines of a deployment, or of a worker itself."""
        own = LOGS.c.deployment == deployment
        mine = own if deployment else sa.and_(own, LOGS.c.worker == worker)
        newest = sa.select(LOGS.c.number).where(mine).order_by(LOGS.c.number.desc())
        last = session.execute(newest.offset(self._most).limit(1)).scalar()
        if last is not None:
            session.execute(LOGS.delete().where(mine, LOGS.c.number <= last))


def _known(session: sa.Connection, names: Iterable[str]) -> set[str]:
    query = sa.select(DEPLOYMENTS.c.name).where(DEPLOYMENTS.c.name.in_(sorted(names)))
    return set(session.execute(query).scalars()) if names else set()


def _row(number: int, line: LogLine, known: set[str]) -> dict[str, Any]:
    return {
        "number": number,
        "deployment": line.deployment if line.deployment in known else "",
        "level": line.level,
        "event": line.event,
        "fields": json.dumps(line.fields),
        "age": line.age,
    }
