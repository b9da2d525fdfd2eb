"""The public functions for jobs: create, find, resume and cancel them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from penstock.control.job_spec import JobSpec, pipeline_of
from penstock.control.store.rows import Desired
from penstock.control.stored_functions import serialize
from penstock.errors import ConfigError, GroupInUseError, TransientError
from penstock.jobs.job import Job
from penstock.jobs.job_definition import (
    Bounds,
    Description,
    Parser,
    describe,
    same_place,
)
from penstock.jobs.job_store import JobRow, JobRunsElsewhereError, Store, taken
from penstock.jobs.server_store import ServerStore
from penstock.jobs.statistics import table_of
from penstock.kafka import Admin, Consumer
from penstock.retry import retry

if TYPE_CHECKING:
    import pandas as pd

_LEAVING = 60.0
_LOOKS, _PAUSE = 3, 0.05


def create_job(  # noqa: PLR0917 - the order of createSubJob
    source: Any,
    table: Any,
    parser: Parser = None,
    name: str | None = None,
    throttle: float = 1.0,
    auto_commit: bool | None = None,
    as_table: bool | str = False,
    batch_size: int = 0,
    queue_depth: int = 1_000_000,
    *,
    connection: Any = None,
    group: str | None = None,
    start: Any = "earliest",
    schema: str | None = None,
    steps: Sequence[Any] = (),
    delivery: str | None = None,
    store: Store | None = None,
    server: str | None = None,
    **options: Any,
) -> Job:
    """Stream topics through a parser into a table, in the background, and return the job.

    Parameters
    ----------
    source
        A topic, a list of topics, a compiled pattern, or a Consumer, whose subscription the job takes
        over.
    table
        A `Table`, the name of a table in memory, a sink as in ``{"delta": "lake/trades"}``, or an empty
        DataFrame.
    parser
        A function of value, of value and key, or of value, key and topic, as text; ``"module:function"``;
        or, instead of a function, the columns of the JSON: ``"symbol string, price double"``.
    name
        A name that no other job has; the topics when left out.
    throttle, batch_size
        A batch starts when `batch_size` records wait, or after `throttle` seconds; with a batch size
        of 0 it starts immediately.
    auto_commit
        Whether the group's offsets are committed after the rows are in the table; by default they are.
    as_table
        Pass tables (columns payload, key, topic) of many records to the parser: True or ``"pandas"`` for
        DataFrames, ``"arrow"`` for Arrow tables.
    queue_depth
        The maximum number of records in a batch; the rest stays in Kafka.
    delivery
        exactly-once when left out, if the table supports it.
    server
        The address of a server whose workers run the job, instead of this process. Functions are given
        by their import paths then, and the table is outside of memory.
    options
        Anything else that a pipeline's definition has: `dead_letters`, `state`, `spark`, `restart`.

    A job is stored: after a restart of the process `resume_jobs`, or the same call, resumes it.
    The same call may pass another parser; other topics or another table are another job.
    """
    description = describe(
        source,
        table,
        parser,
        name,
        bounds=Bounds(throttle, batch_size, queue_depth),
        auto_commit=auto_commit,
        as_table=as_table,
        connection=connection,
        group=group,
        start=start,
        schema=schema,
        steps=steps,
        delivery=delivery,
        **options,
    )
    if server is not None:
        return create_on_server(description, server)
    return create(description, store)


def create_on_server(description: Description, server: str) -> Job:
    """Deploy a job on a server."""
    store = ServerStore(server)
    if description.consumer is not None:
        _leave(description.consumer)
    return Job(store, store.put(description), description.table)


def create(description: Description, store: Store | None = None) -> Job:
    """Store a job and run it."""
    job_store = store or Store.default()
    if (running := job_store.handle(description.name)) and running.runs_here:
        raise taken(description.name)
    job = Job(job_store, description.name, description.table)
    # It is stopped until this process has it: no worker of the store is faster.
    is_new = store_job(job_store, description, Desired.STOPPED)
    if description.consumer is not None:
        _leave(description.consumer)
        job.give(description.consumer)
    try:
        if description.consumer is None:
            return job.start()
        return _start_after(description.consumer, job)
    except BaseException:
        if is_new:
            job.cancel()
        raise


def _start_after(consumer: Consumer, job: Job) -> Job:
    """Start a job in the group of a consumer that has left, or will have left in a moment."""

    def left(error: Exception) -> float | None:
        if not isinstance(error, GroupInUseError):
            return None
        _leave(consumer)  # a pending join request may have made it a member again
        return 0.0

    return retry(job.start, left, within=_LEAVING)


def _leave(consumer: Consumer) -> None:
    """Make the consumer leave its group: as a member it would prevent the job's commits."""
    ids = {consumer.member_id}
    consumer.unsubscribe()
    group, deadline = str(consumer.setting("group.id")), time.monotonic() + _LEAVING
    absent = 0
    with Admin(consumer.connection) as admin:
        # The broker may not have seen a pending join request: check more than once.
        while absent < _LOOKS:
            # librdkafka leaves when its callbacks have run, and they run in a poll.
            consumer.poll(_PAUSE)
            ids |= {now := consumer.member_id}
            absent = 0 if now or _members(admin, group) & ids else absent + 1
            if time.monotonic() > deadline:
                raise TransientError(f"the consumer does not leave the group {group!r}; try again")


def _members(admin: Admin, group: str) -> set[str | None]:
    try:
        return {member.id for member in admin.describe_group(group).members}
    except ConfigError:  # no consumer has ever joined it
        return set()


def store_job(store: Store, description: Description, desired: Desired) -> bool:
    """Store a job, or update one that is not running; return whether it is a new job."""
    name = description.name
    data = serialize(description.definition)
    pipeline_of(data, trusted=True)  # created here; mistakes are reported now
    existing = store.get(name)
    if existing is not None:
        if existing.is_alive:
            raise taken(name)
        if not same_place(existing.definition, data):
            raise ConfigError(
                f"there is a job {name!r} that reads other topics or fills another table; "
                f"penstock.cancel({name!r}) ends it, and then the name is free"
            )
    id = existing.id if existing else store.new_id()
    store.put(name, JobSpec(data, description.options, id), desired)
    return existing is None


def jobs(store: Store | None = None) -> list[Job]:
    """Return every job, whether it runs in this process, in another, or nowhere."""
    job_store = store or Store.default()
    return [_handle(job_store, row.name) for row in job_store.all()]


def _handle(store: Store, name: str) -> Job:
    return store.handle(name) or Job(store, name)


def job_stats(store: Store | None = None) -> pd.DataFrame:
    """Return a table of all jobs: their state, counters and lag."""
    job_store = store or Store.default()
    return table_of(_now(job_store, row) for row in job_store.all())


def _now(store: Store, row: JobRow) -> JobRow:
    job = store.handle(row.name)
    return job.now() if job else row


def resume_jobs(store: Store | None = None, names: Sequence[str] = ()) -> list[Job]:
    """Run the stored jobs that no process runs, from where they stopped; return the started ones."""
    job_store = store or Store.default()
    if names:
        return [find_job(name, job_store).start() for name in names]
    started = []
    for job in jobs(job_store):
        if job.row.is_alive:
            continue
        # Its heartbeat may have arrived, or another process may have been faster.
        with suppress(JobRunsElsewhereError):
            started.append(job.start())
    return started


def find_job(what: Job | str | int, store: Store | None = None) -> Job:
    """Return a job by its handle, its name or its subscription id; a name wins over an id."""
    if isinstance(what, Job):
        return what
    job_store = store or Store.default()
    row = job_store.find(what)
    return _handle(job_store, row.name)


def cancel(what: Job | str | int, store: Store | None = None) -> None:
    """End a job, by its handle, name or subscription id, and delete it."""
    find_job(what, store).cancel()


def job_consumer(what: Job | str | int, store: Store | None = None) -> Consumer:
    """Return the consumer of a job's group, for reading offsets."""
    return find_job(what, store).consumer
