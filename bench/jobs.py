"""Jobs: a Python parser and a declared schema, against hand-written Spark, a plain pipeline and peers.

All of Spark's sides write Parquet files, which are counted; the peers parse the same records in the
same way and keep nothing, which is to their favour.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from bench.data import SCHEMA
from bench.harness import Result, Side
from bench.peers import bytewax, quix
from bench.sinks import Case
from bench.stage import AT_LEAST, FEW_TOPIC, LIMIT, TOPIC, Stage
from bench.targets import Files
from bench.throughput import parse_batches
from penstock import Pipeline, create_job, start
from penstock.jobs import Store


def parse(value: str) -> dict[str, Any]:
    trade = json.loads(value)
    del trade["venue"]
    return trade


def run(rows: int, rounds: int) -> list[Result]:
    """Measure both kinds of job."""
    with ExitStack() as closing:
        stage = Stage(closing, rows)
        work = _Work(stage)
        target = Files(stage.scratch, "parquet")
        cases = [
            Case(
                "job, Python parser",
                work.side("job", target, work.job(parse)),
                [
                    (work.side("Spark, mapInArrow by hand", target, work.by_hand), 0.9),
                    (work.quix(), 1.0),
                    (work.bytewax(), 1.0),
                ],
            ),
            Case(
                "job, declared schema",
                work.side("job", target, work.job(None)),
                [(work.side("plain pipeline", target, work.pipeline), 1.0)],
            ),
        ]
        return [result for case in cases for result in case.measured(rounds)]


class _Work:
    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self._store = Store(stage.scratch / "jobs.sqlite")

    def side(self, name: str, target: Files, work: Callable[[str, Files], None]) -> Side:
        turn = self.stage.turn(target, self.stage.rows, lambda table: work(table, target))
        return Side(name, self.stage.rows, turn)

    def job(self, parser: Any) -> Callable[[str, Files], None]:
        def work(name: str, target: Files) -> None:
            job = create_job(
                TOPIC,
                target.sink(name),
                parser,
                name,
                schema=SCHEMA,
                connection=self.stage.connection,
                delivery=AT_LEAST,
                store=self._store,
                state=str(self.stage.scratch / "state"),
                spark=self.stage.options,
            )
            while job.progress().records < self.stage.rows:
                time.sleep(0.1)
            job.cancel()

        return work

    def pipeline(self, name: str, target: Files) -> None:
        pipeline = Pipeline(
            name=name,
            connection=self.stage.connection,
            source={"kafka": TOPIC},
            decode={"json": {"schema": SCHEMA}},
            sink=target.sink(name),
            state=str(self.stage.scratch / "state"),
            spark=self.stage.options,
        )
        with start(pipeline, once=True) as running:
            running.wait()

    def by_hand(self, name: str, target: Files) -> None:
        reader = self.stage.spark.readStream.format("kafka")
        records = reader.options(**self.stage.connection.spark()).option("subscribe", TOPIC)
        rows = records.option("startingOffsets", "earliest").load().select("value")
        checkpoint = f"{target.place(name)}_checkpoint"
        writer = rows.mapInArrow(parse_batches, SCHEMA).writeStream.format("parquet")
        writer = writer.option("path", str(target.place(name)))
        writer = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True)
        writer.start().awaitTermination()
        shutil.rmtree(checkpoint, ignore_errors=True)

    def quix(self) -> Side:
        def once() -> float:
            task = {"brokers": self.stage.connection.brokers, "guarantee": AT_LEAST, "sink": "none"}
            return quix.run(FEW_TOPIC, self.stage.few, self._folder(), task, LIMIT)

        return Side("Quix Streams, no sink", self.stage.few, once, warm_up=False)

    def bytewax(self) -> Side:
        def once() -> float:
            brokers = self.stage.connection.brokers
            return bytewax.run(FEW_TOPIC, self.stage.few, self._folder(), brokers, LIMIT)

        return Side("Bytewax, no sink", self.stage.few, once, warm_up=False)

    def _folder(self) -> Path:
        folder = self.stage.scratch / f"peer_{time.monotonic_ns()}"
        folder.mkdir()
        return folder
