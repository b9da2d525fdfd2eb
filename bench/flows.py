"""Flows: topic to topic beside the same in SQL, Kafka to RabbitMQ beside a program written by hand."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable
from typing import Any

from tests.services.rabbitmq import RabbitMq

from bench.data import SCHEMA, fill
from bench.harness import GaveUpError, Result, Side, race
from bench.rabbitmq import FEWER, Stage
from penstock import Broker, Connection, Pipeline, start
from penstock.engine import spark_session
from penstock.flows import Flow, Message
from penstock.flows.spark.flow_pipeline import flow_pipeline
from penstock.pipeline import SparkOptions
from penstock.testing import read_all

MOST = 400_000
WANTED_MAP, WANTED_PYTHON = 0.7, 0.5
WANTED_PER_SECOND = 10_000
CONSUMERS = 2
SQL = "SELECT id, symbol, price * size AS total FROM rows WHERE price * size > 1000"
MAP = {
    "map": {"id": "payload.id", "symbol": "payload.symbol", "total": "payload.price * payload.size"}
}
_numbers = itertools.count()


def traded(message: Message) -> dict[str, Any]:
    """Return what the map makes, in Python."""
    trade = message.document
    return {
        "id": trade["id"],
        "symbol": trade["symbol"],
        "total": trade["price"] * trade["size"],
    }


def run(rows: int, rounds: int) -> list[Result]:
    """Measure both."""
    rows = min(rows, MOST)
    with Broker() as broker, RabbitMq() as server:
        spark_session(SparkOptions())
        return [
            *_topics(broker.connection, rows, rounds),
            *_queues(Queues(broker.connection, server, min(rows, MOST // 2)), rounds),
        ]


def _topics(connection: Connection, rows: int, rounds: int) -> list[Result]:
    topic = f"flows-{rows}"
    fill(connection, topic, rows)
    topics = Topics(connection, topic)
    python = {"python": traded}
    sides = [
        Side("flow", rows, topics.turn(lambda out: topics.flow(out, MAP))),
        Side("flow with Python", rows, topics.turn(lambda out: topics.flow(out, python))),
        Side("SQL", rows, topics.turn(topics.sql)),
    ]
    best = race("Kafka to Kafka", sides, rounds)
    return [
        Result(f"map, filter: {name} / SQL", rows, best[name], best["SQL"], wanted)
        for name, wanted in (("flow", WANTED_MAP), ("flow with Python", WANTED_PYTHON))
    ]


class Topics:
    """The same from topic to topic, in two ways."""

    def __init__(self, connection: Connection, topic: str) -> None:
        self._connection = connection
        self._topic = topic
        self._state = tempfile.mkdtemp(prefix="penstock_bench_")
        self._found: set[int] = set()

    def turn(self, make: Callable[[str], Pipeline]) -> Callable[[], float]:
        """Run a pipeline over the topic; count what it wrote: every way writes the same."""

        def once() -> float:
            name = f"flows-out-{next(_numbers)}"
            took = _run(make(name))
            self._found.add(len(read_all(self._connection, name)))
            if len(self._found) > 1:
                raise GaveUpError(f"the ways differ: {sorted(self._found)} records")
            return took

        return once

    def flow(self, out: str, step: dict[str, Any]) -> Pipeline:
        """Return the flow."""
        trigger = {
            "topics": self._topic,
            "group": out,
            "consumers": CONSUMERS,
            "advanced": {"initial_offset": "oldest"},
        }
        flow = (
            Flow(name=out, trigger={"kafka": trigger})
            .then(**step)
            .then(filter="payload.total > 1000")
            .then(publish={"kafka": {"topic": out, "producer": {"acks": "all"}}})
        )
        return flow_pipeline(flow, self._connection, state=self._state)

    def sql(self, out: str) -> Pipeline:
        """Return the pipeline."""
        return Pipeline(
            name=out,
            connection=self._connection,
            source={"kafka": self._topic},
            decode={"json": {"schema": SCHEMA}},
            steps=[{"sql": SQL}],
            sink={"kafka": out},
            state=self._state,
        )


def _queues(stage: Queues, rounds: int) -> list[Result]:
    few = stage.rows // FEWER
    sides = [
        Side("flow", stage.rows, stage.turn_out(stage.flow, stage.rows)),
        Side("by hand, bulk", stage.rows, stage.turn_out(stage.write_in_bulk, stage.rows)),
        Side("by hand, each", few, stage.turn_out(stage.write_each, few)),
    ]
    best = race("Kafka to RabbitMQ", sides, rounds)
    per_second = stage.rows / best["flow"]
    print(
        f"  Kafka to RabbitMQ: {per_second:,.0f} messages/s, wanted {WANTED_PER_SECOND:,}",
        flush=True,
    )
    return [
        Result(
            f"Kafka to RabbitMQ: flow / {side.name}",
            stage.rows,
            best["flow"],
            best[side.name],
            raw_rows=side.rows,
        )
        for side in sides[1:]
    ]


class Queues(Stage):
    """Kafka to RabbitMQ, with confirms of each message."""

    def flow(self, name: str, _rows: int) -> None:
        """Publish the topic."""
        trigger = {"topics": "bench-out", "group": name, "advanced": {"initial_offset": "oldest"}}
        to = {**self._server.options, "routing_key": name, "message_id": "${attribute.offset}"}
        flow = Flow(name=name, trigger={"kafka": trigger}).then(publish={"rabbitmq": to})
        _run(flow_pipeline(flow, self._connection, state=self._state))


def _run(pipeline: Pipeline) -> float:
    import time

    began = time.monotonic()
    with start(pipeline, once=True) as running:
        running.wait()
    return time.monotonic() - began
