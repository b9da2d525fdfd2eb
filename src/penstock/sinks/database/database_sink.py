"""The sink `database`: its options, and what it promises."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from pydantic import Field, SecretStr, field_validator, model_validator
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from penstock.errors import ConfigError, missing_extra
from penstock.pipeline import EVERY_DELIVERY, Opening, Writer
from penstock.sinks.database.address import Address, refuse_unknown, without_password
from penstock.sinks.database.database_api import Database, Table
from penstock.sinks.database.database_writer import DatabaseWriter
from penstock.sinks.database.table_reading import as_frame
from penstock.sinks.tables import KeyedSink

_CLASSES = {"postgresql": "PostgreSQL", "mariadb": "MariaDB", "sqlite": "SQLite"}


class DatabaseSink(KeyedSink):
    """Rows into a table of a database: PostgreSQL, MariaDB or SQLite.

    Exactly-once: all rows of a write and its mark, a row of the table `penstock_offsets` next to the
    target, are one transaction. A write that is run again after a crash finds its mark and does nothing;
    one of an earlier epoch is refused.
    The table is made where it is missing; it gains columns and wider types as the rows do.
    """

    delivers = EVERY_DELIVERY
    python_tasks = EVERY_DELIVERY
    takes_nul = False
    name = "database"

    url: str = Field(
        description="The database: `postgresql://user@host:5432/database`, "
        "`mariadb://user@host:3306/database` or `sqlite:///file`. A password in it is kept apart. "
        "For TLS, `?sslrootcert=ca.pem` (PostgreSQL) or `?ssl_ca=ca.pem` (MariaDB): the certificate and "
        "the host name are verified."
    )
    password: SecretStr | None = Field(
        default=None, description="The password, where it is not part of the address."
    )
    table: str = Field(
        min_length=1,
        pattern=r"^[^.\x00]+(\.[^.\x00]+)?$",
        description="The table, as `name` or `schema.name`; made where it is missing.",
    )

    @model_validator(mode="before")
    @classmethod
    def _password_apart(cls, given: Any) -> Any:
        if not isinstance(given, dict) or not isinstance(given.get("url"), str):
            return given
        url, secret = without_password(given["url"])
        refuse_unknown(url)
        if secret is None:
            return {**given, "url": url}
        if given.get("password") is not None:
            raise ValueError("the password stands in 'url' and in 'password': give it once")
        return {**given, "url": url, "password": SecretStr(secret)}

    @field_validator("password")
    @classmethod
    def _not_empty(cls, password: SecretStr | None) -> SecretStr | None:
        return password if password and password.get_secret_value() else None

    def database(self) -> Database:
        """Return the database of the address; a connection is made when a session is opened."""
        address = Address.read(self.url, self.password)
        try:  # the drivers are extras: each is loaded only when it is needed
            module = import_module(f"{__package__}.{address.kind}.{address.kind}_database")
        except ModuleNotFoundError as missing:
            raise missing_extra(missing, f"the sink 'database' with {address.kind}") from None
        made: Database = getattr(module, _CLASSES[address.kind])(address)
        return made

    def open(self, opening: Opening) -> Writer:
        """Return what writes to the table."""
        return DatabaseWriter(self, opening, self.database())

    def lookup(self, spark: SparkSession, columns: StructType | None) -> DataFrame:
        """Return the columns that are asked for, of all rows."""
        if columns is None:
            raise ConfigError(
                f"to look rows up in {self.table!r}, say which 'columns' it has and of which types, as "
                "in 'symbol string, name string'"
            )
        table = Table.read(self.table)
        with self.database().session() as session:
            if session.columns(table) is None:
                raise ConfigError(f"there is no table {self.table!r} to look rows up in")
            return as_frame(spark, session.read(table, columns.names), columns)
