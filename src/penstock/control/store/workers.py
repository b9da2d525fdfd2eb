"""Worker processes: who they are, how loaded, and when the database last heard of them."""

from __future__ import annotations

from dataclasses import asdict

import sqlalchemy as sa

from penstock.control.store.database import Database
from penstock.control.store.rows import WorkerRow, WorkerUsage
from penstock.control.store.tables import RUNS, WORKERS


class Workers:
    """The workers; heartbeats come with the renewal of leases (`Leases.renew`)."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def join(self, id: str, host: str, pid: int, capacity: float = 1.0, process: str = "") -> None:
        """Add a worker; its id belongs to one process, never to its successor."""
        now = self._database.now
        values = {"host": host, "pid": pid, "capacity": capacity, "process": process}
        values |= {"load": 0.0, "draining": False}
        insert = self._database.upsert(WORKERS).values(id=id, started=now, seen=now, **values)
        with self._database.write() as session:
            session.execute(insert.on_conflict_do_update(index_elements=["id"], set_={"seen": now}))

    def measured(self, id: str, usage: WorkerUsage) -> None:
        """Store what a worker uses."""
        with self._database.write() as session:
            session.execute(WORKERS.update().where(WORKERS.c.id == id).values(**asdict(usage)))

    def offer(self, id: str, capacity: float) -> None:
        """Store for how much a worker counts; with 0 the shares of the others cover all deployments."""
        with self._database.write() as session:
            session.execute(WORKERS.update().where(WORKERS.c.id == id).values(capacity=capacity))

    def drain(self, id: str) -> bool:
        """Ask a worker to stop its runs and claim no others; return whether there is one."""
        draining = WORKERS.update().where(WORKERS.c.id == id).values(draining=True)
        with self._database.write() as session:
            return bool(session.execute(draining).rowcount)

    def leave(self, id: str) -> None:
        """Remove a worker that has given all its leases back."""
        with self._database.write() as session:
            session.execute(WORKERS.delete().where(WORKERS.c.id == id))

    def forget_silent(self, seconds: float) -> list[str]:
        """Remove workers that sent no heartbeat for a long time and hold nothing; return their ids."""
        silent = WORKERS.c.seen < self._database.now - seconds
        idle = ~sa.exists().where(RUNS.c.worker == WORKERS.c.id)
        gone = WORKERS.delete().where(silent, idle).returning(WORKERS.c.id)
        with self._database.write() as session:
            return sorted(id for (id,) in session.execute(gone))

    def all(self) -> list[WorkerRow]:
        """Return every worker, the oldest first."""
        query = sa.select(WORKERS).order_by(WORKERS.c.started, WORKERS.c.id)
        with self._database.read() as session:
            return [WorkerRow(**row) for row in session.execute(query).mappings()]
