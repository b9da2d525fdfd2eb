"""The sink that fills tables of this process."""

from __future__ import annotations

from pydantic import Field
from pyspark.sql.types import ArrayType, MapType, StructType

from penstock.errors import ConfigError
from penstock.pipeline import EVERY_DELIVERY, Batch, Delivery, Opening
from penstock.sinks.memory.table import DEFAULT_LIMIT, MemoryTable, memory_table
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

    def prepare(self, opening: Opening) -> None:
        """Give the table its columns, or let it gain those that are new."""
        columns = self.stored(opening.schema)
        for name in self.key:
            if isinstance(columns[name].dataType, (StructType, ArrayType, MapType)):
                kind = columns[name].dataType.simpleString()
                raise ConfigError(
                    f"'key' of the sink 'memory' names the column {name!r}, which is {kind}: a key is "
                    "a single value; a step can make one, as in 'to_json(a) AS a'"
                )
        self._table().open(columns)

    def write(self, batch: Batch) -> None:
        """Add the rows, or put each in the place of the one with its key."""
        table = self._table()
        table.open(self.stored(batch.rows.schema))
        rows = batch.rows.toArrow()
        # Else somebody who begins anew in this process, with a new checkpoint, would find nothing.
        once = batch.delivery is Delivery.EXACTLY_ONCE
        table.take(rows, self.delete_when, batch.pipeline, batch.mark, skip_known=once)

    def _table(self) -> MemoryTable:
        table = memory_table(self.table)
        table.become(tuple(self.key), self.limit)
        return table
