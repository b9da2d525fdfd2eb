"""SQLite: how its file is opened, and the form that rows have on their way to it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager

from pyspark.sql.types import DataType

from penstock.errors import ConfigError, PenstockError, RefusedError, TransientError
from penstock.sinks.jdbc.address import Address
from penstock.sinks.jdbc.database import (
    Database,
    Form,
    Layout,
)
from penstock.sinks.jdbc.kinds import textual
from penstock.sinks.jdbc.sqlite.session import SQLiteSession
from penstock.sinks.jdbc.sqlite.values import known, values

_PATIENCE = 30.0
_AWAY = ("locked", "busy", "full", "disk I/O error", "schema has changed")


class SQLite(Database):
    """A database in a file."""

    def __init__(self, address: Address) -> None:
        self.address = address

    @contextmanager
    def session(self) -> Iterator[SQLiteSession]:
        """Open the file and take its one right to write; closed on every path."""
        try:
            with closing(self._connect()) as connection:
                connection.execute("BEGIN IMMEDIATE")
                yield SQLiteSession(connection)
        except sqlite3.Error as error:
            raise self.told(error) or error from None

    def _connect(self) -> sqlite3.Connection:
        file = self.address.database
        # Transactions are begun by hand; rows come from the relay's threads, one at a time.
        patience = float(self.address.options.get("timeout", _PATIENCE))
        connection = sqlite3.connect(
            file, timeout=patience, isolation_level=None, check_same_thread=False
        )
        connection.execute("PRAGMA journal_mode = WAL")
        # Rows that were reported as written must outlive a power cut, or they are gone for good.
        connection.execute("PRAGMA synchronous = FULL")
        return connection

    def told(self, error: Exception) -> PenstockError | None:
        """Sort the error by its words: Python 3.10 gives no codes."""
        said = str(error)
        if isinstance(error, (sqlite3.IntegrityError, sqlite3.DataError)):
            return RefusedError(said)
        if isinstance(error, sqlite3.OperationalError) and any(word in said for word in _AWAY):
            return TransientError(f"{self.address.url} is busy: {said}")
        if isinstance(error, sqlite3.DatabaseError):
            return ConfigError(
                f"the sink 'jdbc' cannot work with {self.address.url}: {said}; the file must be a "
                "SQLite database, or not be there yet, in a folder that this user may write"
            )
        return None

    def known(self, kind: str, wanted: DataType) -> DataType | None:
        """Return the column's type as Spark has it, by SQLite's rules of affinity."""
        return known(kind, wanted)

    def form(self, _layout: Layout) -> Form:
        """Return Arrow's own form, with nested values as JSON and values that SQLite has."""
        return Form(textual, values)
