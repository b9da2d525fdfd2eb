"""Every file in examples/ does what its first lines say, run as examples/README.md says."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import orjson
import pyarrow.parquet as pq
import pytest
from tests.services.command_line import run_here

from penstock import Admin, Connection, Consumer, Producer, memory_table, read_pipeline, start
from penstock.record import Record
from penstock.testing import eventually, fill

EXAMPLES = Path(__file__).parents[2] / "examples"
NOON = datetime(2024, 5, 1, 12, tzinfo=timezone.utc)


@pytest.fixture(autouse=True)
def _as_a_user(
    connection: Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_memory_tables: None
) -> None:
    """In a folder of its own, with the broker named by the environment."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PENSTOCK_KAFKA_BOOTSTRAP_SERVERS", connection.brokers)


@pytest.fixture(scope="module")
def trades(connection: Connection) -> None:
    """The topic that two of the examples read."""
    good = [("A", 2.0, 10), ("B", 3.0, 20), ("A", 4.0, 30), ("B", 1.0, 0)]
    values = [{"symbol": s, "price": p, "size": n, "at": NOON.isoformat()} for s, p, n in good]
    fill(connection, "trades", [*values, {"symbol": "A", "price": "dear", "size": 1}])


def run_once(definition: Any) -> Any:
    with start(definition, once=True) as running:
        assert running.wait(120)
        return running.progress()


def example(name: str) -> Any:
    """A Python example, imported as a module."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def records_of(connection: Connection, topic: str, count: int) -> list[Record]:
    found: list[Record] = []
    with Admin(connection) as admin, Consumer(connection) as consumer:
        consumer.assign(admin.earliest(admin.partitions([topic])))
        eventually(lambda: found.extend(consumer.poll_batch()) or len(found) >= count)
    return found


def headers_of(record: Record) -> dict[str, str]:
    return {name: (value or b"").decode() for name, value in record.headers}


def utc(moment: datetime) -> datetime:
    """The moments in a table are UTC; whether the file says so depends on how it was written."""
    return moment.replace(tzinfo=timezone.utc)


def test_every_example_is_in_the_list() -> None:
    listed = (EXAMPLES / "README.md").read_text()
    for file in EXAMPLES.iterdir():
        if file.suffix in (".py", ".yaml"):
            assert f"]({file.name})" in listed


def test_trades_to_parquet_as_a_command(connection: Connection, trades: None) -> None:
    done = run_here("run", EXAMPLES / "trades-to-parquet.yaml", "--once")

    assert done.returncode == 0, done.stderr
    assert "STOPPED: 1 batches, 3 rows" in done.stderr
    assert "1 failed" in done.stderr
    rows = pq.read_table("out/trades").sort_by("amount").to_pylist()
    assert [(row["symbol"], row["amount"]) for row in rows] == [
        ("A", 20.0),
        ("B", 60.0),
        ("A", 120.0),
    ]
    assert {utc(row["at"]) for row in rows} == {NOON}
    (bad,) = records_of(connection, "trades-to-parquet.dead-letters", 1)
    assert orjson.loads(bad.value or b"")["price"] == "dear"
    assert headers_of(bad)["penstock.offset"] == "4"


def test_logs_to_parquet_has_a_folder_per_level_and_a_table_of_refused_lines(
    connection: Connection,
) -> None:
    lines = [
        "2024-05-01T12:00:00Z INFO web: started",
        "",
        "2024-05-01T12:00:01Z ERROR payments: card refused: 42",
        "Traceback (most recent call last):",
        "2024-05-01T12:00:02Z INFO web: stopped",
    ]
    fill(connection, "logs", lines)

    progress = run_once(read_pipeline(EXAMPLES / "logs-to-parquet.yaml"))

    assert (progress.records, progress.rows, progress.failed) == (5, 3, 1)
    assert sorted(path.name for path in Path("out/logs").glob("level=*")) == [
        "level=ERROR",
        "level=INFO",
    ]
    (row,) = pq.read_table("out/logs/level=ERROR", partitioning=None).to_pylist()
    assert (row["service"], row["message"], row["kafka_offset"]) == (
        "payments",
        "card refused: 42",
        2,
    )
    assert utc(row["at"]) == NOON.replace(second=1)
    (refused,) = pq.read_table("out/logs-refused").to_pylist()
    assert refused["value"] == lines[3].encode()
    assert (refused["offset"], refused["stage"], refused["error_type"]) == (
        3,
        "decode",
        "ValueError",
    )


def test_orders_to_topic_keeps_the_paid_ones_with_their_key(connection: Connection) -> None:
    lines = [
        {"sku": "a", "quantity": 3, "price": "1.10"},
        {"sku": "b", "quantity": 1, "price": "2"},
    ]
    ada, bob = {"name": "ada", "country": "UK"}, {"name": "bob"}
    orders = [
        {"id": 1, "customer": ada, "state": "paid", "lines": lines},
        {"id": 2, "customer": bob, "state": "open", "lines": []},
        {"id": 3, "customer": bob, "state": "paid", "lines": []},
        {"id": "four", "customer": bob, "state": "paid", "lines": []},
    ]
    fill(connection, "orders", orders)

    run_once(read_pipeline(EXAMPLES / "orders-to-topic.yaml"))

    paid = records_of(connection, "orders.paid", 2)
    assert {record.key: orjson.loads(record.value or b"") for record in paid} == {
        b"ada": {"id": 1, "country": "UK", "total": 5.30},
        b"bob": {"id": 3, "country": None, "total": 0.0},
    }
    (bad,) = records_of(connection, "orders.bad", 1)
    assert orjson.loads(bad.value or b"") == orders[3]
    assert headers_of(bad)["penstock.pipeline"] == "orders-to-topic"
    assert "id" in headers_of(bad)["penstock.error"]


def test_trades_in_memory_gives_a_data_frame(trades: None) -> None:
    amounts = example("trades_in_memory").amounts()

    assert amounts.to_dict("index") == {
        "A": {"size": 40, "amount": 140.0},
        "B": {"size": 20, "amount": 60.0},
    }


def test_headers_since_starts_at_the_moment_and_then_goes_on(
    connection: Connection, topic: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    events_since, table = example("headers_since").events_since, topic("table")
    send_events(connection, range(4))

    first = events_since("2024-05-01T12:00:02Z", {"memory": table})

    rows = memory_table(table).to_arrow().sort_by("timestamp").to_pylist()
    assert [(row["key"], row["value"], row["trace"]) for row in rows] == [
        ("k", "event 2", None),
        ("k", "event 3", "t3"),
    ]
    assert (first.records, first.total_lag) == (2, 0)

    send_events(connection, range(5, 6))

    assert events_since("2024-05-01T12:00:02Z").records == 1
    shown = capsys.readouterr().out
    assert "event 5" in shown
    assert "event 3" not in shown


def send_events(connection: Connection, seconds: range) -> None:
    """One event for each second after noon; the odd ones have a trace."""
    fill(connection, "events", [])
    with Producer(connection) as producer:
        for second in seconds:
            producer.produce(
                "events",
                "k",
                f"event {second}",
                timestamp=int(NOON.replace(second=second).timestamp() * 1000),
                headers=[("trace", f"t{second}".encode())] if second % 2 else [],
            )
