"""Progress over time: points of ten seconds for an hour, of a minute for a day.

Each sample goes into one point of both series, so that nothing has to be computed later. The counts of a
point are totals at its end; a reader takes differences.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

import sqlalchemy as sa

from penstock.control.store.database import Database
from penstock.control.store.tables import SAMPLES

SERIES = {10: 3600, 60: 86_400}
"""The length of a point, and for how long points of that length are stored, in seconds."""
_FUTURE = 86_400


@dataclass(frozen=True)
class Sample:
    """The totals of a deployment at one time, and how far it is behind."""

    batches: int = 0
    records: int = 0
    rows: int = 0
    failed: int = 0
    lost: int = 0
    lag: int = 0


@dataclass(frozen=True)
class Point:
    """The last sample of a span of time that begins `at`; `most_lag` is the greatest lag in it."""

    at: int
    sample: Sample
    most_lag: int


class Samples:
    """The series of all deployments; their size is bounded."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, samples: Mapping[str, Sample]) -> None:
        """Store the samples of several deployments, and delete points that are too old."""
        now = self._database.time()
        rows = [
            {"deployment": name, "resolution": length, "at": int(now // length * length)}
            | {**asdict(sample), "most_lag": sample.lag}
            for length in SERIES
            for name, sample in sorted(samples.items())
        ]
        with self._database.write() as session:
            if rows:
                session.execute(self._upsert(), rows)
            self._thin(session, now)

    def _upsert(self) -> sa.Executable:
        insert = self._database.upsert(SAMPLES)
        given = insert.excluded
        greater = sa.case((SAMPLES.c.most_lag < given.lag, given.lag), else_=SAMPLES.c.most_lag)
        latest = {name: given[name] for name in Sample.__dataclass_fields__}
        statement: sa.Executable = insert.on_conflict_do_update(
            index_elements=["deployment", "resolution", "at"], set_={**latest, "most_lag": greater}
        )
        return statement

    def _thin(self, session: sa.Connection, now: float) -> None:
        """Delete old points, and those of a clock that was far ahead."""
        for length, kept in SERIES.items():
            outside = sa.or_(SAMPLES.c.at < now - kept, SAMPLES.c.at > now + _FUTURE)
            session.execute(SAMPLES.delete().where(SAMPLES.c.resolution == length, outside))

    def latest(self) -> dict[str, Point]:
        """Return the newest point of each deployment, of the finest series."""
        mine = SAMPLES.c.resolution == min(SERIES)
        newest = (
            sa.select(SAMPLES.c.deployment, sa.func.max(SAMPLES.c.at).label("at"))
            .where(mine)
            .group_by(SAMPLES.c.deployment)
            .subquery()
        )
        same = sa.and_(SAMPLES.c.deployment == newest.c.deployment, SAMPLES.c.at == newest.c.at)
        query = sa.select(SAMPLES).join(newest, same).where(mine)
        with self._database.read() as session:
            rows = session.execute(query).mappings().all()
        return {row["deployment"]: _point(row) for row in rows}

    def of(self, deployment: str, resolution: int, since: float = 0) -> list[Point]:
        """Return the points of a deployment, the oldest first."""
        query = sa.select(SAMPLES).where(
            SAMPLES.c.deployment == deployment,
            SAMPLES.c.resolution == resolution,
            SAMPLES.c.at >= since,
        )
        with self._database.read() as session:
            rows = session.execute(query.order_by(SAMPLES.c.at)).mappings().all()
        return [_point(row) for row in rows]


def _point(row: sa.RowMapping) -> Point:
    sample = Sample(**{name: row[name] for name in Sample.__dataclass_fields__})
    return Point(row["at"], sample, row["most_lag"])
