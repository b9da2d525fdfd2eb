"""MariaDB: how it is reached, and the form that rows have on their way to it."""

from __future__ import annotations

import ssl
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager

import pymysql
from pyspark.sql import Column
from pyspark.sql import functions as f
from pyspark.sql.types import BinaryType, BooleanType, DataType

from penstock.errors import ConfigError, RefusedError, TransientError
from penstock.sinks.database.address import SINK, Address, DatabaseUser, truth
from penstock.sinks.database.database_api import Database, Form, Layout
from penstock.sinks.database.mariadb.mariadb_session import MariaDBSession, OwnFilesOnly
from penstock.sinks.database.mariadb.mariadb_types import known
from penstock.sinks.database.tasks import csv_in_utc
from penstock.sinks.database.type_map import textual

_REFUSED = frozenset(
    (1048, 1062, 1136, 1216, 1264, 1265, 1292, 1300, 1364, 1366, 1406, 1451, 1452, 1690, 4025, 4078)
)
_SETTINGS = frozenset((1044, 1045, 1049, 1142, 1143, 1146, 1148, 1227, 1698, 3948, 4166))
_NO_TLS = 2026
_AWAY = frozenset(
    (1020, 1021, 1040, 1053, 1077, 1129, 1152, 1158, 1159, 1160, 1161, 1180, 1203, 1205, 1206, 1213, 1226,
     1290, 1927, 2002, 2003, 2005, 2006, 2013, 2055)
)  # fmt: skip
_FILES = ("ssl_ca", "ssl_cert", "ssl_key")


class MariaDB(Database):
    """A MariaDB server, version 10.5 or newer."""

    @contextmanager
    def session(self) -> Iterator[MariaDBSession]:
        """Open a session: closed on every path."""
        try:
            with closing(self.connect()) as connection:
                yield MariaDBSession(connection)
        except pymysql.MySQLError as error:
            raise translated(error, self.address) from None

    def connect(self) -> OwnFilesOnly:
        """Return a new connection."""
        address = self.address
        secret = address.password
        context = secured(address.options)
        connection = OwnFilesOnly(
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
            ssl=context,
            # Without any of these options TLS is used where the server has it, and nothing is verified.
            ssl_disabled=truth(address.options, "ssl_disabled", default=False),
        )
        if context and not connection._secure:
            connection.close()
            raise ConfigError(f"{address.url} asks for TLS, which the server does not offer")
        return connection

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


def secured(options: Mapping[str, str]) -> ssl.SSLContext | None:
    """Return the context that the options ask for; None where they ask for none.

    The server's certificate and its host name are verified unless an option says otherwise: against
    `ssl_ca`, or against the authorities that this machine knows.

    >>> secured({}), secured({"ssl_disabled": "true"})
    (None, None)
    >>> context = secured({"ssl_verify_identity": "true"})
    >>> context.check_hostname, context.verify_mode.name
    (True, 'CERT_REQUIRED')
    """
    asked = sorted(name for name in options if name != "ssl_disabled")
    if asked and truth(options, "ssl_disabled", default=False):
        raise ConfigError(f"'ssl_disabled' turns TLS off, and {asked[0]!r} asks for it: drop one")
    if not asked:
        return None
    try:
        return _context(options)
    except (OSError, ssl.SSLError) as error:
        files = ", ".join(f"{name}={options[name]}" for name in _FILES if name in options)
        raise ConfigError(
            f"the files for TLS cannot be used: {error}; given {files}: each is the path of a PEM file, "
            "and 'ssl_key' belongs to 'ssl_cert'"
        ) from None


def _context(options: Mapping[str, str]) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=options.get("ssl_ca"))
    verified = truth(options, "ssl_verify_cert", default=True)
    context.check_hostname = verified and truth(options, "ssl_verify_identity", default=True)
    if not verified:
        context.verify_mode = ssl.CERT_NONE
    if "ssl_cert" in options:
        context.load_cert_chain(options["ssl_cert"], options.get("ssl_key"))
    return context


def translated(error: pymysql.MySQLError, address: Address, user: DatabaseUser = SINK) -> Exception:
    """Return what the error means for the engine: come back later, a row is bad, or the settings are."""
    number = error.args[0] if error.args else 0
    cause = getattr(error, "original_exception", None)
    if number == _NO_TLS or isinstance(cause, ssl.SSLCertVerificationError):
        return ConfigError(
            f"{address.url} cannot be reached by TLS: {cause or error.args[1]}; 'ssl_ca' is the "
            "authority that signed the server's certificate, and the certificate must name the host"
        )
    said = address.masked(str(error.args[1] if len(error.args) > 1 else error))
    if number in _SETTINGS:
        return ConfigError(
            f"{user.name} cannot work with {address.url}: {said}; check user, password, database, "
            f"the user's rights ({user.needs})"
            + (", and that the server allows local_infile" if user is SINK else "")
        )
    if number in _REFUSED or isinstance(error, (pymysql.DataError, pymysql.IntegrityError)):
        return RefusedError(said)
    if number in _AWAY or isinstance(error, pymysql.InterfaceError):
        return TransientError(f"{address.url} is away or busy: {said or type(error).__name__}")
    return error
