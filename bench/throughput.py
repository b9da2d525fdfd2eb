"""Kafka to nowhere and to Parquet, declared schema and Python parser, against hand-written Spark."""

from __future__ import annotations

import itertools
import json
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import functions as f

from bench.data import SCHEMA, fill
from bench.harness import Result, Run, compare
from penstock import Pipeline, start
from penstock.config import Connection
from penstock.engine import spark_session

_numbers = itertools.count()


def parse(value: str) -> dict[str, Any]:
    trade = json.loads(value)
    del trade["venue"]
    return trade


def run(connection: Connection, rows: int, rounds: int) -> list[Result]:
    topic = f"bench-{rows}"
    fill(connection, topic, rows)
    scratch = Path(tempfile.mkdtemp(prefix="penstock-bench-"))
    sides = _Sides(connection, topic, scratch)
    try:
        return [
            compare(
                "JSON schema -> discard",
                sides.ours({"json": {"schema": SCHEMA}}, "discard"),
                sides.from_json("noop"),
                rows=rows,
                rounds=rounds,
                wanted=1.2,
            ),
            compare(
                "JSON schema -> Parquet",
                sides.ours({"json": {"schema": SCHEMA}}, "parquet"),
                sides.from_json("parquet"),
                rows=rows,
                rounds=rounds,
                wanted=0.95,
            ),
            compare(
                "Python parser -> discard",
                sides.ours(
                    {"python": {"function": "bench.throughput:parse", "schema": SCHEMA}}, "discard"
                ),
                sides.map_in_arrow("noop"),
                rows=rows,
                rounds=rounds,
                wanted=0.9,
            ),
        ]
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


class _Sides:
    def __init__(self, connection: Connection, topic: str, scratch: Path) -> None:
        self.connection = connection
        self.topic = topic
        self.scratch = scratch
        self.spark = spark_session()

    def ours(self, decode: Any, sink: str) -> Run:
        def once() -> None:
            number = next(_numbers)
            path = str(self.scratch / f"ours-{number}")
            pipeline = Pipeline(
                name=f"bench-{number}",
                connection=self.connection,
                source={"kafka": self.topic},
                decode=decode,
                sink={"files": path} if sink == "parquet" else sink,
                state=str(self.scratch / "state"),
            )
            with start(pipeline, once=True) as running:
                running.wait()
            shutil.rmtree(path, ignore_errors=True)

        return once

    def from_json(self, sink: str) -> Run:
        """The job a good engineer writes: the value as text, from_json with a schema, the columns."""

        def rows() -> Any:
            parsed = f.from_json(f.col("value").cast("string"), SCHEMA)
            return self._records().select(parsed.alias("row")).select("row.*")

        return lambda: self._write(rows(), sink)

    def map_in_arrow(self, sink: str) -> Run:
        def rows() -> Any:
            return self._records().select("value").mapInArrow(parse_batches, SCHEMA)

        return lambda: self._write(rows(), sink)

    def _records(self) -> Any:
        reader = self.spark.readStream.format("kafka").options(**self.connection.spark())
        return reader.option("subscribe", self.topic).option("startingOffsets", "earliest").load()

    def _write(self, rows: Any, sink: str) -> None:
        path = str(self.scratch / f"raw-{next(_numbers)}")
        writer = rows.writeStream.format(sink).option("checkpointLocation", f"{path}-checkpoint")
        if sink == "parquet":
            writer = writer.option("path", path)
        writer.trigger(availableNow=True).start().awaitTermination()
        shutil.rmtree(path, ignore_errors=True)


def parse_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    schema = pa.schema(
        [
            ("id", pa.int64()),
            ("symbol", pa.string()),
            ("price", pa.float64()),
            ("size", pa.int32()),
            ("side", pa.string()),
        ]
    )
    for batch in batches:
        values = batch.column(0).to_pylist()
        yield pa.RecordBatch.from_pylist([json.loads(value) for value in values], schema=schema)
