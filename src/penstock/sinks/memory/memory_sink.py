"""The sink that fills tables of this process."""

from __future__ import annotations

from collections.abc import Container

from pydantic import Field
from pyspark.sql.types import ArrayType, MapType, StructType

from penstock.errors import ConfigError
from penstock.pipeline import EVERY_DELIVERY, Batch, Delivery, LastWrite, Opening, Writer
from penstock.sinks.memory.table_store import DEFAULT_LIMIT, MemoryTable, memory_table
from penstock.sinks.tables import KeyedSink


class MemorySink(KeyedSink):
    """Rows in a table of this process: `penstock.memory_table(name)`, as Arrow, pandas or by SQL.

    Exactly-once for as long as the process lives: rows and the batch's mark change together, so a
    pipeline that is started again in this process goes on where the table is. The table ends with the
    process: a new one that goes on from an old checkpoint begins with an empty table, which then holds
    only what came since.
    """

    delivers = EVERY_DELIVERY
    name = "memory"
    main_option = "table"

    table: str = Field(min_length=1, description="The table's name.")
    limit: int = Field(
        default=DEFAULT_LIMIT,
        ge=1,
        description="The most rows to keep; the oldest fall out, for upsert the keys that were not "
        "written for the longest time.",
    )

    def open(self, opening: Opening) -> Writer:
        """Return what fills the table."""
        return MemoryWriter(self, opening)


class MemoryWriter(Writer[MemorySink]):
    """Fills a table of this process."""

    def prepare(self, schema: StructType) -> None:
        """Give the table its columns, or let it gain those that are new."""
        columns = self.sink.stored(schema)
        for name in self.sink.key:
            if isinstance(columns[name].dataType, (StructType, ArrayType, MapType)):
                kind = columns[name].dataType.simpleString()
                raise ConfigError(
                    f"'key' of the sink 'memory' names the column {name!r}, which is {kind}: a key is "
                    "a single value; a step can make one, as in 'to_json(a) AS a'"
                )
        self._table().open(columns)

    def write(self, batch: Batch) -> None:
        """Add the rows, or replace those with the same key."""
        table = self._table()
        table.open(self.sink.stored(batch.rows.schema))
        rows = batch.rows.toArrow()
        # Otherwise a pipeline that starts over in this process, with a new checkpoint, writes nothing.
        once = batch.delivery is not Delivery.AT_LEAST_ONCE
        table.take(rows, self.sink.delete_when, batch.pipeline, batch.as_write, skip_known=once)

    def last_write(self) -> LastWrite | None:
        """Return what the table knows."""
        return memory_table(self.sink.table).last_write(self.opening.pipeline)

    def claim(self, epoch: int, continues: Container[int] = ()) -> LastWrite | None:
        """Claim the epoch in the table."""
        return memory_table(self.sink.table).claim(self.opening.pipeline, epoch, continues)

    def _table(self) -> MemoryTable:
        table = memory_table(self.sink.table)
        table.become(tuple(self.sink.key), self.sink.limit)
        return table
