"""What workers held whose processes have ended on this machine: it is free at once."""

from __future__ import annotations

from collections.abc import Iterable

from penstock.config.logs import event_logger
from penstock.control.liveness import has_ended
from penstock.control.store import ControlStore
from penstock.control.store.rows import WorkerRow

log = event_logger(__name__)


def free_leases_of_the_dead(store: ControlStore, workers: Iterable[WorkerRow]) -> bool:
    """End the leases of processes that have ended on this machine; return whether there were any.

    One that is suspended lives, and keeps its leases until they lapse.
    """
    ended = [worker.id for worker in workers if has_ended(worker.process)]
    for worker in ended:
        log.warning("worker_gone", worker=worker, runs=store.leases.expire(worker))
        store.workers.leave(worker)
    return bool(ended)
