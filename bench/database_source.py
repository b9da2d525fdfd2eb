"""PostgreSQL into Kafka: ours against a source connector in Kafka Connect, and Spark's JDBC by hand.

The table is filled and analyzed before the clock starts; Spark's session and Connect's worker are up and
warm. The clock stops when all rows are in the topic. The processor time is that of every process of a
side: Python and Java of Spark, or Connect's worker; not of PostgreSQL and the broker, which all share.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from itertools import count

import psutil
from pyspark.sql import functions as f
from tests.services.postgres import PASSWORD, Postgres

from bench.data import PARTITIONS
from bench.harness import GaveUpError, Result, Side, race
from bench.peers import jars
from bench.peers.connect import Worker
from penstock import Broker, Pipeline, start
from penstock.engine import spark_session
from penstock.kafka import Admin
from penstock.kafka.offsets import LATEST, PartitionOffsets
from penstock.pipeline import SparkOptions

TABLE, FEW = "trades", "trades_few"
LIMIT = 600.0
FILL = """
CREATE TABLE %s AS SELECT n AS id,
  (ARRAY['AAPL', 'MSFT', 'NVDA', 'TSLA', 'AMZN'])[1 + mod(n, 5)] AS symbol,
  round((10 + random() * 490)::numeric, 2) AS price, (1 + mod(n, 1000))::int AS size,
  CASE WHEN mod(n, 2) = 0 THEN 'buy' ELSE 'sell' END AS side,
  timestamptz '2024-01-01' + n * interval '1 second' AS at
FROM generate_series(1::bigint, %d) n
"""


def run(rows: int, rounds: int) -> list[Result]:
    """Measure all sides in turns, and print the processor time of the best turn of each."""
    with ExitStack() as stack:
        stage = Stage(stack, rows)
        sides = [
            Side("Penstock, exactly-once", rows, stage.turn("ours", stage.ours)),
            Side("Connect, Debezium", rows, stage.turn("connect", stage.connect)),
            Side("Spark JDBC by hand", rows, stage.turn("hand", stage.by_hand)),
        ]
        best = race("PostgreSQL into Kafka", sides, rounds)
        stage.print_processor_time()
    ours, *others = sides
    return [
        Result(f"PostgreSQL into Kafka / {each.name}", rows, best[ours.name], best[each.name], 1.0)
        for each in others
    ]


class Stage:
    """The servers, the table, and one way to time each side."""

    def __init__(self, stack: ExitStack, rows: int) -> None:
        self.rows = self._all = rows
        self.table = TABLE
        self._warm: set[str] = set()
        self._numbers = count()
        # The best turn of each side: seconds, and processor seconds.
        self._best: dict[str, tuple[float, float]] = {}
        self.connection = stack.enter_context(Broker()).connection
        self._offsets = stack.enter_context(closing(PartitionOffsets(self.connection, 10.0)))
        self.postgres = Postgres(wal_level="logical")
        stack.callback(self.postgres.remove)
        with self.postgres.connect() as session:
            for table, number in ((TABLE, rows), (FEW, rows // 10)):
                session.execute(FILL % (table, number))
                session.execute(f"ALTER TABLE {table} ADD PRIMARY KEY (id)")
                session.execute(f"VACUUM ANALYZE {table}")
        self._worker = Worker(self.connection.brokers)
        stack.callback(self._worker.close)
        # Spark is not there yet: all of these are servers.
        self._not_ours = {child.pid for child in psutil.Process().children()}
        driver = ",".join(map(str, jars.fetch("postgresql")))
        self.options = SparkOptions(conf={"spark.jars": driver})
        self.spark = spark_session(self.options)

    def turn(self, side: str, work: Callable[[str], None]) -> Callable[[], float]:
        """Time the work into a fresh topic, then see that every row is there."""

        def turn() -> float:
            # The first turn is the warm-up, with a tenth of the rows.
            few = side not in self._warm
            self.table, self.rows = (FEW, self._all // 10) if few else (TABLE, self._all)
            topic = f"{side}-{next(self._numbers)}-{self.table}"
            self._warm.add(side)
            with Admin(self.connection) as admin:
                admin.create_topic(topic, PARTITIONS)
            used, began = self._processor_time(side), time.monotonic()
            work(topic)
            took, spent = time.monotonic() - began, self._processor_time(side) - used
            if (found := self.committed(topic)) != self.rows:
                raise GaveUpError(f"{found:,} rows in the topic instead of {self.rows:,}")
            if not few:
                self._best[side] = min(self._best.get(side, (took, spent)), (took, spent))
            with Admin(self.connection) as admin:
                admin.delete_topic(topic)
            return took

        return turn

    def ours(self, topic: str) -> None:
        pipeline = Pipeline(
            name=topic,
            connection=self.connection,
            source={
                "database": {
                    "url": self.postgres.url,
                    "password": PASSWORD,
                    "tables": self.table,
                    "mode": "incrementing",
                    "incrementing_column": "id",
                }
            },
            sink={"kafka": topic},
            delivery="exactly-once",
            spark=self.options,
        )
        with start(pipeline, once=True) as running:
            running.wait()

    def by_hand(self, topic: str) -> None:
        """Read four ranges of the key at the same time, as Spark's guide has it."""
        rows = self.spark.read.jdbc(
            self._jdbc,
            self.table,
            column="id",
            lowerBound=1,
            upperBound=self.rows,
            numPartitions=4,
            properties={
                "driver": "org.postgresql.Driver",
                "user": "penstock",
                "password": PASSWORD,
                "fetchsize": "10000",
            },
        )
        value = f.to_json(f.struct("*")).alias("value")
        records = rows.select(f.col("id").cast("string").alias("key"), value)
        writer = records.write.format("kafka").options(**self.connection.spark())
        writer.option("topic", topic).mode("append").save()

    def connect(self, topic: str) -> None:
        """Let Debezium take its first snapshot and nothing else, with flat JSON values."""
        name = topic
        settings = {
            "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
            "database.hostname": self.postgres.host,
            "database.port": str(self.postgres.port),
            "database.user": "penstock",
            "database.password": PASSWORD,
            "database.dbname": "penstock",
            "plugin.name": "pgoutput",
            "slot.name": name.replace("-", "_"),
            "slot.drop.on.stop": "true",
            "publication.name": name.replace("-", "_"),
            "table.include.list": f"public.{self.table}",
            "topic.prefix": name,
            "snapshot.mode": "initial_only",
            "decimal.handling.mode": "string",
            "max.batch.size": "20000",
            "max.queue.size": "81920",
            "poll.interval.ms": "50",
            "producer.override.linger.ms": "50",
            "producer.override.batch.size": "1000000",
            "key.converter": "org.apache.kafka.connect.json.JsonConverter",
            "key.converter.schemas.enable": "false",
            "value.converter": "org.apache.kafka.connect.json.JsonConverter",
            "value.converter.schemas.enable": "false",
            "transforms": "flat,route",
            "transforms.flat.type": "io.debezium.transforms.ExtractNewRecordState",
            "transforms.route.type": "org.apache.kafka.connect.transforms.RegexRouter",
            "transforms.route.regex": ".*",
            "transforms.route.replacement": topic,
        }
        self._worker.import_all(name, settings, self.rows, lambda: self._written(topic), LIMIT)

    @property
    def _jdbc(self) -> str:
        return f"jdbc:postgresql://{self.postgres.host}:{self.postgres.port}/penstock"

    def _written(self, topic: str) -> int:
        """Return how many offsets the topic has: of records, and of the ends of transactions."""
        places = [(topic, number) for number in range(PARTITIONS)]
        return sum(self._offsets.at(LATEST, places).values())

    def committed(self, topic: str) -> int:
        reader = self.spark.read.format("kafka").options(**self.connection.spark())
        committed = reader.option("kafka.isolation.level", "read_committed")
        return committed.option("subscribe", topic).load().count()

    def _processor_time(self, side: str) -> float:
        """Return the seconds of all processes of a side, with those that have ended."""
        if side == "connect":
            return _seconds(psutil.Process(self._worker.pid), set())
        return _seconds(psutil.Process(), self._not_ours)

    def print_processor_time(self) -> None:
        """Print it for the best turn of each side."""
        for side, (took, spent) in self._best.items():
            each = spent / self.rows * 1e6
            print(f"  {side}: {took:.1f} s, {spent:.1f} s of processors ({each:.1f} µs a row)")


def _seconds(process: psutil.Process, without: set[int]) -> float:
    times = process.cpu_times()
    own = times.user + times.system + times.children_user + times.children_system
    children = [child for child in process.children() if child.pid not in without]
    return own + sum(_seconds(child, without) for child in children)
