"""What all sinks that fill a table share: append or upsert, the newest row of a key, deletes."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import BooleanType, StructType

from penstock.errors import ConfigError, nearest
from penstock.pipeline import Sink
from penstock.pipeline.names import ColumnNames, quoted

_ORDER = "_penstock_order"
_NEWEST = "_penstock_newest"


class KeyedSink(Sink):
    """Base of the sinks that can append rows, or keep one row for each key."""

    mode: Literal["append", "upsert"] = Field(
        default="append",
        description="append: every row is added. upsert: a row replaces the one with its key.",
    )
    key: ColumnNames = Field(
        default_factory=list, description="For upsert: the columns that tell rows apart."
    )
    delete_when: str | None = Field(
        default=None,
        description="For upsert: a boolean column; a row where it is true deletes the row with its "
        "key. The column itself is not stored.",
    )

    @model_validator(mode="after")
    def _key_where_needed(self) -> KeyedSink:
        self._require_key()
        if self.delete_when in self.key:
            raise ValueError(
                f"{self.delete_when!r} cannot be part of the key and say what to delete"
            )
        return self

    def _require_key(self) -> None:
        """Raise where the key and the mode do not fit together."""
        if self.mode == "upsert" and not self.key:
            raise ValueError("mode is 'upsert': say which columns are the key, as in 'key: id'")
        if self.mode == "append" and (self.key or self.delete_when):
            given = "key" if self.key else "delete_when"
            raise ValueError(f"{given!r} is for mode 'upsert'; given mode 'append'")

    @property
    def is_keyed(self) -> bool:
        """Return whether a row replaces another one of its key."""
        return self.mode != "append"

    def stored(self, rows: StructType) -> StructType:
        """Return the columns that the table has, or refuse rows that lack what the options name."""
        for column in (*self.key, *([self.delete_when] if self.delete_when else [])):
            if column not in rows.names:
                raise ConfigError(
                    f"the sink {self.name!r} is configured to use the column {column!r}; "
                    f"{nearest(column, rows.names)}"
                )
        if self.delete_when and not isinstance(rows[self.delete_when].dataType, BooleanType):
            kind = rows[self.delete_when].dataType.simpleString()
            raise ConfigError(
                f"'delete_when' names the column {self.delete_when!r}, which is {kind}: it must be "
                "boolean; a step can make it so, as in \"op = 'd' AS gone\""
            )
        return StructType([field for field in rows.fields if field.name != self.delete_when])

    def newest(self, rows: DataFrame) -> DataFrame:
        """Return the last row of each key: records of one key come from one partition, in order."""
        columns = f.struct(*(f.col(quoted(name)) for name in rows.columns))
        ordered = rows.select(columns.alias(_NEWEST), f.monotonically_increasing_id().alias(_ORDER))
        keys = [
            f.col(f"{_NEWEST}.{quoted(name)}").alias(f"_{at}") for at, name in enumerate(self.key)
        ]
        last = ordered.groupBy(*keys).agg(f.max_by(_NEWEST, _ORDER).alias(_NEWEST))
        return last.select(f"{_NEWEST}.*")
