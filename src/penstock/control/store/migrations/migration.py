"""Brings a store to the newest schema. Any number of processes may try at once; a kill loses nothing."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from penstock.control.store.database import Database
from penstock.control.store.migrations.job_takeover import UNCLEAN, Seal
from penstock.errors import SetupError, TransientError

if TYPE_CHECKING:
    from alembic.runtime.migration import MigrationContext
    from alembic.script import ScriptDirectory

NEWEST = "007"
VERSION_TABLE = "penstock_schema"
_HERE = Path(__file__).parent
_LOCK = 0x70656E73746F636B  # "penstock"


def migrate(database: Database, seal: Seal) -> None:
    """Apply the migrations that are missing; `seal` encrypts the secrets of a stored job.

    Raises
    ------
    SetupError
        When the store is of a newer release, or the process of a stored job still runs.
    """
    if current_version(database) != NEWEST:
        with database.write() as session:
            _wait_for_others(session)
            _upgrade(session, database, seal)
    if database.file is not None:
        _rewrite_pages(database)


def current_version(database: Database) -> str | None:
    """Return the version of the schema; None for an empty database and for a store of jobs alone."""
    with database.read() as session:
        if not sa.inspect(session).has_table(VERSION_TABLE):
            return None
        version = sa.select(sa.column("version_num", sa.String())).select_from(
            sa.table(VERSION_TABLE)
        )
        return session.execute(version).scalar()


def _wait_for_others(session: sa.Connection) -> None:
    """Let one process migrate at a time; SQLite's transaction is exclusive already."""
    if session.dialect.name != "postgresql":
        return
    for setting in ("statement_timeout", "idle_in_transaction_session_timeout"):
        session.execute(sa.text(f"SET LOCAL {setting} = 0"))
    session.execute(sa.text("SET LOCAL lock_timeout = '60s'"))
    session.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))


def _upgrade(session: sa.Connection, database: Database, seal: Seal) -> None:
    # A store that is at the newest version is opened without alembic, which takes long to load.
    from alembic.config import Config  # noqa: PLC0415
    from alembic.runtime.environment import EnvironmentContext  # noqa: PLC0415
    from alembic.script import ScriptDirectory  # noqa: PLC0415

    script = ScriptDirectory(str(_HERE), version_locations=[str(_HERE / "versions")])

    def steps(current: Any, _context: MigrationContext) -> Any:
        _refuse_newer(script, current, database)
        return script._upgrade_revs("head", current)

    with EnvironmentContext(Config(), script, fn=steps) as environment:
        environment.configure(
            connection=session,
            version_table=VERSION_TABLE,
            transactional_ddl=True,
            penstock_seal=seal,
            penstock_now=database.now,
        )
        environment.run_migrations()


def _refuse_newer(script: ScriptDirectory, current: Any, database: Database) -> None:
    known = {each.revision for each in script.walk_revisions()}
    if unknown := [one for one in (current or ()) if one not in known]:
        raise SetupError(
            f"the store {database.place} has the schema {unknown[0]!r} of a newer release, and this one "
            f"knows {', '.join(sorted(known))}; install that release, or use another store"
        )


def _rewrite_pages(database: Database) -> None:
    """Remove what deleted rows left in an SQLite file and its log."""
    with database.engine.connect() as session:
        connection: Any = session.connection.driver_connection
        if connection.execute("PRAGMA user_version").fetchone()[0] != UNCLEAN:
            return
        try:
            connection.execute("VACUUM")
            connection.execute("PRAGMA user_version = 0")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").close()
        except sqlite3.Error as error:
            raise TransientError(
                f"the store {database.place} was upgraded, and old passwords are still in its file: "
                f"it cannot be rewritten ({error}); it needs as much space again, and no other process "
                "that writes to it"
            ) from None
