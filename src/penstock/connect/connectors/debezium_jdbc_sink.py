"""Debezium's JDBC sink: flat records into a table of a database."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

from penstock.connect.config_definition import Key, Type, one_of_any_case
from penstock.connect.connector_config import ConnectorConfig
from penstock.connect.connector_rows import Tombstones
from penstock.connect.connectors import jdbc_keys
from penstock.connect.connectors.jdbc_sink import DELETES, TableSink
from penstock.connect.connectors.table_keys import TableKeys
from penstock.connect.connectors.topic_names import TOPIC, final_topics, name_of
from penstock.connect.key_reports import KeyTable
from penstock.connect.mapped_class import DELIVERY, only

_TEMPLATES = ("collection.name.format", "table.name.format")
_STRATEGY = "classes of Java are not loaded; name the table in collection.name.format"
_POOL = "a task has one connection"


class DebeziumJdbcSink(TableSink):
    """Rows of a table: inserted, or merged and deleted by key."""

    names: ClassVar[tuple[str, ...]] = ("io.debezium.connector.jdbc.JdbcSinkConnector",)
    user_key: ClassVar[str] = "connection.username"
    differences: ClassVar[tuple[str, ...]] = (
        "Records are flat: an envelope with `before`, `after` and `op` is not opened, and its"
        " parts would be columns.",
        "All topics go into one table; tombstones without `delete.enabled` are skipped, as "
        "Debezium does.",
        "`delete.enabled` needs `insert.mode` `upsert` or `update`, and the columns of the "
        "key are named in `primary.key.fields`.",
    )
    places: ClassVar[Mapping[str, str]] = {
        "": "connection.url",
        "table": "collection.name.format",
        "mode": "insert.mode",
        "key": "primary.key.fields",
        "password": "connection.password",
    }
    keys: ClassVar[tuple[Key, ...]] = (
        jdbc_keys.URL,
        jdbc_keys.user_key("connection.username"),
        jdbc_keys.PASSWORD,
        Key(
            "insert.mode",
            default="insert",
            documentation="insert: every row is added. upsert: a row replaces the one with its key. "
            "update: the same, and a row whose key the table does not have is left out.",
            importance="HIGH",
            group="Writes",
            check=one_of_any_case("insert", "upsert", "update"),
        ),
        DELETES,
        Key(
            "truncate.enabled",
            Type.BOOLEAN,
            "false",
            "Events that empty the table.",
            check=only(("false",), "no record empties the table here"),
        ),
        Key(
            "collection.name.format",
            default=TOPIC,
            documentation="The table, as name or schema.name; ${topic} is the topic, with "
            "underscores for its dots.",
            group="Data Mapping",
        ),
        Key(
            "table.name.format",
            default=None,
            documentation="The former name of collection.name.format.",
            importance="LOW",
            group="Data Mapping",
        ),
        Key(
            "primary.key.mode",
            default="none",
            documentation="Where the columns of the key come from: none, kafka (topic, partition and "
            "offset), record_key, record_value.",
            importance="HIGH",
            group="Data Mapping",
            check=only(
                ("none", "kafka", "record_key", "record_value"),
                "a key cannot be made of headers; put them into the value with other tools",
                any_case=True,
            ),
        ),
        Key("primary.key.fields", Type.LIST, "", "The columns of the key.", group="Data Mapping"),
        Key(
            "field.include.list",
            Type.LIST,
            "",
            "The fields of the value that become columns, as name or topic:name; default: all.",
            group="Data Mapping",
        ),
        Key(
            "schema.evolution",
            default="none",
            documentation="none: the table must exist. basic: it is created, and gains columns.",
            group="DDL",
            check=one_of_any_case("none", "basic"),
        ),
        jdbc_keys.time_zone("use.time.zone"),
        jdbc_keys.time_zone("database.time_zone"),
        DELIVERY,
    )
    without_effect: ClassVar[KeyTable] = {
        "batch.size": "a batch has all records that have come, and is one transaction",
        "connection.pool.*": _POOL,
        "connection.restart.on.errors": jdbc_keys.RETRIES,
        "flush.max.retries": jdbc_keys.RETRIES,
        "flush.retry.delay.ms": jdbc_keys.RETRIES,
        "use.reduction.buffer": "of the rows of a key in a batch only the last one is written",
        "quote.identifiers": "names of tables and columns are always quoted",
        "dialect.postgres.unnest.insert.enabled": "rows go to PostgreSQL by COPY",
        "dialect.sqlserver.identity.insert": "it is for SQL Server",
    }
    refused: ClassVar[KeyTable] = {
        "collection.naming.strategy": _STRATEGY,
        "table.naming.strategy": _STRATEGY,
        "column.naming.strategy": "classes of Java are not loaded; rename fields with the transform "
        "ReplaceField",
        "field.exclude.list": "name the others in field.include.list, or use the transform ReplaceField "
        "with exclude",
        "connection.provider": "classes of Java are not loaded; leave it out",
        "dialect.postgres.postgis.schema": "geometries are not written; leave it out",
        "hibernate.*": "there is no Hibernate here; leave it out",
        "connection.*": "it has no equivalent; put what the database needs into the address",
    }

    def obstacles(self, config: ConnectorConfig) -> Iterator[tuple[str, str]]:
        """Yield fields of other topics too."""
        yield from super().obstacles(config)
        if any(":" in field for field in config["field.include.list"]):
            try:
                self._included(config)
            except ValueError as error:
                yield (
                    "field.include.list",
                    f"Invalid value for configuration field.include.list: {error}",
                )

    def table_keys(self, config: ConnectorConfig) -> TableKeys:
        """Return the columns of the key, with what is done with them."""
        return TableKeys(
            "primary.key.mode",
            "primary.key.fields",
            "insert.mode",
            config["primary.key.mode"].lower(),
            tuple(config["primary.key.fields"]),
            config["insert.mode"].lower(),
            config["delete.enabled"],
            config["schema.evolution"].lower() == "basic",
        )

    def table(self, config: ConnectorConfig) -> str:
        """Return the table; raise ValueError where it is not one."""
        old = config["table.name.format"]
        template: str = old if old and config.get(_TEMPLATES[0]) is None else config[_TEMPLATES[0]]
        if "${source." in template:
            raise ValueError(
                "records are flat here and have no source; name the table, or use ${topic}"
            )
        return name_of(config, template, change=lambda topic: topic.replace(".", "_"))

    def evolution(self, config: ConnectorConfig) -> dict[str, bool]:
        """Return whether the table is created, and changed."""
        basic = config["schema.evolution"].lower() == "basic"
        return {"create": basic, "evolve": basic}

    def fields(self, config: ConnectorConfig) -> tuple[str, ...]:
        """Return the fields that become columns; those of the key are among them."""
        chosen = self._included(config)
        if chosen and config["primary.key.mode"].lower() == "record_value":
            return tuple(dict.fromkeys((*chosen, *config["primary.key.fields"])))
        return chosen

    def tombstones(self, config: ConnectorConfig) -> Tombstones:
        """Return that they delete rows, or are skipped, as Debezium does."""
        return "delete" if config["delete.enabled"] else "skip"

    def _included(self, config: ConnectorConfig) -> tuple[str, ...]:
        """Return the included fields without their topic."""
        found = []
        for field in config["field.include.list"]:
            topic, _, name = field.rpartition(":")
            if topic and topic not in final_topics(config):
                raise ValueError(f"{field!r} is of a topic that this connector does not read")
            found.append(name)
        return tuple(found)
