"""The jobs that a good engineer writes by hand: Spark's own sources and sinks, a schema, a checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from bench.data import SCHEMA
from penstock.config import Connection

# Larger than Spark's default of 1000, as its guide advises for inserts.
BATCH = 10_000


class Jobs:
    """Kafka to each target, as far as the topic reaches when the job is started."""

    def __init__(self, spark: SparkSession, connection: Connection, topic: str) -> None:
        self.spark = spark
        self.connection = connection
        self.topic = topic

    def files(self, form: str, path: Path) -> None:
        self._drain(self._writer(path).format(form).option("path", str(path)).start())

    def delta(self, path: Path) -> None:
        self._drain(self._writer(path).format("delta").start(str(path)))

    def iceberg(self, table: str, path: Path) -> None:
        self._drain(self._writer(path).format("iceberg").toTable(table))

    def jdbc(self, url: str, table: str, properties: dict[str, str], path: Path) -> None:
        more = {
            "driver": "org.postgresql.Driver",
            "batchsize": str(BATCH),
            "reWriteBatchedInserts": "true",
        }

        def write(rows: DataFrame, _batch: int) -> None:
            rows.write.jdbc(url, table, mode="append", properties=properties | more)

        self._drain(self._writer(path).foreachBatch(write).start())

    def kafka(self, topic: str, path: Path) -> None:
        values = self._rows().select(f.to_json(f.struct("*")).alias("value"))
        writer = values.writeStream.format("kafka").options(**self.connection.spark())
        writer = writer.option("topic", topic).option("checkpointLocation", f"{path}-checkpoint")
        self._drain(writer.trigger(availableNow=True).start())

    def _rows(self) -> DataFrame:
        reader = self.spark.readStream.format("kafka").options(**self.connection.spark())
        records = (
            reader.option("subscribe", self.topic).option("startingOffsets", "earliest").load()
        )
        parsed = f.from_json(f.col("value").cast("string"), SCHEMA)
        return records.select(parsed.alias("row")).select("row.*")

    def _writer(self, path: Path) -> Any:
        writer = self._rows().writeStream.outputMode("append").trigger(availableNow=True)
        return writer.option("checkpointLocation", f"{path}-checkpoint")

    def _drain(self, query: Any) -> None:
        query.awaitTermination()
