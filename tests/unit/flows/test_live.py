"""The systems of a run, those that need nothing but this process: HTTP and SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, ClassVar

import pyarrow as pa
import pytest
from tests.unit.flows.flow_cases import codes, flow_of, payloads

from penstock.config import Connection
from penstock.errors import TransientError
from penstock.flows import CompiledFlow, Flow, Message
from penstock.flows.dead_letters import step_of
from penstock.flows.live.live_systems import LiveSystems
from penstock.flows.spark import record_batches
from penstock.flows.spark.flow_pipeline import flow_pipeline
from penstock.flows.spark.record_batches import FlowBatches, messages_of
from penstock.flows.spark.trigger_sources import trigger_source
from penstock.flows.testing import CannedReplies


class Api(BaseHTTPRequestHandler):
    """Replies with what it was asked; /busy is busy for its first request, /away never replies."""

    protocol_version = "HTTP/1.1"
    busy: ClassVar[set[str]] = set()
    clients: ClassVar[set[Any]] = set()

    def do_GET(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length)
        is_busy = self.path == "/busy" and not self.busy
        self.busy.add(self.path)
        self.clients.add(self.client_address)
        reply = f'{{"path": "{self.path}", "got": {body.decode() or "null"}}}'.encode()
        self.send_response(503 if is_busy else 404 if self.path == "/none" else 200)
        self.send_header("Content-Type", "application/json; charset=utf-8")
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    do_POST = do_PUT = do_GET  # noqa: N815 - the names of http.server

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture(scope="module")
def api() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Api)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture
def live() -> Iterator[LiveSystems]:
    systems = LiveSystems()
    yield systems
    systems.close()


def test_http_asks_and_publishes(api: str, live: LiveSystems) -> None:
    flow = flow_of(
        {"http": {"url": f"{api}/items/${{payload.id}}", "parallel": 4, "into": "variable.item"}},
        {"id": "busy", "http": {"url": f"{api}/busy", "into": "variable.b"}, "retry": {"wait": 0}},
        {"publish": {"http": {"url": f"{api}/out", "method": "PUT", "success": [200]}}},
        {"http": {"url": f"{api}/none", "success": ["2xx", 404], "result": "reply"}},
    )

    result = CompiledFlow(flow).run([Message({"id": f"a/{n}"}) for n in range(8)], live.systems())

    assert [m.variable["item"]["path"] for m in result.results] == [
        f"/items/a%2F{n}" for n in range(8)
    ]
    assert result.results[0].variable["b"] == {"path": "/busy", "got": None}
    assert result.results[0].payload["status"] == 404


def test_parallel_requests_use_their_connections_in_the_next_batch_too(
    api: str, live: LiveSystems
) -> None:
    step = {"http": {"url": f"{api}/items/${{payload}}", "parallel": 3, "into": "variable.item"}}
    compiled = CompiledFlow(flow_of(step))
    Api.clients.clear()

    for _ in range(5):
        result = compiled.run([Message(n) for n in range(20)], live.systems())

    assert [m.variable["item"]["path"] for m in result.results] == [
        f"/items/{n}" for n in range(20)
    ]
    assert len(Api.clients) <= 3


def test_a_server_that_is_away_is_a_code(live: LiveSystems) -> None:
    flow = flow_of(
        {"http": "http://127.0.0.1:9/"},
        {"publish": {"http": {"url": "http://127.0.0.1:9/"}}},
        on_error="dead-letter",
    )

    assert codes(CompiledFlow(flow).run([Message("x")], live.systems())) == [
        ("steps[0]", "HTTP:UNAVAILABLE")
    ]


def test_a_database_is_asked_and_written_with_bound_values(
    tmp_path: Path, live: LiveSystems
) -> None:
    file = tmp_path / "shop.db"
    with sqlite3.connect(file) as shop:
        shop.execute("CREATE TABLE customers (id INTEGER, name TEXT)")
        shop.execute("INSERT INTO customers VALUES (7, 'Ann')")
        shop.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, customer TEXT)")
    url = f"sqlite:///{file}"
    find = {
        "query": "SELECT name FROM customers WHERE id = :id",
        "parameters": {"id": "payload.customer"},
        "database": url,
        "into": "variable.customer",
    }
    flow = flow_of(
        {"sql": find},
        {
            "publish": {
                "database": {
                    "url": url,
                    "table": "orders",
                    "columns": {
                        "id": "payload.id",
                        "customer": "variable.customer[0].name || payload.x",
                    },
                }
            }
        },
    )
    evil = "'); DROP TABLE orders; --"
    given = [{"id": 1, "customer": 7, "x": evil}, {"id": 1, "customer": 7, "x": ""}]

    result = CompiledFlow(flow).run([Message(each) for each in given], live.systems())

    assert result.results[0].attribute["rows"] == 1
    assert codes(result) == [("steps[1]", "DATABASE:REFUSED")]
    with sqlite3.connect(file) as shop:
        assert shop.execute("SELECT * FROM orders").fetchall() == [(1, f"Ann{evil}")]


RECORDS = pa.RecordBatch.from_pydict(
    {
        "key": [b"k", None],
        "value": [b'{"n": 1}', None],
        "topic": ["t", "t"],
        "partition": pa.array([0, 1], pa.int32()),
        "offset": pa.array([5, 6], pa.int64()),
        "timestamp": pa.array([1_500_000_000_123_456, 2], pa.timestamp("us", "UTC")),
    }
)


def test_records_are_messages_with_the_documented_attributes() -> None:
    plain = Flow(name="t", trigger={"kafka": "t"})
    rich = Flow(name="t", trigger={"kafka": {"topics": "t", "metadata": ["key", "timestamp"]}})
    first, second = messages_of(RECORDS, trigger_source(plain))
    (more, _) = messages_of(RECORDS, trigger_source(rich))

    assert first == Message(b'{"n": 1}', {"topic": "t", "partition": 0, "offset": 5})
    assert second == Message(None, {"topic": "t", "partition": 1, "offset": 6})
    assert (more.attribute["key"], more.attribute["timestamp"]) == (b"k", 1_500_000_000_123)


def test_a_batch_of_records_becomes_outcomes_and_dead_letters() -> None:
    written: list[Any] = []

    flow = Flow(
        name="t", trigger={"kafka": "a"}, steps=[{"id": "one", "map": "1 / (payload.n - 1)"}]
    )
    connection = Connection(brokers="localhost")
    opened = record_batches.OpenFlow.of(flow, connection, connection, "1")
    opened.letters.write = written.extend  # type: ignore[method-assign]
    record_batches._open["t"] = opened

    (rows,) = FlowBatches(flow, connection, connection, "1")([RECORDS])

    del record_batches._open["t"]
    assert rows.column("status").to_pylist() == ["failed", "done"]
    assert rows.column("offset").to_pylist() == [5, 6]
    ((letter, _),) = written
    assert (letter.id, letter.key, letter.value) == ("t-0-5", b"k", b'{"n": 1}')
    assert (letter.error_type, step_of(letter)) == ("CORE:EXPRESSION", "one")


def test_a_batch_whose_dead_letters_cannot_be_written_is_new_when_it_is_run_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    written: list[Any] = []

    def away(_letters: Any) -> None:
        raise TransientError("no broker")

    flow = flow_of({"dedupe": "payload.n"}, {"map": "1 / (payload.n - 1)"})
    connection = Connection(brokers="localhost")
    opened = record_batches.OpenFlow.of(flow, connection, connection, "1")
    monkeypatch.setitem(record_batches._open, "t", opened)
    batches = FlowBatches(flow, connection, connection, "1")

    monkeypatch.setattr(opened.letters, "write", away)
    with pytest.raises(TransientError):
        list(batches([RECORDS.slice(0, 1)]))
    monkeypatch.setattr(opened.letters, "write", written.extend)
    list(batches([RECORDS.slice(0, 1)]))

    assert [letter.id for letter, _ in written] == ["t-0-5"]


def test_a_flow_is_a_pipeline_of_its_trigger() -> None:
    options = {
        "topics": ["a.b", "^c-.*"],
        "group": "g",
        "advanced": {"confirm": "at-once", "fetch_min_bytes": 7, "initial_offset": "oldest"},
    }
    flow = Flow(name="t", trigger={"kafka": {**options, "connection": {"addresses": "k:9092"}}})

    pipeline = flow_pipeline(flow)

    source: Any = pipeline.source
    assert (source.pattern, source.start) == ("(?:^c-.*)|(?:^a[.]b$)", "earliest")
    assert (pipeline.group_id, pipeline.delivery.value) == ("g", "at-most-once")
    assert pipeline.find_connection().spark() == {
        "kafka.bootstrap.servers": "k:9092",
        "kafka.security.protocol": "PLAINTEXT",
        "kafka.fetch.min.bytes": "7",
        "kafka.isolation.level": "read_uncommitted",
        "kafka.retry.backoff.ms": "2000",
        "kafka.retry.backoff.max.ms": "2000",
        "kafka.request.timeout.ms": "30000",
    }


def test_defaults_of_the_trigger_do_not_replace_what_the_connection_says() -> None:
    cluster = {"bootstrap.servers": "k:9092", "isolation.level": "read_committed"}

    def isolation(**advanced: str) -> str:
        flow = Flow(name="t", trigger={"kafka": {"topics": "a", "advanced": advanced}})
        pipeline = flow_pipeline(flow, Connection.from_config(cluster))
        return pipeline.find_connection().spark()["kafka.isolation.level"]

    assert isolation() == "read_committed"
    assert isolation(isolation="read-uncommitted") == "read_uncommitted"


def test_a_broker_of_jms_that_is_away_is_a_code(live: LiveSystems) -> None:
    flow = flow_of(
        {"publish": {"jms": {"url": "amqp://127.0.0.1:9", "queue": "q"}}}, on_error="dead-letter"
    )

    assert codes(CompiledFlow(flow).run([Message("x")], live.systems())) == [
        ("steps[0]", "JMS:UNAVAILABLE")
    ]
    assert payloads(CompiledFlow(flow).run([Message("x")], CannedReplies().systems())) == ["x"]
