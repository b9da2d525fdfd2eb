"""What the comparisons of sinks share: the topics, the session, the servers, and how a side is timed."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Any

from tests.services.postgres import Postgres

from bench.data import PARTITIONS, SCHEMA, fill
from bench.harness import GaveUpError, Side
from bench.peers import jars, quix
from bench.peers.connect import Count, Worker
from bench.spark_jobs import Jobs
from bench.targets import Target
from penstock import Broker, Pipeline, start
from penstock.engine import spark_session
from penstock.pipeline import SparkOptions

TOPIC, FEW_TOPIC = "trades", "trades-few"
FEWER = 5
LIMIT = 300.0
JSON = {"json": {"schema": SCHEMA}}
EXACTLY, AT_LEAST = "exactly-once", "at-least-once"
# All members of a peer's group are there when it divides the partitions: nobody moves in mid-work.
BROKER = {"group.initial.rebalance.delay.ms": 1000}
Work = Callable[[str], float | None]
"""Fills the table of this name; may return the seconds that count."""


class Stage:
    """Everything that the sides need; servers are started when the first side needs them."""

    def __init__(self, closing: ExitStack, rows: int) -> None:
        self._closing = closing
        self._numbers = count()
        self.rows = rows // PARTITIONS * PARTITIONS
        self.few = max(rows // FEWER // PARTITIONS, 1) * PARTITIONS
        # A peer takes no folder with a dash in its name.
        self.scratch = Path(tempfile.mkdtemp(prefix="penstock_bench_"))
        closing.callback(shutil.rmtree, self.scratch, ignore_errors=True)
        self.connection = closing.enter_context(Broker(properties=BROKER)).connection
        # Keys are there because a peer is slow without: it writes the whole record in their place.
        fill(self.connection, TOPIC, self.rows, key="k")
        fill(self.connection, FEW_TOPIC, self.few, key="k")
        driver = ",".join(map(str, jars.fetch("postgresql")))
        self.options = SparkOptions(conf={"spark.jars": driver})
        with _start_up("Spark"):
            self.spark = spark_session(self.options)

    @cached_property
    def worker(self) -> Worker:
        with _start_up("Kafka Connect"):
            worker = Worker(self.connection.brokers)
        self._closing.callback(worker.close)
        return worker

    @cached_property
    def postgres(self) -> Postgres:
        server = Postgres(fsync="on")
        self._closing.callback(server.remove)
        return server

    def ours(self, target: Target, delivery: str, decode: Any = JSON) -> Side:
        def work(name: str) -> None:
            pipeline = Pipeline(
                name=name,
                connection=self.connection,
                source={"kafka": TOPIC},
                decode=decode,
                sink=target.sink(name),
                delivery=delivery,
                state=str(self.scratch / "state"),
                spark=self.options,
            )
            with start(pipeline, once=True) as running:
                running.wait()

        return Side(f"ours, {delivery}", self.rows, self.turn(target, self.rows, work))

    def by_hand(self, target: Target) -> Side:
        jobs = Jobs(self.spark, self.connection, TOPIC)

        def work(name: str) -> None:
            target.spark(jobs, name)

        return Side("Spark by hand", self.rows, self.turn(target, self.rows, work))

    def quix(self, title: str, target: Target, task: Callable[[str], dict[str, object]]) -> Side:
        def work(name: str) -> float:
            more = {"brokers": self.connection.brokers, "guarantee": AT_LEAST} | task(name)
            return quix.run(FEW_TOPIC, self.few, target.place(name), more, LIMIT)

        turn = self.turn(target, self.few, work)
        return Side(f"Quix Streams{title}", self.few, turn, warm_up=False)

    def connect(
        self,
        title: str,
        target: Target,
        rows: int,
        settings: Callable[[str], dict[str, str]],
        counter: Callable[[str], Count],
    ) -> Side:
        def work(name: str) -> float:
            return self.worker.run(name, settings(name), rows, counter(name), LIMIT)

        return Side(f"Connect, {title}", rows, self.turn(target, rows, work))

    def turn(self, target: Target, rows: int, work: Work) -> Callable[[], float]:
        """Time the work on a fresh table, then see that every row is there."""

        def turn() -> float:
            name = f"bench-{next(self._numbers)}"
            target.create(name)
            try:
                began = time.monotonic()
                took = work(name) or time.monotonic() - began
                if (found := target.rows(name)) != rows:
                    raise GaveUpError(f"{found:,} rows in the table instead of {rows:,}")
                return took
            finally:
                target.remove(name)

        return turn


@contextmanager
def _start_up(what: str) -> Iterator[None]:
    began = time.monotonic()
    yield
    took = time.monotonic() - began
    print(f"  start-up of {what}, not counted below: {took:.1f} s", flush=True)
