"""The sink `database`: its options, and what it promises."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator, model_validator
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from penstock.errors import ConfigError, missing_extra
from penstock.pipeline import EVERY_DELIVERY, Delivery, Opening, Writer
from penstock.pipeline.names import ColumnNames
from penstock.sinks.database.database_api import Database, Table
from penstock.sinks.database.database_writer import DatabaseWriter
from penstock.sinks.database.dialect_address import DIALECT, read_address, split_url
from penstock.sinks.database.table_reading import as_frame
from penstock.sinks.tables import KeyedSink

_CLASSES = {
    "postgresql": "PostgreSQL",
    "mariadb": "MariaDB",
    "sqlite": "SQLite",
    "sqlalchemy": "AnyDialect",
}
UNTESTED = ("mysql",)


class DatabaseSink(KeyedSink):
    """Rows into a table of a database: PostgreSQL, MariaDB, SQLite, or any SQLAlchemy dialect.

    Exactly-once (with SQLAlchemy: at-least-once): all rows of a write and its mark, a row of the table
    `penstock_offsets` next to the target, are one transaction. A write that is run again after a crash
    finds its mark and does nothing; one of an earlier epoch is refused.
    The table is made where it is missing (`create`); it gains columns and wider types as the rows do
    (`evolve`).
    """

    delivers = EVERY_DELIVERY
    python_tasks = EVERY_DELIVERY
    takes_nul = False
    name = "database"

    url: str = Field(
        description="The database: `postgresql://user@host:5432/database`, "
        "`mariadb://user@host:3306/database` or `sqlite:///file`; for at-least-once also an address of "
        "any SQLAlchemy dialect, as in `oracle+oracledb://user@host/data`. A password is kept apart. "
        "For TLS, `?sslrootcert=ca.pem` (PostgreSQL) or `?ssl_ca=ca.pem` (MariaDB): the certificate and "
        "the host name are verified."
    )
    password: SecretStr | None = Field(
        default=None, description="The password, where it is not part of the address."
    )
    table: str = Field(
        min_length=1,
        pattern=r"^[^.\x00]+(\.[^.\x00]+)?$",
        description="The table, as `name` or `schema.name`.",
    )
    mode: Literal["append", "insert", "upsert", "update"] = Field(  # type: ignore[assignment]
        default="append",
        description="append, or insert: every row is added. upsert: a row replaces the one with its key. "
        "update: the same, and a row whose key the table does not have is left out.",
    )
    key: ColumnNames = Field(
        default_factory=list,
        description="For upsert and update: the columns that tell rows apart. For append: the primary "
        "key of a table that is made here; a row whose key exists is a dead letter.",
    )
    delete_when: str | None = Field(
        default=None,
        description="For upsert and update: a boolean column, as `kafka_tombstone`; a row where it is "
        "true deletes the row with its key. The column itself is not stored.",
    )
    create: bool = Field(default=True, description="Whether a table that is missing is made.")
    evolve: bool = Field(
        default=True,
        description="Whether the table gains the columns and the wider types that the rows have; if not, "
        "such rows are refused when the pipeline starts.",
    )

    @model_validator(mode="before")
    @classmethod
    def _password_apart(cls, given: Any) -> Any:
        if not isinstance(given, dict) or not isinstance(given.get("url"), str):
            return given
        url, secret = split_url(given["url"])
        if urlsplit(url).scheme in UNTESTED:
            raise ValueError(
                f"given {url!r}; MySQL has no session of its own here: write 'mysql+pymysql://...' for "
                "SQLAlchemy's, at-least-once"
            )
        if secret is None:
            return {**given, "url": url}
        if given.get("password") is not None:
            raise ValueError("the password is in 'url' and in 'password': give it once")
        return {**given, "url": url, "password": SecretStr(secret)}

    @field_validator("password")
    @classmethod
    def _not_empty(cls, password: SecretStr | None) -> SecretStr | None:
        return password if password and password.get_secret_value() else None

    @field_validator("mode")
    @classmethod
    def _insert_is_append(cls, mode: str) -> str:
        return "append" if mode == "insert" else mode

    def _require_key(self) -> None:
        if self.is_keyed and not self.key:
            raise ValueError(
                f"mode is {self.mode!r}: say which columns are the key, as in 'key: id'"
            )
        if self.delete_when and not self.is_keyed:
            raise ValueError(f"'delete_when' is for mode 'upsert' or 'update'; given {self.mode!r}")

    def delivery_obstacle(self, delivery: Delivery) -> str | None:
        """Return why a dialect of SQLAlchemy cannot promise more than at-least-once."""
        if delivery is Delivery.AT_LEAST_ONCE or read_address(self.url, None).kind != DIALECT:
            return None
        return (
            f"{urlsplit(self.url).scheme!r} is a dialect of SQLAlchemy, and only PostgreSQL, MariaDB and "
            "SQLite have tested transactions for rows and progress together"
        )

    def database(self) -> Database:
        """Return the database of the address; a connection is made when a session is opened."""
        address = read_address(self.url, self.password)
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
