"""The topic between an import and the pipeline behind it: it holds what is not processed yet, no more."""

from __future__ import annotations

import time

from penstock.config import Connection
from penstock.errors import PenstockError
from penstock.imports.import_plan import ImportPlan
from penstock.kafka import Admin
from penstock.pipeline import Partition

# The import waits while this many records are not processed.
_MOST = 2_000_000
_EVERY = 5.0


class Intake:
    """Deletes what the pipeline has committed, and holds the import back when too much waits.

    It is about Penstock's own topic alone (`<pipeline>.in`): a topic that the definition names is kept.
    """

    def __init__(self, plan: ImportPlan, connection: Connection) -> None:
        self._topic = plan.own_topic
        self._group = plan.behind.group_id if plan.behind else ""
        self._admin = Admin(connection) if self._topic else None
        self._looked = 0.0
        self._waiting = 0
        self._committed: dict[Partition, int] = {}

    @property
    def was_full(self) -> bool:
        """Return whether the import had to wait for the pipeline when that was looked at last."""
        return self._waiting > _MOST

    def is_full(self) -> bool:
        """Return whether the import must wait for the pipeline."""
        if self.was_full:
            self.trim()
        return self.was_full

    def trim(self) -> None:
        """Look how far the pipeline is, every few seconds, and delete what it has committed."""
        if self._admin is None or time.monotonic() - self._looked < _EVERY:
            return
        self._looked = time.monotonic()
        try:
            partitions = self._admin.partitions([self._topic or ""])
            committed = self._admin.committed(self._group, partitions)
            oldest, latest = self._admin.earliest(partitions), self._admin.latest(partitions)
            self._waiting = sum(latest[p] - committed.get(p, oldest[p]) for p in partitions)
            # Not what was committed last: Spark may repeat that batch, until it has begun the next one.
            done = {
                p: self._committed[p]
                for p, offset in committed.items()
                if oldest[p] < self._committed.get(p, 0) < offset
            }
            self._committed |= {
                p: offset for p, offset in committed.items() if offset > self._committed.get(p, -1)
            }
            if done:
                self._admin.delete_records(done)
        except PenstockError:
            return  # the broker is away, or the topic not made yet: the round says so

    def close(self) -> None:
        """Close the connection."""
        if self._admin is not None:
            self._admin.close()
