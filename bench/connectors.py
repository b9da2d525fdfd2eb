"""The same configurations of connectors on a worker of Kafka Connect and on Penstock, in one run.

Sinks: a topic of JSON into a file (lines unread, and read as rows), an Iceberg table and a table of
PostgreSQL. Both sides are up and warm, promise the same, and their tables are counted afterwards. No JDBC
source of Connect is in the Maven repository that jars are fetched from: the JDBC source's configuration
is compared with the first snapshot of Debezium's connector of the same table.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tests.services.postgres import PASSWORD

from bench import database_source
from bench.harness import GaveUpError, Result, Side, race
from bench.peers import connect_sinks
from bench.peers.connect import Count
from bench.stage import FEW_TOPIC, TOPIC, Stage
from bench.targets import Database, Iceberg, Lines, Target, word
from penstock import Connection, Pipeline, start
from penstock.connect.connectors import CATALOG
from penstock.connect.translation import definition_of
from penstock.connect.validation import validate, with_name
from penstock.engine import stop_session
from penstock.pipeline import SparkOptions

FASTER = 1.0
Settings = Callable[[str, str], dict[str, str]]
"""The configuration of a connector, for a topic and the name of a table."""


def run(rows: int, rounds: int) -> list[Result]:
    """Measure the sinks, one after the other, then the source."""
    with ExitStack() as closing:
        stage = Stage(closing, rows)
        sinks = [case(stage).measured(rounds) for case in SINKS]
    stop_session()  # the source counts the processor time of what it starts
    return [*sinks, _source(rows, rounds)]


@dataclass(frozen=True)
class Case:
    """A sink: its configuration for a topic and a table, and how its rows are counted on the way.

    Where the connector is a `slow` one, Connect has fewer rows.
    """

    stage: Stage
    title: str
    target: Target
    settings: Settings
    counter: Callable[[str], Count]
    slow: bool = False

    def measured(self, rounds: int) -> Result:
        """Race both sides."""
        sides = [self._here(), self._there()]
        best = race(self.title, sides, rounds)
        here, there = sides
        title = f"{self.title} / Connect"
        return Result(title, here.rows, best[here.name], best[there.name], FASTER, there.rows)

    def _here(self) -> Side:
        stage = self.stage

        def work(name: str) -> None:
            state = str(stage.scratch / "state")
            settings = self.settings(TOPIC, name)
            _run(_pipeline(name, settings, stage.connection, stage.options, state=state))

        return Side("Penstock", stage.rows, stage.turn(self.target, stage.rows, work))

    def _there(self) -> Side:
        stage = self.stage
        topic, rows = (FEW_TOPIC, stage.few) if self.slow else (TOPIC, stage.rows)
        settings = partial(self.settings, topic)
        return stage.connect(self.title, self.target, rows, settings, self.counter)


def _file(title: str, settings: Callable[[str, Path], dict[str, str]], stage: Stage) -> Case:
    target = Lines(stage.scratch)
    return Case(
        stage,
        title,
        target,
        lambda topic, name: settings(topic, target.place(name)),
        lambda name: connect_sinks.lines_in(target.place(name)),
    )


def _iceberg(stage: Stage) -> Case:
    target = Iceberg(stage.scratch, stage.spark)

    def settings(topic: str, name: str) -> dict[str, str]:
        return connect_sinks.iceberg_sink(topic, target, name, stage.connection)

    return Case(stage, "IcebergSink", target, settings, lambda name: partial(target.rows, name))


def _jdbc(stage: Stage) -> Case:
    target = Database(stage.scratch, stage.postgres)

    def settings(topic: str, name: str) -> dict[str, str]:
        return connect_sinks.jdbc_sink(topic, target.jdbc, target.login, word(name))

    count: Callable[[str], Count] = lambda name: partial(target.rows, name)  # noqa: E731
    return Case(stage, "JdbcSink of Debezium", target, settings, count, slow=True)


SINKS: tuple[Callable[[Stage], Case], ...] = (
    partial(_file, "FileStreamSink, texts", connect_sinks.file_sink),
    partial(_file, "FileStreamSink, JSON with a schema", connect_sinks.row_sink),
    _iceberg,
    _jdbc,
)


def _pipeline(
    name: str, settings: dict[str, str], connection: Connection, spark: SparkOptions, **more: str
) -> Pipeline:
    """Return what a worker runs for a connector; its configuration is checked as the server does it."""
    config = with_name(settings, name)
    if errors := validate(CATALOG, config).errors:
        raise GaveUpError(f"{name} is refused here: {errors}")
    made = definition_of(name, name, config, CATALOG)
    return Pipeline(**made, connection=connection, spark=spark, **more)


def _run(pipeline: Pipeline) -> None:
    with start(pipeline, once=True) as running:
        running.wait()


class _SourceStage(database_source.Stage):
    """The table, and the configuration of a JDBC source for it."""

    def as_connector(self, topic: str) -> None:
        settings = {
            "connector.class": "io.aiven.connect.jdbc.JdbcSourceConnector",
            "connection.url": self._jdbc,
            "connection.user": "penstock",
            "connection.password": PASSWORD,
            "mode": "incrementing",
            "incrementing.column.name": "id",
            "table.whitelist": self.table,
            "topic.prefix": topic.removesuffix(self.table),
            "tasks.max": "4",
            "value.converter": "org.apache.kafka.connect.json.JsonConverter",
            "value.converter.schemas.enable": "false",
            "value.converter.decimal.format": "NUMERIC",
        }
        _run(_pipeline(f"{topic}-in", settings, self.connection, self.options))


def _source(rows: int, rounds: int) -> Result:
    title = "JdbcSource"
    with ExitStack() as closing:
        stage = _SourceStage(closing, rows)
        here = Side("Penstock", rows, stage.turn("ours", stage.as_connector))
        there = Side("Connect, Debezium's snapshot", rows, stage.turn("connect", stage.connect))
        best = race(title, [here, there], rounds)
        stage.print_processor_time()
    return Result(f"{title} / Debezium's snapshot", rows, best[here.name], best[there.name], FASTER)
