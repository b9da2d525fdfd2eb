"""A flow that stops, one whose system goes away, and a batch that is half published when it does."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.services.json_api import Answer, Seen
from tests.services.orders_api import OrdersApi
from tests.services.rabbitmq import RabbitMq

from penstock import Admin, Connection, State, start
from penstock.errors import PenstockError
from penstock.flows import Flow, Message
from penstock.flows.error_codes import Fault
from penstock.flows.live.rabbitmq_publisher import RabbitMqPublisher
from penstock.flows.publish.operations import RabbitMqPublish
from penstock.flows.running.systems import PublishRequest
from penstock.flows.spark.flow_pipeline import flow_pipeline
from penstock.pipeline import Pipeline
from penstock.testing import eventually, fill, read_all

FlowOf = Callable[..., Pipeline]


@pytest.fixture
def flow(connection: Connection, unique: str, tmp_path: Path) -> FlowOf:
    """Makes pipelines of flows that read the topic UNIQUE.in."""

    def make(*steps: Any, **options: Any) -> Pipeline:
        trigger = {"topics": f"{unique}.in", "advanced": {"initial_offset": "oldest"}}
        definition = Flow(name=unique, trigger={"kafka": trigger}, steps=list(steps), **options)
        restart = {"wait": "100ms", "longest": "500ms"}
        return flow_pipeline(definition, connection, state=str(tmp_path), restart=restart)

    return make


def test_a_flow_that_stops_fails_with_its_reason_and_goes_on_after_a_repair(
    connection: Connection, unique: str, flow: FlowOf
) -> None:
    fill(connection, f"{unique}.in", [{"n": n} for n in range(5)])
    publish = {"publish": {"kafka": {"topic": f"{unique}.out"}}}
    broken = flow({"id": "divide", "map": "10 / (payload.n - 3)", "on_error": "stop"}, publish)

    with start(broken, once=True) as running:
        with pytest.raises(PenstockError, match="the flow stops at divide: CORE:EXPRESSION"):
            running.wait(180)
        progress = running.progress()
    assert progress.state is State.FAILED
    assert "the flow stops at divide: CORE:EXPRESSION" in str(progress.last_error)
    with Admin(connection) as admin:
        assert admin.committed(unique) == {(f"{unique}.in", 0): 0}, "no message is confirmed"
        assert not admin.topic_ids([f"{unique}.out"]), "no message went past the step"

    with start(flow({"id": "divide", "map": "payload.n"}, publish), once=True) as running:
        assert running.wait(180)
    assert [record.value for record in read_all(connection, f"{unique}.out")] == [
        b"%d" % n for n in range(5)
    ]


def test_while_rabbitmq_is_away_the_flow_waits_and_nothing_is_a_dead_letter(
    connection: Connection, unique: str, flow: FlowOf
) -> None:
    with RabbitMq() as server:
        server.declare("out")
        to = {**server.options, "timeout": "5s", "routing_key": "out"}
        fill(connection, f"{unique}.in", [b"%d" % n for n in range(100)])
        with start(flow({"id": "send", "publish": {"rabbitmq": to}})) as running:
            eventually(lambda: server.depth("out") == 100, timeout=180, every=0.2)
            server.kill()
            fill(connection, f"{unique}.in", [b"%d" % n for n in range(100, 200)])
            waiting = eventually(
                lambda: (p := running.progress()).state is State.RETRYING and p, timeout=120
            )
            assert "the flow waits at send: RABBITMQ:UNAVAILABLE" in str(waiting.last_error)
            server.start()
            eventually(lambda: server.depth("out") >= 200, timeout=120, every=0.2)
            eventually(lambda: running.progress().state is State.RUNNING, timeout=60)
        assert {body for _, _, body in server.drain("out")} == {b"%d" % n for n in range(200)}
    assert read_all(connection, f"{unique}.dead-letters") == []


def test_a_batch_that_is_half_published_is_published_from_its_beginning(
    connection: Connection, unique: str, flow: FlowOf
) -> None:
    taken: Counter[bytes] = Counter()

    def respond(seen: Seen) -> Answer:
        taken[seen.body] += 1
        if seen.body == b"5" and taken[b"5"] == 1:
            api.stop()
        return Answer(b"", 200)

    fill(connection, f"{unique}.in", [b"%d" % n for n in range(10)])
    with OrdersApi(respond) as api, start(flow({"publish": {"http": {"url": api.url}}})) as running:
        eventually(lambda: running.progress().state is State.RETRYING, timeout=180)
        assert "HTTP:UNAVAILABLE" in str(running.progress().last_error)
        api.start()
        eventually(lambda: running.progress().rows == 10, timeout=120)
    assert taken.keys() == {b"%d" % n for n in range(10)}, "nothing is lost"
    assert min(taken[b"%d" % n] for n in range(6)) > 1, "at-least-once"
    assert read_all(connection, f"{unique}.dead-letters") == []


def test_a_connection_that_rabbitmq_closed_between_batches_is_opened_again(
    rabbitmq: RabbitMq, unique: str
) -> None:
    rabbitmq.declare(unique)
    operation = RabbitMqPublish(**rabbitmq.options, routing_key=unique)
    publisher, request = RabbitMqPublisher(), operation.fields()
    first = publisher.publish(operation, [PublishRequest(request(Message(b"1")))])
    rabbitmq.control("close_all_connections", "test")
    second = publisher.publish(operation, [PublishRequest(request(Message(b"2")))])
    publisher.close()

    assert not [each for each in (*first, *second) if isinstance(each, Fault)]
    assert [body for _, _, body in rabbitmq.drain(unique)] == [b"1", b"2"]


def test_a_handler_and_a_try_work_on_the_engine(
    connection: Connection, unique: str, flow: FlowOf
) -> None:
    fill(connection, f"{unique}.in", [{"n": n} for n in range(3)])
    definition = flow(
        {"try": {"steps": [{"map": "10 / payload.n"}], "catch": [{"map": "-1"}]}},
        {"id": "again", "map": "10 / (payload - 5)"},
        {"publish": {"kafka": {"topic": f"{unique}.out"}}},
        on_error={
            "handler": [{"publish": {"kafka": {"topic": f"{unique}.errors", "value": "error"}}}]
        },
    )

    with start(definition, once=True) as running:
        assert running.wait(180)

    found = [json.loads(record.value) for record in read_all(connection, f"{unique}.out")]
    assert found == [10 / -6, 2]
    (error,) = read_all(connection, f"{unique}.errors")
    assert json.loads(error.value)["Code"] == "CORE:EXPRESSION"
