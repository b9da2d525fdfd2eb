"""A real PostgreSQL on the loopback, for tests: with a password, so that a wrong one is refused."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql
from tests.services.server import Server

PASSWORD = "s3cret/with:signs@"
_ROOT = Path("/usr/lib/postgresql")


def _bin() -> Path | None:
    found = sorted(_ROOT.glob("*/bin/postgres"), key=lambda path: int(path.parts[-3]))
    return found[-1].parent if found else None


class Postgres(Server):
    """One cluster; the user is `penstock`, the database too."""

    def __init__(self, **settings: str | int) -> None:
        super().__init__("postgres", "postgres", "postgresql", _bin)
        self._data = self.folder / "data"
        self._settings = {"fsync": "off", **settings}
        self._make()
        self.start()
        with psycopg.connect(self.dsn("postgres"), autocommit=True) as session:
            session.execute("CREATE DATABASE penstock")

    def dsn(self, database: str = "penstock") -> str:
        """Return what psycopg connects with."""
        return psycopg.conninfo.make_conninfo(
            "",
            host=self.host,
            port=self.port,
            user="penstock",
            password=PASSWORD,
            dbname=database,
            connect_timeout=10,
        )

    @property
    def url(self) -> str:
        """The address for the sink, without the password."""
        return f"postgresql://penstock@{self.host}:{self.port}/penstock"

    def connect(self) -> psycopg.Connection:
        """Open a session that commits each statement."""
        return psycopg.connect(self.dsn(), autocommit=True)

    def values(self, table: str, column: str) -> list[Any]:
        """Return one column of a table."""
        query = sql.SQL("SELECT {} FROM {}").format(sql.Identifier(column), sql.Identifier(table))
        with self.connect() as session:
            return [value for (value,) in session.execute(query)]

    def start(self) -> None:
        """Start it, again if it was stopped or killed."""
        options = {
            **self._settings,
            "port": self.port,
            "listen_addresses": self.host,
            "unix_socket_directories": "",
        }
        flags = [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
        self.begin([self.program / "postgres", "-D", self._data, *flags], self._answers)

    def stop(self) -> None:
        """End it in order, without waiting for its clients."""
        self.end(signal.SIGINT)

    def kill(self) -> None:
        """End it as a crash would: the postmaster and every child, with -9."""
        self.end(signal.SIGKILL)

    def _make(self) -> None:
        secret = self.folder / "password"
        secret.write_text(PASSWORD)
        secret.chmod(0o644)  # inside a folder that only the server's user can enter
        self.run(
            [
                self.program / "initdb", "-D", self._data, "-U", "penstock", "-A", "scram-sha-256",
                "--pwfile", secret, "-E", "UTF8", "--locale=C", "--no-sync",
            ]
        )  # fmt: skip

    def _answers(self) -> bool:
        try:
            psycopg.connect(self.dsn("postgres")).close()
        except psycopg.OperationalError:
            return False
        return True
