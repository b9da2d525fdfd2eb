"""Rows into a table of PostgreSQL, MariaDB or SQLite."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import Field, SecretStr, field_validator, model_validator
from pyspark.sql import functions as f
from pyspark.sql.types import BooleanType, DataType, StructType

from penstock.errors import ConfigError
from penstock.pipeline import EVERY_DELIVERY, Batch, Delivery, Opening
from penstock.sinks.jdbc.address import Address, without_password
from penstock.sinks.jdbc.database import (
    GONE,
    ORDER,
    Database,
    Layout,
    Plain,
    Session,
    Table,
    known_table,
)
from penstock.sinks.jdbc.databases import database
from penstock.sinks.jdbc.preparing import need_columns, need_table, ready, ready_for_marks
from penstock.sinks.jdbc.reading import as_frame
from penstock.sinks.jdbc.relay import Relay
from penstock.sinks.jdbc.tasks import Newest
from penstock.sinks.tables import KeyedSink

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


class JdbcSink(KeyedSink):
    """Rows into a table of a database: PostgreSQL, MariaDB or SQLite.

    Exactly-once: all rows of a write and its mark, a row of the table `penstock_offsets` beside the
    target, are one transaction. A write that is run again after a crash finds its mark and does nothing.
    The table is made where it is missing; it gains columns and wider types as the rows do.
    """

    delivers = EVERY_DELIVERY
    python_tasks = EVERY_DELIVERY
    name = "jdbc"

    url: str = Field(
        description="The database: `postgresql://user@host:5432/database`, "
        "`mariadb://user@host:3306/database` or `sqlite:///file`. A password in it is kept apart."
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
        if secret is None:
            return {**given, "url": url}
        if given.get("password") is not None:
            raise ValueError("the password stands in 'url' and in 'password': give it once")
        return {**given, "url": url, "password": SecretStr(secret)}

    @field_validator("password")
    @classmethod
    def _not_empty(cls, password: SecretStr | None) -> SecretStr | None:
        return password if password and password.get_secret_value() else None

    def prepare(self, opening: Opening) -> None:
        """Make the table, or let it follow the rows, or say what is in the way."""
        rows = self.stored(opening.schema)
        with self._database().session() as session:
            ready(self._database(), session, self._target, rows, self.key)
            if opening.delivery is Delivery.EXACTLY_ONCE:
                ready_for_marks(session, self._target)
            session.commit()

    def write(self, batch: Batch) -> None:
        """Write the rows and their mark in one transaction; what is there already is only counted."""
        if not self._written(batch):
            batch.rows.write.format("noop").mode("overwrite").save()

    def read_back(self, opening: Opening) -> DataFrame | None:
        """Return the rows of the table: those of the columns asked for that it has."""
        with self._database().session() as session:
            if (found := session.columns(self._target)) is None:
                return None
            columns = known_table(self._database(), found, self.stored(opening.schema))
            rows = session.read(self._target, columns.names)
            return as_frame(opening.spark, rows, columns)

    def lookup(self, spark: SparkSession, columns: StructType | None) -> DataFrame:
        """Return the columns that are asked for, of all rows."""
        if columns is None:
            raise ConfigError(
                f"to look rows up in {self.table!r}, say which 'columns' it has and of which types, as "
                "in 'symbol string, name string'"
            )
        with self._database().session() as session:
            there = session.columns(self._target)
            if there is None:
                raise ConfigError(f"there is no table {self.table!r} to look rows up in")
            return as_frame(spark, session.read(self._target, columns.names), columns)

    def _written(self, batch: Batch) -> bool:
        with self._database().session() as session:
            if not self._claimed(session, batch):
                return False
            layout = self._layout(session, batch.rows.schema)
            form = self._database().form(layout)
            encode = Newest(layout.key, form.encode) if layout.staged else form.encode
            with session.loading(layout) as put, Relay.beside(batch.rows, put) as relay:
                relay.carry(self._shaped(batch.rows, layout, form.plain), encode)
            if layout.staged:
                session.settle(layout)
            session.commit()
        return True

    def _claimed(self, session: Session, batch: Batch) -> bool:
        exact = batch.delivery is Delivery.EXACTLY_ONCE
        return not exact or session.claim(self._target, batch.pipeline, batch.mark)

    def _database(self) -> Database:
        return database(Address.read(self.url, self.password))

    @property
    def _target(self) -> Table:
        return Table.read(self.table)

    def _layout(self, session: Session, rows: StructType) -> Layout:
        """Return the rows' columns under the names and with the types that the table has."""
        found = need_table(session, self._target)
        stored = self.stored(rows)
        table = known_table(self._database(), found, stored)
        known = {field.name.lower(): field for field in table.fields}
        need_columns(self._target, known, stored)
        kinds = {column.name: column.kind for column in found}
        fields = tuple(known[name.lower()] for name in stored.names)
        return Layout(
            table=self._target,
            fields=fields,
            kinds=tuple(kinds[field.name] for field in fields),
            key=tuple(known[name.lower()].name for name in self.key),
            deletes=self.delete_when is not None,
        )

    def _shaped(self, rows: DataFrame, layout: Layout, plain: Plain) -> DataFrame:
        """Return the rows with plain columns only, and what the staging table needs."""
        columns = [
            plain(_as(rows, name, field.dataType), field.dataType).alias(field.name)
            for name, field in zip(self.stored(rows.schema).names, layout.fields, strict=True)
        ]
        if layout.staged:
            columns.append(f.monotonically_increasing_id().alias(ORDER))
        if layout.deletes:
            gone = f.coalesce(f.col(f"`{self.delete_when}`"), f.lit(False))
            columns.append(plain(gone, BooleanType()).alias(GONE))
        return rows.select(*columns)


def _as(rows: DataFrame, name: str, kind: DataType) -> Column:
    """Return a column with the type that the table has, which may be wider than the rows' own."""
    column = f.col(f"`{name}`")
    return column if rows.schema[name].dataType == kind else column.cast(kind)
