"""The JDBC sources of Confluent and Aiven: rows of tables, or of a query, into topics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from penstock.connect.common_keys import TASKS_MAX
from penstock.connect.config_definition import Key, Type, at_least, one_of, one_of_any_case
from penstock.connect.connector_class import Kind, Offsets
from penstock.connect.connector_config import ConnectorConfig
from penstock.connect.connector_rows import Imported
from penstock.connect.connectors import jdbc_keys
from penstock.connect.connectors.jdbc_offsets import positions_of
from penstock.connect.key_reports import KeyTable
from penstock.connect.mapped_class import MappedClass, given, only
from penstock.pipeline.importing import filled

_USER = "connection.user"
_INCREMENTING, _TIMESTAMP = "incrementing.column.name", "timestamp.column.name"
_NUMBERS = {
    "none": "exact",
    "precision_only": "whole",
    "best_fit": "best_fit",
    "best_fit_eager_double": "best_fit",
}
_FOUND = "tables are looked for at each poll"
_INITIAL = (
    "a source begins with the first row; change its offsets (PATCH /connectors/NAME/offsets) to begin "
    "elsewhere"
)
_REGEX = (
    "patterns with regular expressions have no equivalent; name the tables in table.whitelist, where "
    "* stands for any letters"
)


class JdbcSource(MappedClass):
    """Rows of tables or of a query, new ones and changed ones, as records."""

    names: ClassVar[tuple[str, ...]] = (
        "io.confluent.connect.jdbc.JdbcSourceConnector",
        "io.aiven.connect.jdbc.JdbcSourceConnector",
    )
    kind: ClassVar[Kind] = "source"
    component: ClassVar[str] = "database"
    differences: ClassVar[tuple[str, ...]] = (
        "Exactly-once: the position is in the transaction of the records. A row that is "
        "committed late is not missed (PostgreSQL), so that `timestamp.delay.interval.ms` is "
        "seldom needed.",
        "Numbers without declared digits (`numeric` alone, in PostgreSQL) are texts with all digits.",
        "A large table is read in chunks the first time, in parallel: with `tasks.max=1` rows"
        " come in the order of the column.",
        "Transforms of keys and values need one topic: one table in `table.whitelist`, or a query.",
        "Rows with a null in the column are not read, instead of being refused.",
    )
    places: ClassVar[Mapping[str, str]] = {
        "": "mode",
        "url": "connection.url",
        "password": "connection.password",
        "tables": "table.whitelist",
        "query": "query",
        "incrementing_column": _INCREMENTING,
        "timestamp_column": _TIMESTAMP,
        "topic": "topic.prefix",
        "poll": "poll.interval.ms",
        "delay": "timestamp.delay.interval.ms",
    }
    keys: ClassVar[tuple[Key, ...]] = (
        jdbc_keys.URL,
        jdbc_keys.user_key(_USER),
        jdbc_keys.PASSWORD,
        jdbc_keys.DIALECT,
        Key(
            "mode",
            documentation="bulk, incrementing, timestamp, or timestamp+incrementing.",
            importance="HIGH",
            group="Mode",
            check=one_of("bulk", "incrementing", "timestamp", "timestamp+incrementing"),
        ),
        Key(
            _INCREMENTING,
            default="",
            documentation="The column whose number grows with each new row.",
            group="Mode",
        ),
        Key(
            _TIMESTAMP,
            Type.LIST,
            "",
            "The column with the time of a row's last change; one.",
            group="Mode",
        ),
        Key("table.whitelist", Type.LIST, "", "The tables, as name or schema.name.", group="Database"),
        Key(
            "schema.pattern",
            default=None,
            documentation="The schema of tables that are named without one; % stands for any letters.",
            importance="HIGH",
            group="Database",
        ),
        Key("query", default="", documentation="A SELECT in place of tables.", group="Mode"),
        Key("topic.prefix", documentation="What is before the table's name in the topic; with a query: "
            "the topic.", importance="HIGH", group="Connector"),
        Key(
            "poll.interval.ms",
            Type.INT,
            "5000",
            "How long to wait before asking again.",
            "HIGH",
            "Connector",
            check=at_least(1),
        ),
        Key(
            "timestamp.delay.interval.ms",
            Type.LONG,
            "0",
            "How long a new time is left alone; 0: until no running transaction can come before it "
            "(PostgreSQL), 10 seconds for others.",
            "HIGH",
            "Connector",
            check=at_least(0),
        ),
        Key(
            "table.types",
            Type.LIST,
            "TABLE",
            "What is read: tables, and views that are named.",
            check=only(("TABLE", "VIEW", "PARTITIONED TABLE"), "tables and views are read"),
        ),
        Key(
            "numeric.mapping",
            default="none",
            documentation="none: numbers with declared digits are decimals. precision_only: those "
            "without digits after the point are whole numbers. best_fit: the same, others are FLOAT64.",
            check=one_of_any_case(*_NUMBERS),
        ),
        Key(
            "timestamp.granularity",
            default="connect_logical",
            documentation="How times are written.",
            check=only(("connect_logical",), "times are of the logical type Timestamp; use the transform "
                       "TimestampConverter for others"),
        ),
        jdbc_keys.time_zone("db.timezone"),
    )  # fmt: skip
    without_effect: ClassVar[KeyTable] = {
        **jdbc_keys.WITHOUT_EFFECT,
        "batch.max.rows": "rows come in a stream of the database, not in batches",
        "validate.non.null": "rows with a null in the column are not read",
        "table.poll.interval.ms": _FOUND,
        "table.monitoring.startup.polling.limit.ms": _FOUND,
        "transaction.isolation.mode": "rows are read when their transaction has ended",
        "max.retries": jdbc_keys.RETRIES,
        "query.retry.attempts": jdbc_keys.RETRIES,
        "retry.backoff.ms": jdbc_keys.RETRIES,
    }
    refused: ClassVar[KeyTable] = {
        "table.blacklist": "name the tables in table.whitelist, where * stands for any letters",
        "table.include.list": _REGEX,
        "table.exclude.list": _REGEX,
        "catalog.pattern": "the database is that of the address",
        "query.suffix": "put it into the query",
        "query.masked": "give the query in `query`",
        "timestamp.initial*": _INITIAL,
        "incrementing.initial": _INITIAL,
        "numeric.precision.mapping": "give numeric.mapping=precision_only",
        "table.names.qualify": "topics have the table's name without its schema",
        "topic.regex.renaming.*": "rename topics with a RegexRouter",
        **jdbc_keys.REFUSED,
    }

    def imported(self, _config: ConnectorConfig) -> Imported:
        """Return that rows are written with the connector's converters."""
        return Imported.any_format()

    def take_over(self, config: ConnectorConfig, offsets: Offsets) -> Offsets:
        """Return positions of tables for offsets of Connect's class."""
        return positions_of(config, offsets)

    def obstacles(self, config: ConnectorConfig) -> Iterator[tuple[str, str]]:
        """Yield what is wrong with address and columns."""
        yield from jdbc_keys.address_obstacles(config, _USER)
        if len(config[_TIMESTAMP]) > 1:
            yield _TIMESTAMP, _one_column(config[_TIMESTAMP])
        if "incrementing" in config["mode"] and not config[_INCREMENTING]:
            yield (
                _INCREMENTING,
                f"Invalid value for configuration {_INCREMENTING}: name the column; it is not looked for",
            )

        if config["query"] and config["table.whitelist"]:
            yield (
                "query",
                "Invalid value for configuration query: it is in place of tables, and table.whitelist "
                "has some; give one of the two",
            )

    def warnings(self, config: ConnectorConfig) -> Iterator[tuple[str, str]]:
        """Yield columns that the mode does not use, too, and the schema of tables with a query."""
        yield from super().warnings(config)
        for key, word in ((_INCREMENTING, "incrementing"), (_TIMESTAMP, "timestamp")):
            if config[key] and word not in (config["mode"] or ""):
                yield key, f"{key} has no effect here: mode is {config['mode']}"
        if config["query"] and config["schema.pattern"]:
            yield "schema.pattern", "schema.pattern has no effect here: the query names its tables"

    def pipeline(self, config: ConnectorConfig) -> dict[str, Any]:
        """Return an import of the tables, or of the query."""
        mode, delay = config["mode"], config["timestamp.delay.interval.ms"]
        prefix = config["topic.prefix"].replace("{", "{{").replace("}", "}}")
        query = config["query"]
        times, numbers = config[_TIMESTAMP], _NUMBERS[config["numeric.mapping"].lower()]
        options = {
            **jdbc_keys.read_address(config, _USER).options,
            "tables": [] if query else _tables(config),
            "query": query,
            "mode": mode,
            "incrementing_column": config[_INCREMENTING] if "incrementing" in mode else None,
            "timestamp_column": times[0] if times and "timestamp" in mode else None,
            "topic": prefix if query else f"{prefix}{_table_name(config)}",
            "poll": config["poll.interval.ms"] / 1000,
            "delay": delay / 1000 if delay and mode != "bulk" else None,
            "numbers": numbers if numbers != "exact" else None,
            "tasks_max": config[TASKS_MAX],
        }
        # Records of this connector have no key: the transform ValueToKey makes one.
        return {"source": {"database": {**given(options), "key": []}}}


def _tables(config: ConnectorConfig) -> list[str]:
    """Return the tables with their schema, where it is given for all."""
    names: list[str] = config["table.whitelist"] or ["*"]
    schema = (config["schema.pattern"] or "").replace("%", "*")
    return [name if "." in name or not schema else f"{schema}.{name}" for name in names]


def _table_name(config: ConnectorConfig) -> str:
    """Return what is after the prefix: the table where there is one, so that it is one topic."""
    names = [name.rpartition(".")[2] for name in config["table.whitelist"]]
    is_one = len(names) == 1 and "*" not in names[0]
    return filled("{table}", {"table": names[0]}) if is_one else "{table}"


def _one_column(names: list[str]) -> str:
    return (
        f"Invalid value {', '.join(names)} for configuration {_TIMESTAMP}: one column has the time of a "
        "change; make one of them in a view or in `query`, with COALESCE"
    )
