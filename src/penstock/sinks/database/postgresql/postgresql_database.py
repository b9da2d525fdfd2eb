"""PostgreSQL: how it is reached, and the form that rows have on their way to it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import psycopg
from pyspark.sql import Column
from pyspark.sql import functions as f
from pyspark.sql.types import BinaryType, DataType

from penstock.errors import ConfigError, RefusedError, TransientError
from penstock.sinks.database.address import SINK, Address, DatabaseUser
from penstock.sinks.database.database_api import Database, Form, Layout
from penstock.sinks.database.postgresql.binary import binary
from penstock.sinks.database.postgresql.postgresql_session import PostgreSQLSession
from penstock.sinks.database.postgresql.postgresql_types import KINDS, native
from penstock.sinks.database.tasks import csv
from penstock.sinks.database.type_map import NESTED, textual

_DEFAULTS: dict[str, Any] = {
    "connect_timeout": 10,
    "application_name": "penstock",
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
}
_REFUSED = ("22", "23")
_AWAY = ("08", "40", "53", "55P03", "57", "58", "25P03")
_SETTINGS = ("28", "3D", "3F", "42501", "42P01", "25006")
# A failure to connect has no SQLSTATE, only words.
_WORDS = (
    "password authentication failed",
    "no password supplied",
    "does not exist",
    "no pg_hba.conf entry",
    "permission denied",
    "does not support SSL",
    "certificate verify failed",
    "provider signature failure",
    "does not match host name",
    "certificate file",
    "private key file",
    "invalid URI query parameter",
    "invalid sslmode value",
    "invalid connection option",
)


def secured(options: Mapping[str, str]) -> dict[str, str]:
    """Return the mode of TLS for an address that has certificates and says nothing of the mode.

    PostgreSQL's library would not verify anything then, and go on in plain text where the server
    has no TLS.

    >>> secured({"sslrootcert": "ca.pem"}), secured({"sslrootcert": "ca.pem", "sslmode": "require"})
    ({'sslmode': 'verify-full'}, {})
    """
    if "sslmode" in options or "PGSSLMODE" in os.environ:
        return {}
    if "sslrootcert" in options:
        return {"sslmode": "verify-full"}
    return {"sslmode": "require"} if {"sslcert", "sslkey"} & set(options) else {}


class PostgreSQL(Database):
    """A PostgreSQL server, version 12 or newer."""

    @contextmanager
    def session(self) -> Iterator[PostgreSQLSession]:
        """Open a session: closed on every path."""
        try:
            with self.connect() as connection:
                yield PostgreSQLSession(connection)
                connection.rollback()
        except psycopg.Error as error:
            raise translated(error, self.address) from None

    def connect(self) -> psycopg.Connection[Any]:
        """Return a new connection."""
        secret = self.address.password
        options = {k: v for k, v in _DEFAULTS.items() if k not in self.address.options}
        options |= secured(self.address.options)
        if secret:
            options["password"] = secret.get_secret_value()
        connection = psycopg.connect(self.address.url, client_encoding="UTF8", **options)
        # A session that hangs must not block its successor forever.
        connection.execute("SET lock_timeout = '30s'")
        connection.execute("SET idle_in_transaction_session_timeout = '10min'")
        return connection

    def known(self, kind: str, wanted: DataType) -> DataType | None:
        """Return the column's type as Spark has it."""
        return KINDS.known(kind, wanted)

    def form(self, layout: Layout) -> Form:
        """Return the binary form where every column is of a type that we can write so; else CSV."""
        if native(layout):
            return Form(_for_binary, binary)
        return Form(_for_csv, partial(csv, null=""))


def _for_binary(column: Column, kind: DataType) -> Column:
    """Return nested values as JSON, with the number of jsonb's version before it."""
    plain = textual(column, kind)
    return f.concat(f.lit("\x01"), plain) if isinstance(kind, NESTED) else plain


def _for_csv(column: Column, kind: DataType) -> Column:
    """Return nested values as JSON, bytes in PostgreSQL's hexadecimal form."""
    if isinstance(kind, BinaryType):
        return f.concat(f.lit("\\x"), f.hex(column))
    return textual(column, kind)


def translated(error: psycopg.Error, address: Address, user: DatabaseUser = SINK) -> Exception:
    """Return what the error means for the engine: come back later, a row is bad, or the settings are."""
    # The server's message, on one line and without the statement.
    parts = (error.diag.message_primary, error.diag.message_detail, error.diag.context)
    said = "; ".join(part for part in parts if part) or " ".join(str(error).split())
    message = address.masked(said)
    state = error.sqlstate or ""
    if state.startswith(_REFUSED):
        return RefusedError(message)
    if state.startswith(_SETTINGS) or (not state and any(word in message for word in _WORDS)):
        return ConfigError(
            f"{user.name} cannot work with {address.url}: {message}; check user, password, "
            f"database, schema and the user's rights ({user.needs})"
        )
    if state.startswith(_AWAY) or isinstance(
        error, (psycopg.OperationalError, psycopg.InterfaceError)
    ):
        return TransientError(f"{address.url} is away or busy: {message}")
    return error
