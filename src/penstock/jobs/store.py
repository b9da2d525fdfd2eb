"""Where jobs are kept: their definitions, counts and events, in SQLite or another database.

A batch is counted once, also when it is run again after a kill: its mark is kept beside the counts.
"""

from __future__ import annotations

import json
import os
import socket
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import psutil
import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError, OperationalError, SQLAlchemyError

from penstock.config.places import data_dir
from penstock.config.secrets import mask
from penstock.engine import Done, State
from penstock.errors import ConfigError, SetupError, TransientError, nearest
from penstock.jobs.keeping import by_value

PLACE = "PENSTOCK_JOBS"
# A job whose process on another machine has not been heard of for so long does not run any more.
SILENT = 15.0
_EVENTS = 1000

_data = sa.MetaData()
_jobs = sa.Table(
    "penstock_jobs",
    _data,
    sa.Column("name", sa.String(200), primary_key=True),
    sa.Column("id", sa.String(40), nullable=False),
    sa.Column("user", sa.String(100), nullable=False),
    sa.Column("created", sa.Double, nullable=False),
    sa.Column("definition", sa.Text, nullable=False),
    sa.Column("options", sa.Text, nullable=False),
    sa.Column("cancelled", sa.Boolean, nullable=False),
    sa.Column("batches", sa.BigInteger, nullable=False),
    sa.Column("records", sa.BigInteger, nullable=False),
    sa.Column("rows", sa.BigInteger, nullable=False),
    sa.Column("failed", sa.BigInteger, nullable=False),
    sa.Column("epoch", sa.BigInteger, nullable=False),
    sa.Column("batch", sa.BigInteger, nullable=False),
    sa.Column("last_error", sa.Text),
    sa.Column("last_failed", sa.Double),
    sa.Column("last_batch", sa.Double),
    sa.Column("rate", sa.Double, nullable=False),
    sa.Column("state", sa.String(20), nullable=False),
    sa.Column("lag", sa.BigInteger, nullable=False),
    sa.Column("seen", sa.Double, nullable=False),
    sa.Column("host", sa.String(255), nullable=False, server_default=""),
    sa.Column("pid", sa.Integer, nullable=False, server_default="0"),
)
_events = sa.Table(
    "penstock_job_events",
    _data,
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("name", sa.String(200), nullable=False, index=True),
    sa.Column("at", sa.Double, nullable=False),
    sa.Column("text", sa.Text, nullable=False),
)


@dataclass(frozen=True)
class Kept:
    """One job as the store has it."""

    name: str
    id: str
    user: str
    created: float
    definition: dict[str, Any] = field(repr=False)  # it may hold secrets
    options: dict[str, Any]
    cancelled: bool = False
    batches: int = 0
    records: int = 0
    rows: int = 0
    failed: int = 0
    epoch: int = -1
    batch: int = -1
    last_error: str | None = None
    last_failed: float | None = None
    last_batch: float | None = None
    rate: float = 0.0
    state: str = State.STARTING.value
    lag: int = 0
    seen: float = 0.0
    host: str = ""
    pid: int = 0

    @property
    def is_alive(self) -> bool:
        """Whether the process that runs it lives, as far as can be seen from here."""
        if not self.host or self.state in (State.STOPPED.value, State.FAILED.value):
            return False
        if self.host == socket.gethostname():
            return _lives(self.pid, self.seen)
        return time.time() - self.seen < SILENT

    @property
    def shown_state(self) -> str:
        """The state, as it must be when nobody runs the job."""
        return self.state if self.is_alive or self.state == State.FAILED.value else "STOPPED"


@dataclass(frozen=True)
class Event:
    """Something that happened to a job."""

    number: int
    name: str
    at: float
    text: str


class Store:
    """Jobs in a database; `place` is a file for SQLite or an address as SQLAlchemy writes it."""

    def __init__(self, place: str | Path) -> None:
        given = str(place)
        self.file = None if "://" in given else Path(given).absolute()
        url = given if self.file is None else f"sqlite:///{self.file}"
        if self.file is not None:
            _private(self.file)
        self.place = sa.engine.make_url(url).render_as_string(hide_password=True)
        self._engine = sa.create_engine(url, connect_args=_connect_args(url))
        if self.file is not None:
            sa.event.listen(self._engine, "connect", _tuned)
        try:
            _data.create_all(self._engine)
            self._grow()
        except SQLAlchemyError as error:
            raise SetupError(f"the jobs in {self.place} cannot be opened: {error}") from None

    @classmethod
    def default(cls) -> Store:
        """Return the user's own store, the same one each time."""
        place = os.environ.get(PLACE) or str(data_dir() / "jobs.sqlite")
        if place not in _opened:
            _opened[place] = cls(place)
        return _opened[place]

    def close(self) -> None:
        """Let go of the database."""
        self._engine.dispose()

    def _grow(self) -> None:
        """Add the columns that an older Penstock did not know."""
        found = {column["name"] for column in sa.inspect(self._engine).get_columns(_jobs.name)}
        with self._engine.begin() as session:
            for column in _jobs.columns:
                if column.name not in found:
                    how = sa.schema.CreateColumn(column).compile(dialect=self._engine.dialect)
                    session.execute(sa.text(f"ALTER TABLE {_jobs.name} ADD COLUMN {how}"))

    @contextmanager
    def _session(self) -> Iterator[sa.Connection]:
        """Open a transaction; a database that is away or locked is told as such."""
        try:
            with self._engine.begin() as session:
                yield session
        except OperationalError as error:
            raise TransientError(
                f"the jobs in {self.place} cannot be reached: {error.orig}"
            ) from None

    def add(self, job: Kept) -> None:
        """Keep a new job; its name must not be taken."""
        if self.file is None and by_value(job.definition):
            raise ConfigError(
                f"the job {job.name!r} has a function without an import path, and the jobs are kept in "
                f"{self.place}: only a file of your own may hold code; put the function into a module "
                "and give it as 'module:function'"
            )
        try:
            with self._session() as session:
                session.execute(_jobs.insert().values(**_columns(job)))
        except IntegrityError:
            raise taken(job.name) from None

    def renew(self, job: Kept) -> None:
        """Put another definition in the place of the one that is there; the counts stay."""
        names = ("definition", "options", "cancelled", "state", "seen")
        changed = {name: _columns(job)[name] for name in names}
        self._update(job.name, **changed)

    def get(self, name: str) -> Kept | None:
        """Return the job of this name."""
        return next(self._found(_jobs.c.name == name), None)

    def by_id(self, number: str) -> Kept | None:
        """Return the job with this subscription id."""
        return next(self._found(_jobs.c.id == number), None)

    def find(self, what: str | int) -> Kept:
        """Return a job by its name or its subscription id; a name wins over an id."""
        found = self.get(str(what)) or self.by_id(str(what))
        if found is None:
            names = [job.name for job in self.all()]
            hint = nearest(str(what), names) if names else "none is kept: create_job makes one"
            raise ConfigError(f"there is no job {what!r}; {hint}")
        return found

    def all(self) -> list[Kept]:
        """Return every job, the oldest first."""
        return list(self._found(sa.true()))

    def count(self, name: str, done: Done) -> None:
        """Add what a batch gave, unless it was counted before."""
        newer = sa.or_(
            _jobs.c.epoch < done.mark.epoch,
            sa.and_(_jobs.c.epoch == done.mark.epoch, _jobs.c.batch < done.mark.batch),
        )
        now = time.time()
        changed: dict[str, Any] = {
            "batches": _jobs.c.batches + 1,
            "records": _jobs.c.records + done.records,
            "rows": _jobs.c.rows + done.rows,
            "failed": _jobs.c.failed + done.failed,
            "epoch": done.mark.epoch,
            "batch": done.mark.batch,
            "rate": done.rows_per_second,
            "last_batch": now,
        }
        if done.failed or done.lost:
            changed |= {"last_error": mask(done.error or ""), "last_failed": now}
        with self._session() as session:
            here = _jobs.update().where(_jobs.c.name == name, newer)
            added: bool = session.execute(here.values(**changed)).rowcount > 0
        if added and done.failed:
            self.note(name, f"{done.failed} records failed, one of them {done.error}")
        if added and done.lost:
            self.note(name, f"{done.lost} records lost: {done.error}")

    def seen(self, name: str, state: State, lag: int) -> None:
        """Note that the job's process lives, and how the job is."""
        here = {"host": socket.gethostname(), "pid": os.getpid()}
        self._update(name, state=state.value, lag=lag, seen=time.time(), **here)

    def failed(self, name: str, error: str) -> None:
        """Note why the job does not go on, or waits."""
        self._update(name, last_error=mask(error), last_failed=time.time())

    def cancel(self, name: str) -> None:
        """Ask the process that runs the job to end and forget it."""
        self._update(name, cancelled=True)

    def remove(self, name: str) -> None:
        """Forget a job and its events."""
        with self._session() as session:
            session.execute(_jobs.delete().where(_jobs.c.name == name))
            session.execute(_events.delete().where(_events.c.name == name))

    def note(self, name: str, text: str) -> None:
        """Keep an event; the oldest ones of the job fall out."""
        with self._session() as session:
            session.execute(_events.insert().values(name=name, at=time.time(), text=mask(text)))
            mine = _events.c.name == name
            newest = sa.select(_events.c.number).where(mine).order_by(_events.c.number.desc())
            first = session.execute(newest.offset(_EVENTS).limit(1)).scalar()
            if first is not None:
                session.execute(_events.delete().where(mine, _events.c.number <= first))

    def events(self, name: str, after: int = 0) -> list[Event]:
        """Return the job's events with a greater number, the oldest first."""
        mine = sa.select(_events).where(_events.c.name == name, _events.c.number > after)
        with self._session() as session:
            found = session.execute(mine.order_by(_events.c.number))
            return [Event(*row) for row in found]

    def _found(self, where: Any) -> Iterator[Kept]:
        with self._session() as session:
            query = sa.select(_jobs).where(where).order_by(_jobs.c.created)
            for row in session.execute(query).mappings().all():
                job = Kept(**row)
                data = {name: json.loads(row[name]) for name in ("definition", "options")}
                yield replace(job, **data)

    def _update(self, name: str, **changed: Any) -> None:
        with self._session() as session:
            session.execute(_jobs.update().where(_jobs.c.name == name).values(**changed))


_opened: dict[str, Store] = {}


def taken(name: str) -> ConfigError:
    """Return the refusal of a name that another job has."""
    return ConfigError(
        f"there is a job {name!r} already; choose another name, or end that one with "
        f"penstock.cancel({name!r})"
    )


def _lives(pid: int, seen: float) -> bool:
    """Whether the process is there, and is the one that was seen: numbers come again."""
    try:
        return psutil.Process(pid).create_time() <= seen
    except psutil.NoSuchProcess:
        return False


def _columns(job: Kept) -> dict[str, Any]:
    values = {one.name: getattr(job, one.name) for one in fields(job)}
    return values | {name: json.dumps(values[name]) for name in ("definition", "options")}


def _connect_args(url: str) -> dict[str, Any]:
    return {"timeout": 30} if url.startswith("sqlite") else {}


def _tuned(connection: Any, _record: Any) -> None:
    """Let readers and one writer work side by side; a killed process loses nothing that was noted."""
    for pragma in ("journal_mode=WAL", "synchronous=NORMAL"):
        connection.execute(f"PRAGMA {pragma}")


def _private(file: Path) -> None:
    """Have the file for this user alone: it may hold passwords, and functions that are run."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(file, os.O_CREAT | os.O_RDWR, 0o600))
        found = file.stat()
    except OSError as error:
        raise SetupError(
            f"the jobs cannot be kept in {file}: {error.strerror}; set {PLACE} to another file"
        ) from None
    if found.st_uid != os.geteuid() or found.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise SetupError(
            f"{file} belongs to another user or can be opened by others; it may hold passwords and "
            f"code that is run: chmod 600 {file}, or set {PLACE} to a file of your own"
        )
