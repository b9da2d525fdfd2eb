"""The functions that people call: make jobs, find them, end them."""

from __future__ import annotations

import getpass
import random
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from penstock.engine import State
from penstock.errors import ConfigError, TransientError
from penstock.jobs.definition import (
    Bounds,
    Description,
    Parser,
    describe,
    pipeline_of,
    same_place,
)
from penstock.jobs.job import Job
from penstock.jobs.keeper import keeper
from penstock.jobs.keeping import kept
from penstock.jobs.store import Kept, Store, taken
from penstock.kafka import Admin, Consumer

if TYPE_CHECKING:
    import pandas as pd

_LEAVING = 10.0


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
        A hand-over waits for `batch_size` records, at most `throttle` seconds; with a batch size of 0
        it comes at once.
    auto_commit
        Whether the group's offsets are committed after the rows are in the table; by default they are.
    as_table
        Give the parser tables (columns payload, key, topic) of many records: True or ``"pandas"`` for
        DataFrames, ``"arrow"`` for Arrow tables.
    queue_depth
        The most records of one hand-over: what is more waits in Kafka.
    delivery
        exactly-once when left out, if the table can promise it.
    options
        Anything else that a pipeline's definition has: `dead_letters`, `state`, `spark`, `restart`.

    A job is kept: after a restart of the process `resume_jobs`, or the same call, goes on where it was.
    The same call may bring another parser; other topics or another table are another job.
    """
    said = describe(
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
    return create(said, store)


def create(said: Description, store: Store | None = None) -> Job:
    """Keep a job and run it."""
    if found := keeper.find(said.name):
        if found.runs_here:
            raise taken(said.name)
        found.end()
    held = store or Store.default()
    job = Job(held, said.name, said.table)
    is_new = keep(held, said)
    if said.consumer is not None:
        _leave(said.consumer)
        job.give(said.consumer)
    try:
        return job.start()
    except BaseException:
        if is_new:
            job.forget()
        raise


def _leave(consumer: Consumer) -> None:
    """Let the consumer leave its group: a member would be in the way of the job's commits."""
    member = consumer.member_id
    consumer.unsubscribe()
    if member is None:
        return
    group, deadline = str(consumer.setting("group.id")), time.monotonic() + _LEAVING
    with Admin(consumer.connection) as admin:
        while any(member == one.id for one in admin.describe_group(group).members):
            if time.monotonic() > deadline:
                raise TransientError(f"the consumer does not leave the group {group!r}; try again")
            # librdkafka leaves when its callbacks have run, and they run in a poll.
            consumer.poll(50)


def keep(store: Store, said: Description) -> bool:
    """Keep a description; one that is kept already may be renewed. Say whether it is a new job."""
    name, options = said.name, said.options
    data = kept(said.definition)
    pipeline_of(data)  # what is wrong with it is told now
    found = store.get(name)
    if found is None:
        store.add(Kept(name, _number(store), getpass.getuser(), time.time(), data, options))
        store.note(name, "created")
        return True
    if found.is_alive:
        raise taken(name)
    if not same_place(found.definition, data):
        raise ConfigError(
            f"there is a job {name!r} that reads other topics or fills another table; "
            f"penstock.cancel({name!r}) ends it, and then the name is free"
        )
    renewed = replace(
        found, definition=data, options=options, cancelled=False, state=State.STOPPED.value
    )
    store.renew(renewed)
    return False


def jobs(store: Store | None = None) -> list[Job]:
    """Return every job, whether it runs in this process, in another, or nowhere."""
    held = store or Store.default()
    return [keeper.find(found.name) or Job(held, found.name) for found in held.all()]


def job_stats(store: Store | None = None) -> pd.DataFrame:
    """Return a table of all jobs: what they did, what failed, how far behind they are."""
    from penstock.jobs.statistics import table_of  # noqa: PLC0415

    held = store or Store.default()
    return table_of(_now(held, found) for found in held.all())


def _now(store: Store, found: Kept) -> Kept:
    job = keeper.find(found.name)
    return job.now() if job and job.store.place == store.place else found


def resume_jobs(store: Store | None = None, names: Sequence[str] = ()) -> list[Job]:
    """Run the jobs that are kept and run nowhere, from where they were; return those that run now."""
    held = store or Store.default()
    wanted = [find_job(name, held) for name in names] or jobs(held)
    return [job.start() for job in wanted if names or not job.kept.is_alive]


def find_job(what: Job | str | int, store: Store | None = None) -> Job:
    """Return a job by its handle, its name or its subscription id; a name wins over an id."""
    if isinstance(what, Job):
        return what
    held = store or Store.default()
    found = held.find(what)
    return keeper.find(found.name) or Job(held, found.name)


def cancel(what: Job | str | int, store: Store | None = None) -> None:
    """End a job, by its handle, name or subscription id, and forget it."""
    find_job(what, store).cancel()


def job_consumer(what: Job | str | int, store: Store | None = None) -> Consumer:
    """Return the consumer of a job's group, to look at offsets with."""
    return find_job(what, store).consumer


def _number(store: Store) -> str:
    taken_ids = {job.id for job in store.all()}
    while True:
        number = str(random.SystemRandom().randrange(10**7, 10**9))
        if number not in taken_ids:
            return number
