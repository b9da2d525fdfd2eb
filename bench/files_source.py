"""A folder of JSON lines into a topic, against a hand-written Spark file stream with the Kafka writer.

Ours is exactly-once (transactions with positions), the other side at-least-once, as Spark's writer is.
"""

from __future__ import annotations

import itertools
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from bench.data import PARTITIONS, trades
from bench.harness import Result, Run, compare
from penstock import Pipeline, start
from penstock.config import Connection
from penstock.engine import spark_session
from penstock.kafka import Admin

FILES = 8
_numbers = itertools.count()


def run(connection: Connection, rows: int, rounds: int) -> list[Result]:
    folder = Path(tempfile.mkdtemp(prefix="penstock-bench-"))
    try:
        write_files(folder / "in", rows)
        sides = _Sides(connection, folder)
        return [
            compare(
                f"{form} of files -> topic",
                sides.counted(lambda topic, form=form: sides.ours(topic, form), rows),
                sides.counted(sides.file_stream, rows),
                rows=rows,
                rounds=rounds,
                wanted=0.8,
            )
            for form in ("lines", "json_lines")
        ]
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def write_files(folder: Path, rows: int) -> None:
    """Write that many trades, one each line, evenly into some files."""
    folder.mkdir()
    values = trades(1000)
    for number in range(FILES):
        count = rows // FILES + (number < rows % FILES)
        with (folder / f"{number}.json").open("wb") as file:
            file.writelines(values[n % 1000] + b"\n" for n in range(count))


class _Sides:
    def __init__(self, connection: Connection, folder: Path) -> None:
        self.connection = connection
        self.folder = folder
        self.spark = spark_session()

    def counted(self, work: Callable[[str], None], rows: int) -> Run:
        """Do the work into a new topic, and require at least that many records in it."""

        def once() -> None:
            topic = f"bench-files-{next(_numbers)}"
            with Admin(self.connection) as admin:
                admin.create_topic(topic, PARTITIONS)
                work(topic)
                places = admin.partitions([topic])
                # With the marks of transactions.
                assert sum(admin.latest(places).values()) >= rows
                admin.delete_topic(topic)

        return once

    def ours(self, topic: str, form: str) -> None:
        pipeline = Pipeline(
            name=topic,
            connection=self.connection,
            source={"files": {"folder": str(self.folder / "in"), "format": form}},
            sink={"kafka": topic},
            delivery="exactly-once",
        )
        with start(pipeline, once=True) as running:
            running.wait()

    def file_stream(self, topic: str) -> None:
        """The job a good engineer writes: lines as values, written to the topic."""
        checkpoint = self.folder / f"{topic}-checkpoint"
        lines = self.spark.readStream.text(str(self.folder / "in"))
        writer = lines.writeStream.format("kafka").options(**self.connection.spark())
        writer = writer.option("topic", topic).option("checkpointLocation", str(checkpoint))
        writer.trigger(availableNow=True).start().awaitTermination()
