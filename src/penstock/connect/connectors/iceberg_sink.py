"""The Iceberg sink: records into a table of a catalog."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from penstock.connect.config_definition import Key, Type
from penstock.connect.connector_class import Kind
from penstock.connect.connector_config import ConnectorConfig
from penstock.connect.connector_rows import KeyColumns, Rows, Tombstones
from penstock.connect.key_reports import KeyTable
from penstock.connect.mapped_class import MappedClass, given, only

_TABLES = "iceberg.tables"
_IDS, _PARTITIONS = "iceberg.tables.default-id-columns", "iceberg.tables.default-partition-by"
_UPSERT = "iceberg.tables.upsert-mode-enabled"
_CATALOG, _HADOOP = "iceberg.catalog.", "iceberg.hadoop."
_CREATED = "iceberg.tables.auto-create-props."
_COMMITS = "a batch is one commit, with its offsets, and needs no topic for control"
_ROUTES = (
    "a connector writes one table; create one for each table, with a Filter or a topic of its own"
)
_COMMA = re.compile(r",(?![^()]*\))")
_BY_TABLE = re.compile(r"iceberg\.table\.(.+)\.(id-columns|partition-by|commit-branch|route-regex)")


class IcebergSink(MappedClass):
    """Rows of an Iceberg table: appended, or merged by key."""

    names: ClassVar[tuple[str, ...]] = (
        "org.apache.iceberg.connect.IcebergSinkConnector",
        "io.tabular.iceberg.connect.IcebergSinkConnector",
    )
    kind: ClassVar[Kind] = "sink"
    rows: ClassVar[Rows] = "fields"
    component: ClassVar[str] = "iceberg"
    differences: ClassVar[tuple[str, ...]] = (
        "Exactly-once: rows and offsets are one commit for each batch; nothing is coordinated"
        " through a topic, and `commit.interval-ms` does not count.",
        "One table; records do not choose it.",
        "Without `upsert-mode-enabled` rows are appended, and a new table has no identifier "
        "fields. Tombstones are skipped.",
        "The table gets the property `write.wap.enabled`.",
    )
    places: ClassVar[Mapping[str, str]] = {
        "": _TABLES,
        "key": _IDS,
        "partition_by": _PARTITIONS,
        "warehouse": "iceberg.catalog.warehouse",
    }
    keys: ClassVar[tuple[Key, ...]] = (
        Key(_TABLES, Type.LIST, documentation="The table, as namespace.name; one.", importance="HIGH"),
        Key("iceberg.catalog", default="iceberg", documentation="Its name.", importance="LOW"),
        Key("iceberg.catalog.warehouse", default=None, documentation="The folder or URI of tables; "
            "further settings of the catalog are iceberg.catalog.*.", importance="HIGH"),
        Key("iceberg.catalog.type", default=None, documentation="hadoop, hive, rest, ..."),
        Key(
            "iceberg.tables.auto-create-enabled",
            Type.BOOLEAN,
            "false",
            "Whether a table that is missing is created.",
        ),
        Key(
            "iceberg.tables.evolve-schema-enabled",
            Type.BOOLEAN,
            "false",
            "Whether the table gains the columns and the wider types of the records.",
        ),
        Key(_IDS, default="", documentation="The columns of the key, for upsert mode."),
        Key(_PARTITIONS, default="", documentation="What divides a new table, as in days(at)."),
        Key(_UPSERT, Type.BOOLEAN, "false", "Whether a row replaces the one with its key."),
        Key(
            "iceberg.tables.schema-case-insensitive",
            Type.BOOLEAN,
            None,
            "Whether upper and lower case are the same in names of columns: they are.",
            check=only(("true",), "upper and lower case are the same in names of columns"),
        ),
        Key(
            "iceberg.tables.schema-force-optional",
            Type.BOOLEAN,
            None,
            "Whether columns of a new table accept nulls: they do.",
            check=only(("true",), "columns of a new table accept nulls: later records are not known"),
        ),
        Key("iceberg.tables.default-commit-branch", default=None, documentation="The branch: main.",
            check=only(("main",), "rows are committed to the branch main")),
        Key("iceberg.tables.dynamic-enabled", Type.BOOLEAN, "false", "Whether records name their table.",
            check=only(("false",), _ROUTES)),
    )  # fmt: skip
    without_effect: ClassVar[KeyTable] = {
        "iceberg.control.*": _COMMITS,
        "iceberg.connect.group-id": "the group is connect-NAME",
        "iceberg.coordinator*": _COMMITS,
        "iceberg.kafka.*": "clients have the settings of the workers' connection",
    }
    refused: ClassVar[KeyTable] = {
        "iceberg.tables.route-field": _ROUTES,
        "iceberg.tables.route-regex": _ROUTES,
        "iceberg.tables.cdc-field": "records are rows; make tombstones or flat records of changes before",
        "iceberg.tables.write-props.*": "properties of a table are iceberg.tables.auto-create-props.*",
        "iceberg.hadoop-conf-dir": "give settings of Hadoop as iceberg.hadoop.*",
    }

    def refusals(self, config: ConnectorConfig) -> Iterator[tuple[str, str]]:
        """Yield keys of other tables, too."""
        yield from super().refusals(config)
        table = ",".join(config[_TABLES] or [])
        for key, value in config.given.items():
            found = _BY_TABLE.fullmatch(key)
            if found and (found[1] != table or found[2] == "route-regex"):
                yield key, f"Configuration {key} is not supported here: {_ROUTES}"
            elif found and found[2] == "commit-branch" and value != "main":
                yield (
                    key,
                    f"Invalid value {value} for configuration {key}: rows are committed to main",
                )

    def warnings(self, config: ConnectorConfig) -> Iterator[tuple[str, str]]:
        """Yield nothing for settings of the catalog and of the table: all of them are used."""
        for key, text in super().warnings(config):
            if not key.startswith((_CATALOG, _HADOOP, _CREATED)) and not _BY_TABLE.fullmatch(key):
                yield key, text
        if self._ids(config) and not config[_UPSERT]:
            yield (
                _IDS,
                f"{_IDS} has no effect here: rows are appended; for a merge give {_UPSERT}=true",
            )

    def obstacles(self, config: ConnectorConfig) -> Iterator[tuple[str, str]]:
        """Yield several tables, a merge without a key, and a catalog that is none."""
        if len(config[_TABLES]) != 1:
            given_ = ",".join(config[_TABLES])
            yield _TABLES, f"Invalid value {given_} for configuration {_TABLES}: {_ROUTES}"
        if config[_UPSERT] and not self._ids(config):
            yield (
                _IDS,
                f"Invalid value for configuration {_IDS}: {_UPSERT} is true, which needs a key",
            )
        if (
            config.below(_HADOOP)
            and not self._has_catalog(config)
            and not config["iceberg.catalog.warehouse"]
        ):
            yield _TABLES, "there is no catalog: give iceberg.catalog.type and its settings"
        elif not config.below(_CATALOG):
            key = "iceberg.catalog.type"
            yield (
                key,
                f"Invalid value null for configuration {key}: give the catalog, as hadoop or rest",
            )

    def key_columns(self, config: ConnectorConfig) -> KeyColumns:
        """Return fields of the value."""
        return KeyColumns.record_value(*self._ids(config)) if config[_UPSERT] else KeyColumns.none()

    def tombstones(self, _config: ConnectorConfig) -> Tombstones:
        """Return that they are skipped, as the connector does."""
        return "skip"

    def pipeline(self, config: ConnectorConfig) -> dict[str, Any]:
        """Return a pipeline that writes the table."""
        upserts, table = config[_UPSERT], config[_TABLES][0]
        options = {
            "table": table,
            **self._place(config),
            "mode": "upsert" if upserts else "append",
            "key": self._ids(config) if upserts else None,
            "partition_by": [
                _division(text) for text in self._of_table(config, "partition-by", _PARTITIONS)
            ],
            "create": config["iceberg.tables.auto-create-enabled"],
            "evolve": config["iceberg.tables.evolve-schema-enabled"],
            "properties": config.below(_CREATED),
        }
        return {"sink": {"iceberg": given(options)}, "delivery": "exactly-once"}

    def _place(self, config: ConnectorConfig) -> dict[str, Any]:
        if not self._has_catalog(config):
            return {"warehouse": config["iceberg.catalog.warehouse"]}
        hadoop = {f"hadoop.{key}": value for key, value in config.below(_HADOOP).items()}
        return {"catalog": {**config.below(_CATALOG), **hadoop}}

    def _has_catalog(self, config: ConnectorConfig) -> bool:
        """Return whether there is more than a folder of tables."""
        settings = {**config.below(_CATALOG), **config.below(_HADOOP)}
        return settings.keys() != {"type", "warehouse"} or settings["type"] != "hadoop"

    def _ids(self, config: ConnectorConfig) -> list[str]:
        return self._of_table(config, "id-columns", _IDS)

    def _of_table(self, config: ConnectorConfig, name: str, default: str) -> list[str]:
        """Return a list that a table has of its own, or that of all tables."""
        tables = config[_TABLES] or [""]
        text = config.get(f"iceberg.table.{tables[0]}.{name}") or config[default] or ""
        return [part.strip() for part in _COMMA.split(text) if part.strip()]


def _division(text: str) -> str:
    """Return a part of a partition as the sink has it.

    >>> [_division(text) for text in ("region", "day(at)", "bucket(id, 16)", "truncate(name, 4)")]
    ['region', 'days(at)', 'bucket(16, id)', 'truncate(4, name)']
    """
    found = re.fullmatch(r"(\w+)\(([^,]+)(?:,\s*(\d+))?\s*\)", text)
    if found is None:
        return text
    name, column, number = found[1].lower(), found[2].strip(), found[3]
    if number:
        return f"{name}({number}, {column})"
    return f"{name.removesuffix('s')}s({column})"
