"""Stored jobs become deployments: with their counters, their events, and without secrets in the clear.

It describes the tables as version 2 has them, for migrations that run later releases' code.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import sqlalchemy as sa

from penstock.control.store.migrations.stored_job import StoredJob
from penstock.control.store.rows import FAILED, PENDING, Desired, Kind
from penstock.errors import SetupError

Seal = Callable[[str, Any], Any]
"""Returns data of a deployment of this name with its secrets encrypted."""
UNCLEAN = 1
"""SQLite's user_version while deleted rows with secrets are still in pages of the file."""
_STOPPED = "STOPPED"


def _table(name: str, *columns: str) -> Any:
    return sa.table(f"penstock_{name}", *map(sa.column, columns))


_JOBS = _table("jobs", *StoredJob.__dataclass_fields__)
_JOB_EVENTS = _table("job_events", "number", "name", "at", "text")
_SEQUENCE = _table("sequence", "name", "value")
_DEPLOYMENTS = _table(
    "deployments", "name", "kind", "spec", "labels", "desired", "generation", "round", "revision",
    "created", "created_by", "changed", "changed_by",
)  # fmt: skip
_SPECS = _table("specs", "deployment", "generation", "kind", "spec", "labels", "at", "by")
_RUNS = _table(
    "runs", "deployment", "state", "token", "lease_until", "generation", "error", "failed"
)
_COUNTERS = _table(
    "counters", "deployment", "epoch", "batch", "batches", "records", "rows", "failed", "rate",
    "last_batch", "last_error", "last_failed",
)  # fmt: skip
_EVENTS = _table("events", "number", "deployment", "kind", "text", "at")


def take_over_jobs(session: sa.Connection, seal: Seal, now: Any) -> list[str]:
    """Move all jobs of the store to deployments of kind job; return their names.

    Raises
    ------
    SetupError
        When the process of a job still runs: it would not know of the lease.
    """
    taken = set(session.execute(sa.select(_DEPLOYMENTS.c.name)).scalars())
    rows = session.execute(sa.select(_JOBS).order_by(_JOBS.c.created)).mappings().all()
    jobs = [StoredJob.of(row) for row in rows if row["name"] not in taken]
    for job in jobs:
        _refuse_running(job)
    second = int(session.execute(sa.select(now)).scalar_one())
    for job in jobs:
        _move(session, job, seal, second)
    if jobs:
        _discard(session)
    return [job.name for job in jobs]


def _refuse_running(job: StoredJob) -> None:
    if job.is_alive:
        raise SetupError(
            f"the job {job.name!r} runs in process {job.pid} on {job.host}; stop that process before its "
            "jobs are taken over by the control plane"
        )


def _move(session: sa.Connection, job: StoredJob, seal: Seal, second: int) -> None:
    number = _moved_events(session, job.name)
    data = {"definition": job.definition, "options": job.options, "id": job.id}
    spec = json.dumps(seal(job.name, data), indent=2)
    common = {"kind": Kind.JOB.value, "spec": spec, "labels": "{}", "generation": 1}
    stamps = {"created": job.created, "created_by": job.user}
    changed = {"changed": job.created, "changed_by": job.user}
    desired = desired_of(job).value
    session.execute(
        _DEPLOYMENTS.insert().values(
            name=job.name, **common, **stamps, **changed, desired=desired, round=0, revision=number
        )
    )
    stored = _SPECS.insert().values(deployment=job.name, **common, at=job.created, by=job.user)
    session.execute(stored)
    session.execute(_RUNS.insert().values(**_run_of(job, second)))
    counts = {
        each.name: getattr(job, each.name) for each in _COUNTERS.c if each.name != "deployment"
    }
    session.execute(_COUNTERS.insert().values(deployment=job.name, **counts))


def _discard(session: sa.Connection) -> None:
    """Delete the moved rows, which may have secrets in the clear, from the files of the database, too."""
    moved = sa.select(_DEPLOYMENTS.c.name)
    session.execute(_JOBS.delete().where(_JOBS.c.name.in_(moved)))
    session.execute(_JOB_EVENTS.delete().where(_JOB_EVENTS.c.name.in_(moved)))
    if session.dialect.name == "sqlite":
        session.execute(sa.text(f"PRAGMA user_version = {UNCLEAN}"))
    elif not session.execute(sa.select(_JOBS.c.name).limit(1)).first():
        session.execute(sa.text("TRUNCATE penstock_jobs, penstock_job_events"))


def desired_of(job: StoredJob) -> Desired:
    """Return what a job should do: one that was stopped is not started by an upgrade."""
    if job.cancelled:
        return Desired.DELETED
    return Desired.STOPPED if job.state == _STOPPED else Desired.RUNNING


def _run_of(job: StoredJob, second: int) -> Mapping[str, Any]:
    failed = job.state == FAILED
    return {
        "deployment": job.name,
        "state": job.state if failed or job.state == _STOPPED else PENDING,
        # A failed job is not tried again before it is changed, or a restart is asked for.
        "generation": 1 if failed else 0,
        "token": max(second, job.epoch),
        "lease_until": 0.0,
        "error": job.last_error if failed else None,
        "failed": job.last_failed if failed else None,
    }


def _moved_events(session: sa.Connection, name: str) -> int:
    """Copy the events of a job, numbered after all others; return the last number."""
    mine = sa.select(_JOB_EVENTS).where(_JOB_EVENTS.c.name == name).order_by(_JOB_EVENTS.c.number)
    events = session.execute(mine).mappings().all()
    counted = _SEQUENCE.update().where(_SEQUENCE.c.name == "numbers")
    session.execute(counted.values(value=_SEQUENCE.c.value + len(events) + 1))
    last = int(session.execute(sa.select(_SEQUENCE.c.value)).scalar_one())
    first = last - len(events)
    rows = [
        {
            "number": first + n,
            "deployment": name,
            "kind": "job",
            "text": event["text"],
            "at": event["at"],
        }
        for n, event in enumerate(events)
    ]
    moved = {"deployment": name, "kind": "created", "text": "taken over from the stored jobs"}
    time = rows[-1]["at"] if rows else 0.0
    session.execute(_EVENTS.insert(), [*rows, {"number": last, "at": time, **moved}])
    return last
