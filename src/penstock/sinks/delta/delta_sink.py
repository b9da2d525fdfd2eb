"""The sink `delta`: what it promises, its options, and the location of its table."""

from __future__ import annotations

from pydantic import Field, model_validator
from pyspark.sql import SparkSession

from penstock.pipeline.names import quoted
from penstock.pipeline.storage import for_spark
from penstock.sinks.delta.delta_table import DeltaTable
from penstock.sinks.lake.lake_sink import LakeSink, need_extension


class DeltaSink(LakeSink):
    """Rows in a Delta Lake table: appended, or merged by key.

    Exactly-once: the commit that holds the rows holds the batch's number too, as Delta's own transaction
    of an application (`penstock~PIPELINE~EPOCH`). A batch that is run again after a crash finds its
    number and writes nothing; a commit that a crash cut off was never part of the table. Another process
    that still writes the same batch loses: Delta refuses the later of two commits with the same
    application's number, and its process starts the batch again and finds it done. A process of an
    earlier epoch is refused, also in the middle of a write. The ranges of offsets are in the commit's
    user metadata.

    The table follows the rows: new columns are added, and types grow (which turns on Delta's type
    widening for the table). A name with a space, a comma or one of `;{}()=` turns on Delta's column
    mapping, which a reader must know. Joining small files and removing old ones keeps the numbers.
    """

    name = "delta"
    main_option = "path"

    path: str | None = Field(
        default=None, min_length=1, description="Where the table is: a folder, or a URI."
    )
    table: str | None = Field(
        default=None,
        min_length=1,
        description="Instead of `path`: the table's name in Spark's catalog, as in `sales.trades`.",
    )

    @model_validator(mode="after")
    def _one_place(self) -> DeltaSink:
        if (self.path is None) == (self.table is None):
            raise ValueError("give either 'path' (a folder or a URI) or 'table' (a name), not both")
        return self

    def storage_paths(self) -> list[str]:
        """Return the table's folder, where it is known by it."""
        return [self.path] if self.path else []

    def target(self, spark: SparkSession) -> DeltaTable:
        """Return the table of this path or name."""
        need_extension(spark, "delta", "io.delta.sql.DeltaSparkSessionExtension")
        if self.path is not None:
            place = for_spark(spark, self.path)
            return DeltaTable(spark, f"delta.{quoted(place)}", f"the Delta table {place}", place)
        name = str(self.table)
        sql = ".".join(quoted(part) for part in name.split("."))
        return DeltaTable(spark, sql, f"the Delta table {name}")
