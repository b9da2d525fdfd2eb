"""Flows that RabbitMQ, JMS, files and a timer start, on the engine: the examples, and each trigger."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from tests.services.artemis import Artemis
from tests.services.jms_client import jms_message, receive, send
from tests.services.json_api import JsonApi
from tests.services.rabbitmq import RabbitMq

from penstock import Connection, start
from penstock.flows import CompiledFlow, Flow, Message
from penstock.flows.definition.reading import read_flow
from penstock.flows.live.live_systems import LiveSystems
from penstock.flows.spark.flow_pipeline import flow_pipeline
from penstock.testing import eventually, read_all

EXAMPLES = Path(__file__).parents[2] / "examples" / "flows"
Renamed = Callable[..., Flow]


@pytest.fixture
def renamed(unique: str) -> Renamed:
    """Return a flow of an example, with names of its own."""

    def read(name: str, **more: Any) -> Flow:
        given = read_flow(EXAMPLES / name)
        return given.model_copy(update={"name": unique, **more})

    return read


def run_once(flow: Flow, connection: Connection, folder: Path) -> Any:
    with start(flow_pipeline(flow, connection, state=str(folder)), once=True) as running:
        assert running.wait(120)
        return running.progress()


def values(connection: Connection, topic: str) -> list[Any]:
    return [json.loads(record.value or b"null") for record in read_all(connection, topic)]


def test_the_example_with_a_queue_of_rabbitmq(
    connection: Connection,
    rabbitmq: RabbitMq,
    renamed: Renamed,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("RABBITMQ_URL", rabbitmq.options["url"])
    monkeypatch.setenv("RABBITMQ_PASSWORD", rabbitmq.options["password"])
    rabbitmq.declare("orders")
    orders = [{"id": n, "total": 300 * n} for n in range(10)]
    bodies = [*(json.dumps(order).encode() for order in orders), b'{"id": 10}', b"not json"]
    rabbitmq.publish("orders", bodies)
    flow = renamed("orders-by-size.yaml")

    progress = run_once(flow, connection, tmp_path)

    assert (progress.records, progress.failed) == (12, 0)
    large = read_all(connection, "large-orders")
    assert sorted(json.loads(record.value)["id"] for record in large) == [*range(4, 10)]
    assert dict(large[0].headers) == {"queue": b"orders"}
    assert sorted(each["id"] for each in values(connection, "small-orders")) == [*range(4)]
    letters = read_all(connection, f"{flow.name}.dead-letters")
    assert [letter.value for letter in letters] == bodies[-2:]
    assert dict(letters[0].headers)["penstock.topic"] == f"{flow.name}.in".encode()
    assert rabbitmq.depth("orders") == 0


def test_the_example_with_a_timer(
    connection: Connection, renamed: Renamed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with JsonApi(lambda _: {"prices": [{"symbol": "A", "price": 1}]}) as service:
        monkeypatch.setenv("PRICES_URL", f"http://127.0.0.1:{service.port}")
        monkeypatch.setenv("PRICES_EVERY", "300ms")
        pipeline = flow_pipeline(
            renamed("prices-every-minute.yaml"), connection, state=str(tmp_path)
        )
        with start(pipeline):
            eventually(lambda: len(service.requests) >= 4, timeout=120)
        count = len(service.requests)
        with start(pipeline):  # again: it goes on after its last tick
            eventually(lambda: len(service.requests) >= count + 4, timeout=120)

    texts = [request.params["at"].replace("Z", "+00:00") for request in service.requests]
    times = [datetime.fromisoformat(text) for text in texts]
    assert times == sorted(set(times)), "each due time once, in their order"
    assert values(connection, "market-prices") == [{"symbol": "A", "price": 1}] * len(times)


def test_messages_of_jms_go_back_to_jms(
    connection: Connection, artemis: Artemis, unique: str, tmp_path: Path
) -> None:
    given, out = f"{unique}.in", f"{unique}.out"
    messages = [
        jms_message("text", json.dumps({"n": n}), id=f"ID:{n}", properties={"region": "EU"})
        for n in range(20)
    ]
    send(artemis, given, messages)
    to = {"queue": f"{out}.${{payload.n % 2}}", "properties": {"from": "${attribute.destination}"}}
    flow = (
        Flow(name=unique, trigger={"jms": {**artemis.options, "queues": given}})
        .then(filter="attribute.properties.region = 'EU' and attribute.kind = 'text'")
        .then(
            publish={"jms": {**artemis.options, **to, "correlation_id": "${attribute.message_id}"}}
        )
    )

    progress = run_once(flow, connection, tmp_path)

    assert (progress.records, progress.failed) == (20, 0)
    even, odd = receive(artemis, f"{out}.0"), receive(artemis, f"{out}.1")
    assert sorted(json.loads(m.body)["n"] for m in [*even, *odd]) == [*range(20)]
    assert even[0].properties == {"from": given}
    assert even[0].correlation_id == f"ID:{json.loads(even[0].body)['n']}"
    assert read_all(connection, f"{unique}.dead-letters") == []


def test_lines_of_files_have_the_name_of_their_file(
    connection: Connection, unique: str, tmp_path: Path
) -> None:
    folder = tmp_path / "lines"
    folder.mkdir()
    for name in ("a", "b"):
        (folder / f"{name}.log").write_text(f"{name} 1\n{name} 2\n")
    flow = (
        Flow(name=unique, trigger={"file": {"folder": str(folder), "pattern": "*.log"}})
        .then(map={"file": "attribute.file", "path": "attribute.path", "line": "text(payload)"})
        .then(publish={"kafka": {"topic": f"{unique}.out"}})
    )

    run_once(flow, connection, tmp_path / "state")

    found = values(connection, f"{unique}.out")
    assert sorted(found, key=lambda each: each["line"]) == [
        {"file": f"{name}.log", "path": str(folder / f"{name}.log"), "line": f"{name} {n}"}
        for name in "ab"
        for n in (1, 2)
    ]


def test_publishing_to_jms_says_what_was_refused_and_notices_a_lost_connection(
    artemis: Artemis, unique: str
) -> None:
    flow = (
        Flow(name=unique, trigger={"kafka": "t"})
        .then(publish={"jms": {**artemis.options, "queue": "${payload.queue}"}})
        .then(set={"variable": {"sent": "attribute.destination"}})
    )
    live = LiveSystems()
    given = [Message({"queue": queue}) for queue in (unique, f"strict.{unique}", unique)]

    first = CompiledFlow(flow).run(given, live.systems())
    assert not live._jms._open, "a destination that is created later is found"
    CompiledFlow(flow).run(given[:1], live.systems())
    (outlet,) = live._jms._open.values()
    outlet._connection._socket.shutdown(2)  # as a broker ends a connection that is idle
    again = CompiledFlow(flow).run(given[:1], live.systems())
    live.close()

    assert [message.variable["sent"] for message in first.results] == [unique, unique]
    assert [letter.error["Code"] for letter in first.dead_letters] == ["JMS:REFUSED"]
    assert [message.variable["sent"] for message in again.results] == [unique]
    assert len(receive(artemis, unique)) == 4


def test_publishing_to_rabbitmq_notices_a_connection_that_the_server_ended(
    rabbitmq: RabbitMq, unique: str
) -> None:
    rabbitmq.declare(unique)
    flow = Flow(name=unique, trigger={"kafka": "t"}).then(
        publish={"rabbitmq": {**rabbitmq.options, "routing_key": unique}}
    )
    live = LiveSystems()

    CompiledFlow(flow).run([Message("1")], live.systems())
    rabbitmq.control("close_all_connections", "an operator did that")
    result = CompiledFlow(flow).run([Message("2")], live.systems())
    live.close()

    assert result.dead_letters == []
    assert [body for _, _, body in rabbitmq.drain(unique)] == [b"1", b"2"]
