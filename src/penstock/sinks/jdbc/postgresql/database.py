"""PostgreSQL: how it is reached, and the form that rows have on their way to it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import psycopg
from pyspark.sql import Column
from pyspark.sql import functions as f
from pyspark.sql.types import BinaryType, DataType

from penstock.errors import PenstockError
from penstock.sinks.jdbc.address import Address
from penstock.sinks.jdbc.database import (
    Database,
    Form,
    Layout,
)
from penstock.sinks.jdbc.kinds import NESTED, textual
from penstock.sinks.jdbc.postgresql.binary import binary
from penstock.sinks.jdbc.postgresql.errors import told
from penstock.sinks.jdbc.postgresql.kinds import KINDS, native
from penstock.sinks.jdbc.postgresql.session import PostgreSQLSession
from penstock.sinks.jdbc.texts import csv

_DEFAULTS: dict[str, Any] = {
    "connect_timeout": 10,
    "application_name": "penstock",
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
}


class PostgreSQL(Database):
    """A PostgreSQL server, version 12 or newer."""

    def __init__(self, address: Address) -> None:
        self.address = address

    @contextmanager
    def session(self) -> Iterator[PostgreSQLSession]:
        """Open a session: closed on every path."""
        try:
            with self._connect() as connection:
                yield PostgreSQLSession(connection)
                connection.rollback()
        except psycopg.Error as error:
            raise self.told(error) or error from None

    def _connect(self) -> psycopg.Connection[Any]:
        secret = self.address.password
        options = {k: v for k, v in _DEFAULTS.items() if k not in self.address.options}
        if secret:
            options["password"] = secret.get_secret_value()
        connection = psycopg.connect(self.address.url, client_encoding="UTF8", **options)
        # A session that hangs must not keep the one that took its place waiting for ever.
        connection.execute("SET lock_timeout = '30s'")
        connection.execute("SET idle_in_transaction_session_timeout = '10min'")
        return connection

    def told(self, error: Exception) -> PenstockError | None:
        """Sort the error by its SQLSTATE."""
        return told(error, self.address)

    def known(self, kind: str, wanted: DataType) -> DataType | None:
        """Return the column's type as Spark has it."""
        return KINDS.known(kind, wanted)

    def form(self, layout: Layout) -> Form:
        """Return the binary form where every column is of a type that we can write so; else CSV."""
        return (
            Form(_for_binary, binary) if native(layout) else Form(_for_csv, partial(csv, null=""))
        )


def _for_binary(column: Column, kind: DataType) -> Column:
    """Return nested values as JSON, with the number of jsonb's version before it."""
    plain = textual(column, kind)
    return f.concat(f.lit("\x01"), plain) if isinstance(kind, NESTED) else plain


def _for_csv(column: Column, kind: DataType) -> Column:
    """Return nested values as JSON, bytes in PostgreSQL's hexadecimal form."""
    if isinstance(kind, BinaryType):
        return f.concat(f.lit("\\x"), f.hex(column))
    return textual(column, kind)
