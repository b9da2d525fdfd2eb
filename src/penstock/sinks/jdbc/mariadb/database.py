"""MariaDB: how it is reached, and the form that rows have on their way to it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import pymysql
from pyspark.sql import Column
from pyspark.sql import functions as f
from pyspark.sql.types import BinaryType, BooleanType, DataType

from penstock.errors import PenstockError
from penstock.sinks.jdbc.address import Address
from penstock.sinks.jdbc.database import (
    Database,
    Form,
    Layout,
)
from penstock.sinks.jdbc.kinds import textual
from penstock.sinks.jdbc.mariadb.errors import told
from penstock.sinks.jdbc.mariadb.files import OwnFilesOnly
from penstock.sinks.jdbc.mariadb.kinds import known
from penstock.sinks.jdbc.mariadb.session import MariaDBSession
from penstock.sinks.jdbc.texts import csv_in_utc


class MariaDB(Database):
    """A MariaDB server, version 10.5 or newer."""

    def __init__(self, address: Address) -> None:
        self.address = address

    @contextmanager
    def session(self) -> Iterator[MariaDBSession]:
        """Open a session: closed on every path."""
        try:
            with closing(self._connect()) as connection:
                yield MariaDBSession(connection)
        except pymysql.MySQLError as error:
            raise self.told(error) or error from None

    def _connect(self) -> OwnFilesOnly:
        address = self.address
        secret = address.password
        secured: dict[str, Any] = {
            name: value for name, value in address.options.items() if name.startswith("ssl_")
        }
        return OwnFilesOnly(
            host=address.host,
            port=address.port or 3306,
            user=address.user,
            password=secret.get_secret_value() if secret else "",
            database=address.database,
            charset="utf8mb4",
            local_infile=True,
            connect_timeout=10,
            read_timeout=600,
            write_timeout=600,
            **secured,
        )

    def told(self, error: Exception) -> PenstockError | None:
        """Sort the error by its number."""
        return told(error, self.address)

    def known(self, kind: str, wanted: DataType) -> DataType | None:
        """Return the column's type as Spark has it."""
        return known(kind, wanted)

    def form(self, _layout: Layout) -> Form:
        """Return CSV: texts stand in quotes, so that NULL without quotes is a null."""
        return Form(_plain, csv_in_utc)


def _plain(column: Column, kind: DataType) -> Column:
    """Return nested values as JSON, bytes in hexadecimal, truth as a number."""
    if isinstance(kind, BinaryType):
        return f.hex(column)
    return column.cast("tinyint") if isinstance(kind, BooleanType) else textual(column, kind)
