"""The job store: definitions, counters and events, in SQLite or another database.

A batch is counted once, even if it is run again after a kill: its mark is stored with the counters.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError, OperationalError, SQLAlchemyError

from penstock.config.directories import data_dir
from penstock.config.secrets import mask
from penstock.engine import Done, State
from penstock.errors import ConfigError, FencedError, SetupError, TransientError, nearest
from penstock.jobs.job_row import EVENTS, JOBS, METADATA, Event, JobRow
from penstock.jobs.job_trust import PLACE, distrust, make_private
from penstock.jobs.liveness import SILENT, is_here, this_process
from penstock.jobs.serialization import by_value
from penstock.retry import wait_for

__all__ = ["SILENT", "Event", "JobRow", "JobRunsElsewhereError", "Store", "taken"]
_EVENTS = 1000
# A process whose heartbeats stopped is watched for this long before its job is taken over: a clock may
# have been set, and a live process sends a heartbeat every second.
_WATCHED = 3.0


class JobRunsElsewhereError(ConfigError):
    """Another process runs the job."""


class Store:
    """Jobs in a database; `place` is a file for SQLite or a SQLAlchemy URL."""

    def __init__(self, place: str | Path) -> None:
        given = str(place)
        self.file = None if "://" in given else Path(given).absolute()
        url = given if self.file is None else f"sqlite:///{self.file}"
        if self.file is not None:
            make_private(self.file)
        self.owner = this_process()
        self.place = sa.engine.make_url(url).render_as_string(hide_password=True)
        self._engine = sa.create_engine(
            url, connect_args={"timeout": 30} if url.startswith("sqlite") else {}
        )
        if self.file is not None:
            sa.event.listen(self._engine, "connect", _tuned)
        try:
            METADATA.create_all(self._engine)
            self._grow()
        except SQLAlchemyError as error:
            raise SetupError(f"the jobs in {self.place} cannot be opened: {error}") from None

    @classmethod
    def default(cls) -> Store:
        """Return the user's own store, always the same object."""
        place = os.environ.get(PLACE) or str(data_dir() / "jobs.sqlite")
        if place not in _opened:
            _opened[place] = cls(place)
        return _opened[place]

    def close(self) -> None:
        """Close the database."""
        self._engine.dispose()

    def _grow(self) -> None:
        """Add the columns that are missing in a table of an older version."""
        existing = {column["name"] for column in sa.inspect(self._engine).get_columns(JOBS.name)}
        with self._engine.begin() as session:
            for column in JOBS.columns:
                if column.name not in existing:
                    how = sa.schema.CreateColumn(column).compile(dialect=self._engine.dialect)
                    session.execute(sa.text(f"ALTER TABLE {JOBS.name} ADD COLUMN {how}"))

    @contextmanager
    def _session(self) -> Iterator[sa.Connection]:
        """Open a transaction; raise `TransientError` if the database is unavailable or locked."""
        try:
            with self._engine.begin() as session:
                yield session
        except OperationalError as error:
            raise TransientError(
                f"the jobs in {self.place} cannot be reached: {error.orig}"
            ) from None

    def add(self, job: JobRow) -> None:
        """Store a new job; its name must be free."""
        self.require_trust(job)
        try:
            with self._session() as session:
                session.execute(JOBS.insert().values(**job.columns()))
        except IntegrityError:
            raise taken(job.name) from None

    def renew(self, job: JobRow) -> None:
        """Replace the definition of a job; its counters are kept."""
        self.require_trust(job)
        names = ("definition", "options", "cancelled", "state", "seen")
        self._update(job.name, **{name: job.columns()[name] for name in names})

    def require_trust(self, job: JobRow) -> None:
        """Refuse a job with a function stored by value, unless the store is a private file.

        Such a function is code, and anyone who can write to the store chooses what it does.
        """
        if by_value(job.definition) and (reason := distrust(self.file)):
            raise ConfigError(
                f"the job {job.name!r} has a function without an import path, and the jobs are stored in "
                f"{self.place}: only a private file of your own may contain code, and {reason}; put the "
                "function into a module and give it as 'module:function'"
            )

    def take(self, name: str) -> None:
        """Make this process the owner of a job; refuse if another process runs it."""
        job = self.get(name)
        if job is None:
            raise ConfigError(f"the job {name!r} was cancelled and does not exist any more")
        if job.owner != self.owner and (job.is_alive or self._is_heard_of(job)):
            raise _runs_elsewhere(job)
        unchanged = sa.and_(JOBS.c.name == name, JOBS.c.owner == job.owner, JOBS.c.seen == job.seen)
        here = {"host": socket.gethostname(), "pid": os.getpid(), "owner": self.owner}
        changed = here | {"state": State.STARTING.value, "seen": time.time()}
        if not self._update(name, unchanged, **changed):
            raise _runs_elsewhere(self.find(name))

    def _is_heard_of(self, job: JobRow) -> bool:
        """Return whether a new heartbeat arrives from a silent process of another machine."""
        if not job.is_claimed or is_here(job.owner):
            return False

        def has_changed() -> bool:
            now = self.get(job.name)
            return now is None or (now.owner, now.seen) != (job.owner, job.seen)

        return wait_for(has_changed, within=_WATCHED, every=_WATCHED / 10)

    def get(self, name: str) -> JobRow | None:
        """Return the job of this name."""
        return next(self._select(JOBS.c.name == name), None)

    def find(self, what: str | int) -> JobRow:
        """Return a job by its name or its subscription id; a name wins over an id."""
        match = self.get(str(what)) or next(self._select(JOBS.c.id == str(what)), None)
        if match is None:
            names = [job.name for job in self.all()]
            hint = nearest(str(what), names) if names else "there are none: create_job makes one"
            raise ConfigError(f"there is no job {what!r}; {hint}")
        return match

    def all(self) -> list[JobRow]:
        """Return every job, the oldest first."""
        return list(self._select(sa.true()))

    def count(self, name: str, done: Done) -> None:
        """Add the counts of a batch, unless it was counted before."""
        newer = sa.or_(
            JOBS.c.epoch < done.mark.epoch,
            sa.and_(JOBS.c.epoch == done.mark.epoch, JOBS.c.batch < done.mark.batch),
        )
        now = time.time()
        changed: dict[str, Any] = {
            "batches": JOBS.c.batches + 1,
            "records": JOBS.c.records + done.records,
            "rows": JOBS.c.rows + done.rows,
            "failed": JOBS.c.failed + done.failed,
            "epoch": done.mark.epoch,
            "batch": done.mark.batch,
            "rate": done.rows_per_second,
            "last_batch": now,
        }
        if done.failed or done.lost:
            changed |= {"last_error": mask(done.error or ""), "last_failed": now}
        mine = sa.and_(JOBS.c.name == name, JOBS.c.owner == self.owner)
        added = self._update(name, sa.and_(mine, newer), **changed)
        if not added:
            self.require_owner(name)
        if added and done.failed:
            self.note(name, f"{done.failed} records failed, one of them {done.error}")
        if added and done.lost:
            self.note(name, f"{done.lost} records lost: {done.error}")

    def seen(self, name: str, state: State, lag: int) -> bool:
        """Write a heartbeat; return whether this process is still the owner of the job."""
        mine = JOBS.c.owner == self.owner
        return self._update(name, mine, state=state.value, lag=lag, seen=time.time())

    def require_owner(self, name: str) -> None:
        """Raise if another process has taken the job over: only one may write."""
        job = self.get(name)
        if job is not None and job.owner != self.owner:
            raise FencedError(
                f"the job {name!r} was taken over by process {job.pid} on {job.host}, because this "
                "one sent no heartbeat for a while: it stops here"
            )

    def failed(self, name: str, error: str) -> None:
        """Store why the job failed, or waits."""
        self._update(name, last_error=mask(error), last_failed=time.time())

    def cancel(self, name: str) -> None:
        """Ask the process that runs the job to end and delete it."""
        self._update(name, cancelled=True)

    def remove(self, name: str) -> None:
        """Delete a job and its events."""
        with self._session() as session:
            session.execute(JOBS.delete().where(JOBS.c.name == name))
            session.execute(EVENTS.delete().where(EVENTS.c.name == name))

    def note(self, name: str, text: str) -> None:
        """Store an event, and delete the oldest ones of the job."""
        with self._session() as session:
            session.execute(EVENTS.insert().values(name=name, at=time.time(), text=mask(text)))
            mine = EVENTS.c.name == name
            newest = sa.select(EVENTS.c.number).where(mine).order_by(EVENTS.c.number.desc())
            first = session.execute(newest.offset(_EVENTS).limit(1)).scalar()
            if first is not None:
                session.execute(EVENTS.delete().where(mine, EVENTS.c.number <= first))

    def events(self, name: str, after: int = 0) -> list[Event]:
        """Return the job's events with a greater number, the oldest first."""
        mine = sa.select(EVENTS).where(EVENTS.c.name == name, EVENTS.c.number > after)
        with self._session() as session:
            rows = session.execute(mine.order_by(EVENTS.c.number))
            return [Event(*row) for row in rows]

    def _select(self, where: Any) -> Iterator[JobRow]:
        with self._session() as session:
            query = sa.select(JOBS).where(where).order_by(JOBS.c.created)
            rows = session.execute(query).mappings().all()
        yield from map(JobRow.of, rows)

    def _update(self, name: str, where: Any = None, **changed: Any) -> bool:
        """Change a job's row; return whether there was one."""
        chosen = JOBS.c.name == name if where is None else sa.and_(JOBS.c.name == name, where)
        with self._session() as session:
            done: Any = session.execute(JOBS.update().where(chosen).values(**changed))
            return bool(done.rowcount)


_opened: dict[str, Store] = {}


def taken(name: str) -> ConfigError:
    """Return the error for a name that another job has."""
    return ConfigError(
        f"the job {name!r} already exists; choose another name, or end that one with "
        f"penstock.cancel({name!r})"
    )


def _runs_elsewhere(job: JobRow) -> JobRunsElsewhereError:
    return JobRunsElsewhereError(
        f"the job {job.name!r} runs in another process ({job.pid} on {job.host}); stop that one "
        f"first, or end the job with penstock.cancel({job.name!r})"
    )


def _tuned(connection: Any, _record: Any) -> None:
    """Allow concurrent readers next to one writer; a killed process loses nothing that was committed."""
    for pragma in ("journal_mode=WAL", "synchronous=NORMAL"):
        connection.execute(f"PRAGMA {pragma}")
