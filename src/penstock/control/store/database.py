"""The database of the control plane: SQLite or PostgreSQL, one code path, one clock (the database's)."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import local
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert as postgresql_insert
from sqlalchemy.dialects.sqlite import insert as sqlite_insert
from sqlalchemy.exc import ArgumentError, DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from penstock.config.secrets import mask
from penstock.control.private_files import make_private
from penstock.errors import ConfigError, MissingExtraError, SetupError, TransientError

Now = sa.ColumnElement[float]
"""Seconds since 1970 by the clock of the database, as an expression of SQL."""
_CLOCKS: dict[str, Now] = {
    "sqlite": sa.literal_column("((julianday('now') - 2440587.5) * 86400.0)", sa.Double),
    # Not the time of the transaction: a statement that waited for a lock decides by the time after it.
    "postgresql": sa.literal_column(
        "CAST(EXTRACT(EPOCH FROM clock_timestamp()) AS DOUBLE PRECISION)", sa.Double
    ),
}
_READ_ONLY = "25006"  # a state of PostgreSQL
_OLDEST_SQLITE = (3, 35)  # the first one with RETURNING
_READING = {"penstock_reading": True}
# A process that is suspended in a transaction, or a network that drops packets, must not block the
# others: PostgreSQL ends the session, and the client gives the connection up.
_POSTGRESQL: dict[str, Any] = {
    "connect_timeout": 5,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
    "options": "-c statement_timeout=30s -c lock_timeout=10s "
    "-c idle_in_transaction_session_timeout=5s",
}


class Database:
    """An engine of SQLAlchemy with short transactions; `place` is a file for SQLite or a URL.

    SQLite is for workers of one machine, PostgreSQL for several. `now` replaces the clock, for tests.
    """

    def __init__(self, place: str | Path, *, now: Now | None = None) -> None:
        url = _url_of(place)
        self.dialect = url.get_backend_name()
        self.file = Path(str(url.database)).absolute() if self.dialect == "sqlite" else None
        self.place = url.render_as_string(hide_password=True)
        self.now: Now = _CLOCKS[self.dialect] if now is None else now
        self.engine = self._engine(url)
        self._local = local()

    def _engine(self, url: sa.URL) -> sa.Engine:
        if self.file is None:
            return _postgresql_engine(url)
        if sqlite3.sqlite_version_info < _OLDEST_SQLITE:
            raise SetupError(
                f"the control plane needs SQLite 3.35 or newer, and this Python has "
                f"{sqlite3.sqlite_version}; use another Python, or give the URL of a PostgreSQL"
            )
        make_private(self.file, "the deployments", "use --store or PENSTOCK_STORE with")
        engine = sa.create_engine(f"sqlite:///{self.file}", connect_args={"timeout": 30})
        sa.event.listen(engine, "connect", _tune_sqlite)
        sa.event.listen(engine, "begin", _begin_sqlite)
        return engine

    def apart(self) -> Database:
        """Return the same database with connections of its own: it waits for no other thread."""
        url = self.engine.url.render_as_string(hide_password=False)
        return Database(str(self.file or url), now=self.now)

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()

    @contextmanager
    def write(self) -> Iterator[sa.Connection]:
        """Open a transaction that may write; it is committed at the end.

        Inside of another one of the same thread it is a part of that one.

        Raises
        ------
        TransientError
            When the database is unavailable or locked. Whether a commit that was under way has
            happened is unknown then.
        """
        if (outer := self._current()) is not None:
            yield outer
            return
        with self._translated(), self.engine.begin() as session:
            self._local.session = session
            try:
                yield session
            finally:
                self._local.session = None

    @contextmanager
    def read(self) -> Iterator[sa.Connection]:
        """Open a transaction that only reads: on SQLite it waits for no writer.

        Inside of one that writes, in the same thread, it reads what that one has written.
        """
        if (outer := self._current()) is not None:
            yield outer
            return
        with (
            self._translated(),
            self.engine.connect().execution_options(**_READING) as session,
            session.begin(),
        ):
            yield session

    def _current(self) -> sa.Connection | None:
        """Return the transaction of this thread that may write."""
        found: sa.Connection | None = getattr(self._local, "session", None)
        return found

    def time(self) -> float:
        """Return the time by the database's clock."""
        with self.read() as session:
            return float(session.execute(sa.select(self.now)).scalar_one())

    def upsert(self, table: sa.Table) -> Any:
        """Return an INSERT with `on_conflict_do_update` and `on_conflict_do_nothing`."""
        return (sqlite_insert if self.dialect == "sqlite" else postgresql_insert)(table)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except PoolTimeoutError:
            raise TransientError(
                f"the store {self.place} is too slow: all connections of this process are in use"
            ) from None
        except (OperationalError, InterfaceError) as error:
            raise TransientError(
                f"the store {self.place} cannot be reached: {mask(str(error.orig).strip())}"
            ) from None
        except DBAPIError as error:
            if getattr(error.orig, "sqlstate", None) == _READ_ONLY:
                # New connections may find the primary: these may be to what is a standby now.
                self.engine.dispose()
                raise TransientError(
                    f"the store {self.place} is read-only: it is a standby, or its disk is full"
                ) from None
            if not error.connection_invalidated:
                raise
            raise TransientError(f"the store {self.place} closed the connection") from None


def _url_of(place: str | Path) -> sa.URL:
    given = str(place)
    if "://" not in given:
        return sa.URL.create("sqlite", database=given)
    try:
        url = sa.engine.make_url(given)
    except ArgumentError:
        raise ConfigError(f"the store {mask(given)!r} is not a URL; {_FORMS}") from None
    if url.get_backend_name() not in _CLOCKS:
        raise ConfigError(f"the store cannot be in {url.get_backend_name()!r}; {_FORMS}")
    if url.get_backend_name() == "sqlite" and not url.database:
        raise ConfigError(f"the store needs a file, and {given!r} names none; {_FORMS}")
    return url


_FORMS = "give a file for SQLite, or postgresql://user@host/database"


def _postgresql_engine(url: sa.URL) -> sa.Engine:
    try:
        return sa.create_engine(
            url.set(drivername="postgresql+psycopg"),
            connect_args=_POSTGRESQL,
            isolation_level="READ COMMITTED",
            # A restart of the server is noticed before a statement is sent.
            pool_pre_ping=True,
            hide_parameters=True,
        )
    except ModuleNotFoundError:
        raise MissingExtraError("databases", "a store in PostgreSQL") from None


def _tune_sqlite(connection: Any, _record: Any) -> None:
    """Allow readers next to one writer; begin transactions by ourselves; overwrite deleted rows."""
    connection.isolation_level = None
    for pragma in ("journal_mode=WAL", "synchronous=NORMAL", "secure_delete=ON"):
        connection.execute(f"PRAGMA {pragma}").close()


def _begin_sqlite(connection: sa.Connection) -> None:
    """Take the write lock at once: a transaction that reads first could not get it later."""
    reading = connection.get_execution_options().get("penstock_reading")
    connection.exec_driver_sql("BEGIN" if reading else "BEGIN IMMEDIATE")
