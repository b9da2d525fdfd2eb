"""The lag of each partition that deployments read, as their workers last reported it."""

from __future__ import annotations

import json
from collections.abc import Mapping

import sqlalchemy as sa

from penstock.control.store.database import Database
from penstock.control.store.tables import PARTITION_LAG, RUNS

MOST = 1000
"""The number of partitions of a deployment that are stored; the lag of the rest is one sum."""
OTHERS = ("", "others")
"""The topic and partition that this sum is stored for."""
FRESH = 120.0
"""For how many seconds a report counts: a deployment that does not run has no lag that is known."""
TopicPartition = tuple[str, str]


class PartitionLags:
    """One row for each deployment; its size is bounded."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def put(self, worker: str, lags: Mapping[str, Mapping[str, int]]) -> None:
        """Store the lag of deployments, by `topic-partition`; those of other workers are left out."""
        mine = sa.select(RUNS.c.deployment).where(RUNS.c.worker == worker)
        insert = self._database.upsert(PARTITION_LAG)
        given = {"lag": insert.excluded.lag, "at": insert.excluded.at}
        with self._database.write() as session:
            now = float(session.execute(sa.select(self._database.now)).scalar_one())
            held = set(session.execute(mine).scalars())
            rows = [
                {"deployment": name, "lag": _text(lag), "at": now}
                for name, lag in sorted(lags.items())
                if name in held
            ]
            if rows:
                upsert = insert.on_conflict_do_update(index_elements=["deployment"], set_=given)
                session.execute(upsert, rows)

    def all(self) -> dict[str, dict[TopicPartition, int]]:
        """Return the lag of the deployments that run, by topic and partition."""
        fresh = PARTITION_LAG.c.at > self._database.now - FRESH
        query = sa.select(PARTITION_LAG.c.deployment, PARTITION_LAG.c.lag).where(fresh)
        with self._database.read() as session:
            rows = session.execute(query).all()
        return {name: _read(text) for name, text in rows}


def bounded(lag: Mapping[str, int], most: int = MOST) -> dict[TopicPartition, int]:
    """Return the lag by topic and partition: the first ones by name, the others as one sum.

    Which ones are first does not depend on their lag, so that series do not come and go.

    >>> bounded({"t-10": 1, "t-2": 2, "a-b-0": 3}, most=2)
    {('a-b', '0'): 3, ('t', '2'): 2, ('', 'others'): 1}
    """
    places = sorted(
        (topic, int(number), each) for each in lag for topic, _, number in [each.rpartition("-")]
    )
    found = {(topic, str(number)): lag[each] for topic, number, each in places[:most]}
    if rest := places[most:]:
        found[OTHERS] = sum(lag[each] for *_, each in rest)
    return found


def _text(lag: Mapping[str, int]) -> str:
    return json.dumps([[*place, value] for place, value in bounded(lag).items()])


def _read(text: str) -> dict[TopicPartition, int]:
    return {(topic, partition): lag for topic, partition, lag in json.loads(text)}
