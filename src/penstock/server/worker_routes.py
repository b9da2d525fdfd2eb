"""Workers: list, drain."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Depends

from penstock.control.placement import is_alive
from penstock.control.roles import Role
from penstock.control.store import ControlStore
from penstock.control.store.rows import WorkerRow
from penstock.errors import ConfigError, NotFoundError, nearest
from penstock.server.app_state import PAGE, Cursor, Limit, Store
from penstock.server.caller import Caller, requires
from penstock.server.deployment_access import is_name
from penstock.server.paging import after, page

router = APIRouter(prefix="/workers", tags=["workers"])


@router.get("", dependencies=[Depends(requires(Role.VIEWER))])
def list_workers(store: Store, limit: Limit = PAGE, cursor: Cursor = None) -> dict[str, Any]:
    """Return the workers, in the order of their ids."""
    last = after(cursor)
    if not isinstance(last, str | None):
        raise ConfigError("the cursor is not one of a list of workers; give none to start over")
    rows = sorted(shown_workers(store), key=lambda row: str(row["id"]))
    rest = [row for row in rows if last is None or row["id"] > last]
    return page(rest, limit, key=lambda row: row["id"], shown=lambda row: row)


@router.post("/{id}/drain", status_code=202)
def drain(id: str, store: Store, access: Caller) -> dict[str, Any]:
    """Ask a worker to pass its runs to others and to claim no more; for operators of everything."""
    requires(Role.OPERATOR)(access)
    with store.change():
        if not is_name(id) or not store.workers.drain(id):
            ids = [worker.id for worker in store.workers.all()]
            hint = nearest(id, ids) if ids else "there are none"
            raise NotFoundError(f"there is no worker {id[:200]!r}; {hint}")
        store.audit.add(access.user, "worker.drain", id)
    return {"id": id, "draining": True}


def shown_workers(store: ControlStore) -> list[dict[str, Any]]:
    """Return every worker with its age and its runs."""
    now = store.database.time()
    held = [run.worker for run in store.leases.all() if run.is_held(now)]
    return [_shown(worker, now, held.count(worker.id)) for worker in store.workers.all()]


def _shown(worker: WorkerRow, now: float, runs: int) -> dict[str, Any]:
    return {
        "id": worker.id,
        "host": worker.host,
        "pid": worker.pid,
        "capacity": worker.capacity,
        "load": worker.load,
        "started": worker.started,
        "seen": worker.seen,
        "heartbeat_age": max(0.0, now - worker.seen),
        "alive": is_alive(worker, now),
        "draining": worker.draining,
        "runs": runs,
    }
