"""Rows as records of a Kafka topic."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field
from pyspark.sql import functions as f

from penstock.errors import ConfigError, nearest
from penstock.pipeline import Batch, Sink
from penstock.pipeline.values import AnyConnection

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


class KafkaSink(Sink):
    """Rows as records of a topic: a column each for key and headers, the rest as one JSON object.

    At-least-once: every record is acknowledged by all in-sync replicas before the batch is done; a
    batch that is repeated is sent again.
    """

    name = "kafka"
    main_option = "topic"

    topic: str = Field(min_length=1, description="The topic to write to.")
    key: str | None = Field(default=None, description="The column that is the record's key.")
    value: str | None = Field(
        default=None,
        description="The column that is the record's value, as it is; default: all other columns "
        "as a JSON object.",
    )
    headers: str | None = Field(
        default=None, description="A column array<struct<key:string,value:binary>>."
    )
    connection: AnyConnection | None = Field(
        default=None, description="Another cluster than the pipeline's."
    )

    def write(self, batch: Batch) -> None:
        """Send the rows."""
        connection = self.connection or batch.connection
        options = {"kafka.acks": "all", "kafka.enable.idempotence": "true"} | connection.spark()
        records = batch.rows.select(*self._columns(batch.rows))
        writer = records.write.format("kafka").mode("append").options(**options)
        writer.option("topic", self.topic).save()

    def _columns(self, rows: DataFrame) -> list[Column]:
        for column in (self.key, self.value, self.headers):
            if column is not None and column not in rows.columns:
                raise ConfigError(
                    f"the sink 'kafka' is told to use the column {column!r}; "
                    f"{nearest(column, rows.columns)}"
                )
        rest = [name for name in rows.columns if name not in (self.key, self.headers)]
        value = (
            f.col(self.value)
            if self.value
            else f.to_json(f.struct(*rest), {"ignoreNullFields": "false"})
        )
        columns = [value.alias("value")]
        if self.key:
            columns.append(_text_or_bytes(rows, self.key).alias("key"))
        if self.headers:
            columns.append(f.col(self.headers).alias("headers"))
        return columns


def _text_or_bytes(rows: DataFrame, column: str) -> Column:
    kind = dict(rows.dtypes)[column]
    return f.col(column) if kind in ("string", "binary") else f.col(column).cast("string")
