"""The sink `iceberg`: what it promises, its options, and the location of its table."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from pydantic import Field, model_validator
from pyspark.sql import SparkSession
from pyspark.sql.types import DecimalType

from penstock.errors import ConfigError
from penstock.pipeline.names import quoted
from penstock.pipeline.storage import for_spark
from penstock.sinks.evolution import Evolution
from penstock.sinks.iceberg.iceberg_table import IcebergTable
from penstock.sinks.iceberg.partitions import Partition, Partitions
from penstock.sinks.lake.lake_sink import LakeSink, need_extension
from penstock.sinks.lake.lake_table import LakeTable

_CATALOG = "org.apache.iceberg.spark.SparkCatalog"


class IcebergSink(LakeSink):
    """Rows in an Apache Iceberg table: appended, or merged by key.

    Exactly-once: a batch is written as a snapshot that no reader sees yet, under the batch's name, and
    then published in one commit, together with its mark and ranges of offsets as properties of the
    table (`penstock.mark.PIPELINE`, `penstock.ranges.PIPELINE`). That commit succeeds only on the
    version of the table whose mark was checked. So a batch that is run again after a crash writes
    nothing, and another process that still writes the same batch, or runs the pipeline in an earlier
    epoch, is refused. For this the table is given the property `write.wap.enabled`. A merge is
    published only if nothing else was written meanwhile; else the batch is run again. Removing old
    snapshots keeps the marks.

    The table follows the rows: new columns are added; int grows to bigint, float to double, and
    decimals in their precision.
    """

    name = "iceberg"
    main_option = "table"

    table: str = Field(
        pattern=r"^[^.\s]+(\.[^.\s]+)+$",
        description="The table, with its namespace, as in `sales.trades`; without `warehouse`, with its "
        "catalog too, as in `lake.sales.trades`.",
    )
    warehouse: str | None = Field(
        default=None,
        min_length=1,
        description="A folder or a URI that holds tables. Without it the table is in a catalog that "
        "`spark.conf` sets up, as in `spark.sql.catalog.lake: org.apache.iceberg.spark.SparkCatalog`.",
    )
    catalog: dict[str, str] = Field(
        default_factory=dict,
        description="Instead of `warehouse`: settings of the table's catalog, as in `{type: rest, uri: "
        '"http://host:8181", warehouse: sales}`; their names are those that Spark has below '
        "`spark.sql.catalog.NAME.`.",
    )
    partition_by: Partitions = Field(
        default_factory=list,
        description="What divides the table: columns, or years, months, days or hours of one, as in "
        "`days(at)`, or `bucket(16, id)`, `truncate(4, name)`.",
    )

    @model_validator(mode="after")
    def _catalog_where_needed(self) -> IcebergSink:
        if self.warehouse is not None and self.catalog:
            raise ValueError(
                "'warehouse' and 'catalog' are both given: put the warehouse into the catalog"
            )
        if self.warehouse is None and not self.catalog and self.table.count(".") < 2:
            raise ValueError(
                f"table {self.table!r} has no catalog: give 'warehouse' (a folder or a URI), 'catalog' "
                "(settings), or the name of a catalog of 'spark.conf' first, as in 'lake.sales.trades'"
            )
        return self

    def storage_paths(self) -> list[str]:
        """Return the folder of the tables, where it is known by it."""
        return [self.warehouse] if self.warehouse else []

    def target(self, spark: SparkSession) -> IcebergTable:
        """Return the table, after making its catalog known to the session."""
        extension = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
        need_extension(spark, "iceberg", extension)
        parts = self.table.split(".")
        if self.warehouse is not None:
            parts = [_folder_catalog(spark, for_spark(spark, self.warehouse)), *parts]
        elif self.catalog:
            parts = [_catalog(spark, self.catalog), *parts]
        elif spark.conf.get(f"spark.sql.catalog.{parts[0]}", None) is None:
            raise ConfigError(
                f"the sink 'iceberg' writes to {self.table!r}, and there is no catalog {parts[0]!r}: set "
                f"it up in 'spark.conf' with 'spark.sql.catalog.{parts[0]}: {_CATALOG}', or give "
                "'warehouse', a folder or a URI"
            )
        named = f"the Iceberg table {self.table}"
        return IcebergTable(spark, ".".join(map(quoted, parts)), named)

    def divided_by(self) -> list[str]:
        """Return the columns that `partition_by` names, alone or in a function."""
        return [Partition.read(written).column for written in self.partition_by]

    def check(self, change: Evolution, table: LakeTable) -> None:
        """Refuse decimals whose scale grows: Iceberg cannot change it."""
        now = {field.name.lower(): field for field in table.schema().fields}
        for field in change.widened:
            old, new = now[field.name.lower()].dataType, field.dataType
            if isinstance(old, DecimalType) and old.scale != getattr(new, "scale", None):
                raise ConfigError(
                    f"{table.named} has the column {field.name!r} as {old.simpleString()}, and the rows "
                    f"bring {new.simpleString()}: Iceberg cannot give a decimal more digits behind the "
                    "point; cast it in a step, or write to another table"
                )


def _folder_catalog(spark: SparkSession, warehouse: str) -> str:
    """Make a catalog over a folder known to the session; return its name."""
    return _catalog(spark, {"type": "hadoop", "warehouse": warehouse}, warehouse)


def _catalog(spark: SparkSession, settings: Mapping[str, str], identity: str = "") -> str:
    """Make a catalog with these settings known to the session; return its name."""
    text = identity or "\n".join(f"{key}={settings[key]}" for key in sorted(settings))
    name = f"penstock_{hashlib.sha256(text.encode()).hexdigest()[:12]}"
    spark.conf.set(f"spark.sql.catalog.{name}", _CATALOG)
    # Other processes write too: a table is loaded again for each statement.
    for key, value in {**settings, "cache-enabled": "false"}.items():
        spark.conf.set(f"spark.sql.catalog.{name}.{key}", value)
    return name
