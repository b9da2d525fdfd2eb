"""The source `database`: its options."""

from __future__ import annotations

import re
from string import Formatter
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, SecretStr, field_validator, model_validator
from typing_extensions import Self

from penstock.encode.format_options import JSON_FORMAT, FormatChoice
from penstock.errors import ConfigError
from penstock.imports.database.database_part import DatabasePart, Reading
from penstock.imports.database.database_system import DatabaseSystem
from penstock.imports.database.number_types import Numbers
from penstock.imports.database.table_range import INCREMENTING, TIMESTAMP, OrderColumn, Relation
from penstock.pipeline.importing import Import, System
from penstock.pipeline.names import ColumnNames
from penstock.pipeline.values import Duration
from penstock.sinks.database.dialect_address import read_address, split_url

_COLUMNS = ("timestamp_column", "incrementing_column")
_NEEDS = {
    "bulk": (),
    "incrementing": ("incrementing_column",),
    "timestamp": ("timestamp_column",),
    "timestamp+incrementing": _COLUMNS,
}


def _listed(given: Any) -> Any:
    return [given] if isinstance(given, str) else given


class DatabaseImport(Import):
    """Rows of a database into topics: PostgreSQL, MariaDB, MySQL, SQLite, or any SQLAlchemy dialect.

    Each row is a record: its key the primary key, its value all columns. Exactly-once: the position is
    written in the transaction of the records. A row that is committed late is not missed: rows are read
    only when no running transaction can still come before them (PostgreSQL), or after `delay`.
    """

    name = "database"
    topic_names = frozenset({"table", "schema"})

    # A commit waits for the brokers: a large table is read a third faster with few of them.
    max_records: int = Field(
        default=200_000, ge=1, description="The most records of one transaction, about."
    )
    url: str = Field(
        description="The database: `postgresql://user@host:5432/database`, "
        "`mariadb://user@host:3306/database` (or `mysql://`), `sqlite:///file`, or an address of any "
        "SQLAlchemy dialect, as in `oracle+oracledb://user@host/data`. A password in it is kept apart."
    )
    password: SecretStr | None = Field(
        default=None, description="The password, where it is not part of the address."
    )
    tables: Annotated[list[str], BeforeValidator(_listed)] = Field(
        default_factory=list,
        description="The tables, each as `name` or `schema.name`; `*` stands for any letters, and tables "
        "that are created later are found.",
    )
    query: str | None = Field(
        default=None, description="A SELECT in place of tables; it is used as a subquery."
    )
    mode: Literal["bulk", "incrementing", "timestamp", "timestamp+incrementing"] = Field(
        description="incrementing: new rows, by a number that grows. timestamp: new and changed rows, by "
        "the time of the change. timestamp+incrementing: the same, where many rows have one time. bulk: "
        "all rows, again after each `poll`."
    )
    incrementing_column: str | None = Field(
        default=None, min_length=1, description="The column whose number grows with each new row."
    )
    timestamp_column: str | None = Field(
        default=None, min_length=1, description="The column with the time of a row's last change."
    )
    key: ColumnNames | None = Field(
        default=None,
        description="The columns that are the record's key; default: the primary key of the table; `[]`: "
        "records have no key.",
    )
    value_format: FormatChoice = Field(default=JSON_FORMAT, description="The format of the value.")
    key_format: FormatChoice = Field(default=JSON_FORMAT, description="The format of the key.")
    numbers: Numbers = Field(
        default="exact",
        description="Types of numbers with declared digits, as `numeric(8, 2)`: exact: decimals. whole: "
        "those without digits after the point are whole numbers. best_fit: the same, and the others are "
        "floating-point numbers.",
    )
    delay: Duration | None = Field(
        default=None,
        ge=0,
        description="How long a new value of the column is left alone, so that transactions which began "
        "before it are committed. Default: PostgreSQL knows its running transactions and waits for them, "
        "SQLite needs none, all others 10 s: more than the longest transaction that writes the table.",
    )

    chunk_rows: int = Field(
        default=250_000,
        ge=0,
        description="A table with more rows than this is split the first time it is read (bulk: each "
        "time) into chunks of about as many, which are read at the same time, `tasks_max` at most; 0: "
        "never.",
    )

    @model_validator(mode="before")
    @classmethod
    def _password_apart(cls, given: Any) -> Any:
        if not isinstance(given, dict) or not isinstance(given.get("url"), str):
            return given
        # MySQL is read as MariaDB is.
        url, secret = split_url(re.sub(r"^(jdbc:)?mysql://", "mariadb://", given["url"]))
        if secret is None:
            return {**given, "url": url}
        if given.get("password") is not None:
            raise ValueError("the password is in 'url' and in 'password': give it once")
        return {**given, "url": url, "password": SecretStr(secret)}

    @field_validator("password")
    @classmethod
    def _not_empty(cls, password: SecretStr | None) -> SecretStr | None:
        return password if password and password.get_secret_value() else None

    @field_validator("tables")
    @classmethod
    def _are_names(cls, tables: list[str]) -> list[str]:
        for table in tables:
            parts = table.split(".")
            if len(parts) > 2 or not all(part.strip() for part in parts):
                raise ValueError(
                    f"given {table!r}; a table is 'name' or 'schema.name', with * as you like"
                )
        return tables

    @field_validator("query")
    @classmethod
    def _is_a_select(cls, query: str | None) -> str | None:
        if query is None:
            return None
        text = query.strip().rstrip(";").strip()
        if text.split(None, 1)[:1] == [] or text.split(None, 1)[0].lower() not in (
            "select",
            "with",
        ):
            raise ValueError(f"given {query[:40]!r}; a query is one SELECT, or WITH ... SELECT")
        return text

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        self._check_origin()
        self._check_mode()
        if self.key_format.name != "json" and self.key is None and self.query:
            raise ValueError(
                "'key_format' is given, and a query has no key of its own: name its 'key'"
            )
        return self

    def _check_origin(self) -> None:
        if bool(self.tables) == (self.query is not None):
            given = "both" if self.tables else "neither"
            raise ValueError(f"given {given} of 'tables' and 'query'; give one of them")
        fields = [name for _, name, _, _ in Formatter().parse(self.topic) if name]
        if self.query is not None and fields:
            raise ValueError(
                f"'topic' has {{{fields[0]}}} in its name, and a query has no table: give the whole name"
            )

    def _check_mode(self) -> None:
        needed = _NEEDS[self.mode]
        for name in _COLUMNS:
            is_given = getattr(self, name) is not None
            if name in needed and not is_given:
                raise ValueError(f"mode is {self.mode!r}, which needs {name!r}: name the column")
            if is_given and name not in needed:
                fitting = [mode for mode, names in _NEEDS.items() if name in names]
                raise ValueError(
                    f"{name!r} is given, and mode is {self.mode!r}; it is for mode "
                    + " or ".join(map(repr, fitting))
                )
        if len(needed) == 2 and self.timestamp_column == self.incrementing_column:
            raise ValueError(
                f"{self.timestamp_column!r} cannot be 'timestamp_column' and 'incrementing_column'"
            )
        if self.mode == "bulk" and self.delay is not None:
            raise ValueError(
                "'delay' is given, and mode 'bulk' reads all rows; it is for other modes"
            )

    @property
    def _order(self) -> tuple[OrderColumn, ...]:
        columns = ((self.timestamp_column, TIMESTAMP), (self.incrementing_column, INCREMENTING))
        return tuple(OrderColumn(name, role) for name, role in columns if name)

    def system(self) -> System:
        """Return the tables as the driver sees them."""
        reading = Reading(
            read_address(self.url, self.password),
            self._order,
            tuple(self.key) if self.key is not None else None,
            self.value_format,
            self.key_format,
            self.numbers,
        )

        asked: dict[str, str] = {}

        def topic(relation: Relation) -> str:
            part = DatabasePart(relation, reading, "")
            made, wanted = self.topic_of(part), self.topic.format_map(part.names)
            if (other := asked.setdefault(made, wanted)) != wanted:
                raise ConfigError(
                    f"the tables of {other!r} and {wanted!r} would go into one topic, {made!r}: a "
                    "topic has only letters, digits, dots, dashes and underscores; import one with a "
                    "pipeline of its own"
                )
            return made

        wanted = self.query if self.query is not None else self.tables
        chunk_rows = self.chunk_rows if self.tasks_max > 1 else 0
        return DatabaseSystem(reading, wanted, topic, self.delay, self.poll, chunk_rows=chunk_rows)
