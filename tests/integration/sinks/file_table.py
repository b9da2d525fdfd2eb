"""A table of files under test: prepared as at a start, written to batch by batch, and read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
from pyspark.sql.types import StructType

from penstock.config import Connection
from penstock.pipeline import Batch, Delivery, Opening
from penstock.sinks.files import FilesSink

CONNECTION = Connection(brokers="nowhere:1")


class Table:
    """A sink with its folder: prepared as at a start, written to batch by batch, and read."""

    def __init__(self, spark: Any, place: Path, **options: Any) -> None:
        self.spark = spark
        self.place = place
        self.sink = FilesSink.model_validate({"path": str(place), **options})
        self._writers: dict[str, Any] = {}

    def start(self, schema: str, pipeline: str = "p") -> Table:
        self._writers.pop(pipeline, None)
        self.writer(pipeline).prepare(StructType.fromDDL(schema))
        return self

    def writer(self, pipeline: str = "p") -> Any:
        """Return the writer of a pipeline, open since its start."""
        if pipeline not in self._writers:
            opening = Opening(self.spark, pipeline, CONNECTION)
            self._writers[pipeline] = self.sink.open(opening)
        return self._writers[pipeline]

    def write(self, number: int, rows: Any, schema: str = "", **more: Any) -> Batch:
        frame = self.spark.createDataFrame(rows, schema).coalesce(1) if schema else rows
        exact = {"delivery": Delivery.EXACTLY_ONCE}
        options = {"pipeline": "p", "epoch": 0, "connection": CONNECTION} | exact | more
        batch = Batch(frame, id=number, **options)
        self.writer(batch.pipeline).write(batch)
        return batch

    def maintain(self, batch: Batch) -> None:
        self.writer(batch.pipeline).maintain(batch)

    def files(self) -> list[Path]:
        return sorted(
            file
            for file in self.place.rglob("*")
            if file.is_file()
            and not file.name.startswith((".", "_"))
            and "_penstock" not in file.parts
        )

    def names(self) -> list[str]:
        return [file.name.partition("part-")[0] for file in self.files()]

    def hidden(self) -> list[str]:
        hidden = (each.name for each in (self.place / "_penstock").iterdir())
        return sorted(name for name in hidden if name[0] != "." and name != "log")

    def column(self, name: str) -> list[Any]:
        kind = self.sink.format
        return sorted(
            value
            for file in self.files()
            for value in ds.dataset(file, format=kind).to_table().column(name).to_pylist()
        )
