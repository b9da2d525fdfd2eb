"""A real MariaDB on the loopback, for tests."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path
from typing import Any

import pymysql
from tests.services.server import Server

PASSWORD = "s3cret/with:signs@"


def _program() -> Path | None:
    found = shutil.which("mariadbd", path="/usr/sbin:/usr/local/sbin:/usr/bin")
    return Path(found) if found else None


class MariaDb(Server):
    """One server; the user is `penstock`, the database too."""

    def __init__(self, **settings: str) -> None:
        super().__init__("mysql", "mariadb", "mariadb-server", _program)
        self._data = self.folder / "data"
        self._socket = self.folder / "socket"
        # In a folder that two servers share, one that starts removes the temporary tables of the other.
        self._own_tmp = f"--tmpdir={self.folder}"
        self._settings = settings
        self.run(
            [
                "mariadb-install-db", "--no-defaults", f"--datadir={self._data}", "--skip-test-db",
                "--auth-root-authentication-method=normal", "--skip-name-resolve", self._own_tmp,
            ]
        )  # fmt: skip
        self.start()
        with pymysql.connect(unix_socket=str(self._socket), user="root") as session:
            cursor = session.cursor()
            cursor.execute("CREATE DATABASE penstock")
            cursor.execute("CREATE USER penstock@'%%' IDENTIFIED BY %s", [PASSWORD])
            cursor.execute("GRANT ALL ON penstock.* TO penstock@'%'")

    @property
    def url(self) -> str:
        """The address for the sink, without the password."""
        return f"mariadb://penstock@{self.host}:{self.port}/penstock"

    def connect(self) -> Any:
        """Open a session that commits each statement."""
        return pymysql.connect(
            host=self.host,
            port=self.port,
            user="penstock",
            password=PASSWORD,
            database="penstock",
            autocommit=True,
        )

    def values(self, table: str, column: str) -> list[Any]:
        """Return one column of a table."""
        with self.connect() as session, session.cursor() as cursor:
            cursor.execute(f"SELECT {column} FROM {table}")
            return [value for (value,) in cursor]

    def start(self) -> None:
        """Start it, again if it was stopped or killed."""
        options = [
            f"--datadir={self._data}", f"--port={self.port}", f"--bind-address={self.host}",
            f"--socket={self._socket}", f"--pid-file={self.folder / 'pid'}", "--skip-name-resolve",
            "--innodb-flush-log-at-trx-commit=2", self._own_tmp,
            *(f"--{name.replace('_', '-')}={value}" for name, value in self._settings.items()),
        ]  # fmt: skip
        self.begin([self.program, "--no-defaults", *options], self._answers)

    def stop(self) -> None:
        """End it in order."""
        self.end(signal.SIGTERM)

    def kill(self) -> None:
        """End it as a crash would, with -9."""
        self.end(signal.SIGKILL)

    def _answers(self) -> bool:
        try:
            pymysql.connect(unix_socket=str(self._socket), user="root").close()
        except pymysql.err.OperationalError:
            return False
        return True
