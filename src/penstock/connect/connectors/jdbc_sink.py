"""The JDBC sinks of Confluent and Aiven: records into a table of a database."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from penstock.connect.config_definition import Key, Type, one_of_any_case
from penstock.connect.connector_class import Kind
from penstock.connect.connector_config import ConnectorConfig
from penstock.connect.connector_rows import TOMBSTONE, KeyColumns, Rows, Tombstones
from penstock.connect.connectors import jdbc_keys
from penstock.connect.connectors.table_keys import MODES, TableKeys
from penstock.connect.connectors.topic_names import TOPIC, name_of
from penstock.connect.key_reports import KeyTable
from penstock.connect.mapped_class import DELIVERY, MappedClass, given, only

_BATCHES = "a batch has all records that have come, and is one transaction"
DELETES = Key(
    "delete.enabled",
    Type.BOOLEAN,
    "false",
    "Whether a record without a value deletes the row of its key; it needs record_key.",
    group="Writes",
)


class TableSink(MappedClass):
    """Base of the sinks of JDBC, whose keys have other names."""

    kind: ClassVar[Kind] = "sink"
    rows: ClassVar[Rows] = "fields"
    component: ClassVar[str] = "database"
    user_key: ClassVar[str]

    @abstractmethod
    def table_keys(self, config: ConnectorConfig) -> TableKeys:
        """Return the columns of the key, with what is done with them."""

    @abstractmethod
    def table(self, config: ConnectorConfig) -> str:
        """Return the table; raise ValueError where it is not one."""

    @abstractmethod
    def evolution(self, config: ConnectorConfig) -> dict[str, bool]:
        """Return whether the table is created, and changed."""

    def obstacles(self, config: ConnectorConfig) -> Iterator[tuple[str, str]]:
        """Yield what is wrong with the address, the table and the columns of the key."""
        yield from jdbc_keys.address_obstacles(config, self.user_key)
        try:
            self._require_table(self.table(config))
        except ValueError as error:
            key = self.places["table"]
            yield key, f"Invalid value {config[key]} for configuration {key}: {error}"
        yield from self.table_keys(config).obstacles()

    def warnings(self, config: ConnectorConfig) -> Iterator[tuple[str, str]]:
        """Yield columns of a key that is none, too."""
        yield from super().warnings(config)
        keys = self.table_keys(config)
        if keys.mode == "none" and keys.names:
            yield (
                keys.fields_key,
                f"{keys.fields_key} has no effect here: {keys.mode_key} is none",
            )

    @staticmethod
    def _require_table(table: str) -> None:
        if table.count(".") > 1:
            raise ValueError(
                f"{table!r} has more than one dot, and a table is name or schema.name; name the table, "
                "or let a RegexRouter make one name of the topic"
            )

    def key_columns(self, config: ConnectorConfig) -> KeyColumns:
        """Return the columns of the key."""
        return self.table_keys(config).columns

    def pipeline(self, config: ConnectorConfig) -> dict[str, Any]:
        """Return a pipeline that writes the table."""
        address = jdbc_keys.read_address(config, self.user_key)
        keys = self.table_keys(config)
        options = {
            "url": address.url.replace("mysql://", "mysql+pymysql://"),
            "password": address.password,
            "table": self.table(config),
            "mode": MODES[keys.insert],
            "key": keys.key,
            "delete_when": TOMBSTONE if keys.deletes else None,
            **self.evolution(config),
        }
        return {"sink": {"database": given(options)}, "delivery": config[DELIVERY.name]}


class JdbcSink(TableSink):
    """Rows of a table: inserted, or merged and deleted by key."""

    names: ClassVar[tuple[str, ...]] = (
        "io.confluent.connect.jdbc.JdbcSinkConnector",
        "io.aiven.connect.jdbc.JdbcSinkConnector",
    )
    user_key: ClassVar[str] = "connection.user"
    differences: ClassVar[tuple[str, ...]] = (
        "All topics go into one table: `${topic}` in its name needs one topic, or a "
        "RegexRouter that makes one name of them.",
        "The columns of the key are named in `pk.fields`, for `insert.mode=insert` without "
        "`auto.create` too where they are wanted as columns.",
        "`delete.enabled` needs `insert.mode` `upsert` or `update`; without it a tombstone is"
        " a bad record.",
        "A row that the database refuses is a bad record, as `errors.tolerance` says; the "
        "others of its batch are written.",
        "Types of new columns are those of the sink `database`. `jdbc:mysql:` goes through "
        "SQLAlchemy and PyMySQL, at-least-once and more slowly.",
        "`penstock.delivery=exactly-once` writes rows and offsets in one transaction, with "
        "the table `penstock_offsets`.",
    )
    places: ClassVar[Mapping[str, str]] = {
        "": "connection.url",
        "table": "table.name.format",
        "mode": "insert.mode",
        "key": "pk.fields",
        "password": "connection.password",
    }
    keys: ClassVar[tuple[Key, ...]] = (
        jdbc_keys.URL,
        jdbc_keys.user_key("connection.user"),
        jdbc_keys.PASSWORD,
        jdbc_keys.DIALECT,
        Key(
            "insert.mode",
            default="insert",
            documentation="insert: every row is added. upsert: a row replaces the one with its key. "
            "update: the same, and a row whose key the table does not have is left out.",
            importance="HIGH",
            group="Writes",
            check=one_of_any_case("insert", "multi", "upsert", "update"),
        ),
        DELETES,
        Key(
            "table.name.format",
            default=TOPIC,
            documentation="The table, as name or schema.name; ${topic} is the topic.",
            group="Data Mapping",
        ),
        Key(
            "topics.to.tables.mapping",
            Type.LIST,
            "",
            "Tables of topics, as in orders:shop.orders; they must be one table.",
            group="Data Mapping",
        ),
        Key(
            "pk.mode",
            default="none",
            documentation="Where the columns of the key come from: none, kafka (topic, partition and "
            "offset), record_key, record_value.",
            importance="HIGH",
            group="Data Mapping",
            check=one_of_any_case("none", "kafka", "record_key", "record_value"),
        ),
        Key("pk.fields", Type.LIST, "", "The columns of the key.", group="Data Mapping"),
        Key(
            "fields.whitelist",
            Type.LIST,
            "",
            "The fields of the value that become columns; default: all.",
            group="Data Mapping",
        ),
        jdbc_keys.time_zone("db.timezone"),
        Key(
            "auto.create",
            Type.BOOLEAN,
            "false",
            "Whether a table that is missing is created.",
            group="DDL",
        ),
        Key(
            "auto.evolve",
            Type.BOOLEAN,
            "false",
            "Whether the table gains the columns that records have.",
            group="DDL",
        ),
        Key(
            "table.types",
            Type.LIST,
            "TABLE",
            "What is written: TABLE.",
            check=only(("TABLE", "PARTITIONED TABLE"), "tables alone are written"),
        ),
        DELIVERY,
    )
    without_effect: ClassVar[KeyTable] = {
        **jdbc_keys.WITHOUT_EFFECT,
        "batch.size": _BATCHES,
        "max.retries": jdbc_keys.RETRIES,
        "retry.backoff.ms": jdbc_keys.RETRIES,
        "mssql.use.merge.holdlock": "it is for SQL Server",
        "replace.null.with.default": "nulls are replaced by the converter, by its key of this name",
    }
    refused: ClassVar[KeyTable] = {
        **jdbc_keys.REFUSED,
        "table.name.normalize": "names of tables are used as they are; rename topics with a RegexRouter",
        "date.timezone": "dates have no zone here; leave it out",
        "timestamp.fields.list": "times are recognized by their schema; use the transform "
        "TimestampConverter",
        "timestamp.precision.mode": "times have microseconds; leave it out",
    }

    def table_keys(self, config: ConnectorConfig) -> TableKeys:
        """Return the columns of the key, with what is done with them."""
        return TableKeys(
            "pk.mode",
            "pk.fields",
            "insert.mode",
            config["pk.mode"].lower(),
            tuple(config["pk.fields"]),
            config["insert.mode"].lower(),
            config["delete.enabled"],
            config["auto.create"],
        )

    def table(self, config: ConnectorConfig) -> str:
        """Return the table; raise ValueError where it is not one."""
        template: str = config["table.name.format"]
        pairs = [pair.partition(":") for pair in config["topics.to.tables.mapping"]]
        if wrong := [topic for topic, colon, name in pairs if not (topic and colon and name)]:
            raise ValueError(f"{wrong[0]!r} in topics.to.tables.mapping is not TOPIC:TABLE")
        if not (mapped := {topic.strip(): name.strip() for topic, _, name in pairs}):
            return name_of(config, template)
        return name_of(
            config, TOPIC, change=lambda topic: mapped.get(topic, template.replace(TOPIC, topic))
        )

    def evolution(self, config: ConnectorConfig) -> dict[str, bool]:
        """Return whether the table is created, and changed."""
        return {"create": config["auto.create"], "evolve": config["auto.evolve"]}

    def fields(self, config: ConnectorConfig) -> tuple[str, ...]:
        """Return the fields that become columns; those of the key are among them."""
        chosen = tuple(config["fields.whitelist"])
        if chosen and config["pk.mode"].lower() == "record_value":
            return tuple(dict.fromkeys((*chosen, *config["pk.fields"])))
        return chosen

    def tombstones(self, config: ConnectorConfig) -> Tombstones:
        """Return that they delete rows, or are errors."""
        return "delete" if config["delete.enabled"] else "refuse"
