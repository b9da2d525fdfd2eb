"""How often deployments were started again, by reason."""

from __future__ import annotations

from collections.abc import Mapping

import sqlalchemy as sa

from penstock.control.store.database import Database
from penstock.control.store.tables import DEPLOYMENTS, RESTARTS, RUNS
from penstock.engine.restart_reason import RestartReason

Counts = Mapping[tuple[str, RestartReason], int]
"""Numbers by deployment and reason."""


_KNOWN = {reason.value for reason in RestartReason}


class Restarts:
    """Counters that only increase. Workers report them each second: a kill may lose the last ones."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, counts: Counts) -> None:
        """Add to the counters; deployments that were removed meanwhile are left out."""
        with self._database.write() as session:
            for (name, reason), count in sorted(counts.items()):
                exists = sa.exists().where(DEPLOYMENTS.c.name == name)
                values = (sa.literal(name), sa.literal(reason.value), sa.literal(count))
                given = sa.select(*values).where(exists)
                insert = self._database.upsert(RESTARTS)
                added = insert.from_select(["deployment", "reason", "count"], given)
                session.execute(
                    added.on_conflict_do_update(
                        index_elements=["deployment", "reason"],
                        set_={"count": RESTARTS.c.count + insert.excluded.count},
                    )
                )

    def all(self) -> dict[tuple[str, RestartReason], int]:
        """Return all counters; takeovers from lost workers, which claims count, are among them."""
        lost = sa.select(RUNS.c.deployment, RUNS.c.takeovers).where(RUNS.c.takeovers > 0)
        with self._database.read() as session:
            rows = session.execute(sa.select(RESTARTS)).mappings().all()
            taken = session.execute(lost).all()
        counts = {
            (row["deployment"], RestartReason(row["reason"])): row["count"]
            for row in rows
            if row["reason"] in _KNOWN  # a worker of a newer release may know more
        }
        return counts | {(name, RestartReason.WORKER_LOST): count for name, count in taken}
