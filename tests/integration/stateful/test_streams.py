"""Rows that are the same, rows of two topics, rows and a table: brought together over batches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pyarrow.parquet as pq
from tests.integration.stateful.flows import SCHEMA, at, dead, run_once, trade, windows

from penstock import Admin, Connection, start
from penstock.testing import eventually, fill

QUOTES = "symbol string, bid double, quoted timestamp"


def kept(folder: Path) -> list[dict[str, Any]]:
    return sorted(pq.read_table(folder).to_pylist(), key=lambda row: row["id"])


def to_files(pipeline: Any, topic: str, folder: Path, *steps: Any, most: int = 1000) -> Any:
    return pipeline(
        source={"kafka": {"topics": topic, "max_records_per_batch": most}},
        decode={"json": {"schema": SCHEMA}},
        steps=list(steps),
        sink={"files": str(folder / "table")},
        delivery="exactly-once",
    )


def test_the_first_of_rows_that_are_the_same_is_kept_over_batches_and_runs(
    connection: Connection, topic: Any, pipeline: Any, tmp_path: Any
) -> None:
    step = {"deduplicate": {"by": "id", "time": "time", "within": "1m"}}
    definition = to_files(pipeline, topic(), tmp_path, step, most=4)
    fill(connection, topic(), [trade(n % 5, n) for n in range(10)])
    run_once(definition)
    late = trade(1, 0)
    fill(connection, topic(), [trade(3, 40), *(trade(9, n) for n in (201, 202, 203))])
    run_once(definition)
    fill(connection, topic(), [trade(3, 204), late])

    progress = run_once(definition)

    # Number 3 comes again after it was forgotten; number 1 comes after all up to that was done.
    assert [row["id"] for row in kept(tmp_path / "table")] == [0, 1, 2, 3, 3, 4, 9]
    assert [value for _, value, _ in dead(connection, definition)] == [orjson.dumps(late)]
    assert progress.failed == 1


def joined(pipeline: Any, topic: Any, folder: Path, **options: Any) -> Any:
    other = {
        "source": {"kafka": {"topics": topic("quotes"), "max_records_per_batch": 1000}},
        "decode": {"json": {"schema": QUOTES}},
        "steps": [{"sql": "SELECT symbol, bid, quoted FROM rows WHERE bid > 0"}],
        "by": "symbol",
        "time": "time",
        "other_time": "quoted",
        "before": "5s",
    }
    return to_files(pipeline, topic(), folder, {"join": other | options}, most=1000)


def quote(symbol: str, second: float, bid: float) -> dict[str, Any]:
    return {"symbol": symbol, "bid": bid, "quoted": at(second)}


def test_two_topics_are_joined_by_key_and_time(
    connection: Connection, topic: Any, pipeline: Any, tmp_path: Any
) -> None:
    fill(connection, topic(), [trade(1, 10), trade(2, 30, "B"), trade(3, 100, "C")])
    bad, unwanted = b"broken", quote("A", 9, -1.0)
    quotes = [quote("A", 4, 1.0), quote("A", 6, 2.0), quote("B", 31, 3.0), quote("C", 99, 4.0)]
    fill(connection, topic("quotes"), [*quotes, bad, unwanted], partitions=2)
    definition = joined(pipeline, topic, tmp_path)

    progress = run_once(definition)

    assert [(row["id"], row["bid"]) for row in kept(tmp_path / "table")] == [(1, 2.0), (3, 4.0)]
    assert (progress.records, progress.rows, progress.failed) == (9, 2, 1)
    assert [(stage, value) for stage, value, _ in dead(connection, definition)] == [("decode", bad)]
    with Admin(connection) as admin:
        committed = admin.committed(definition.group_id)
        assert committed == admin.latest(committed)
        assert {name for name, _ in committed} == {topic(), topic("quotes")}


def test_rows_without_another_one_come_when_none_can_come_any_more(
    connection: Connection, topic: Any, pipeline: Any, tmp_path: Any
) -> None:
    fill(connection, topic(), [trade(1, 10), trade(2, 30, "B")])
    fill(connection, topic("quotes"), [quote("A", 8, 1.0)])
    definition = joined(pipeline, topic, tmp_path, how="left")
    run_once(definition)
    fill(connection, topic(), [trade(3, 100, "C")])
    fill(connection, topic("quotes"), [quote("C", 100, 2.0)])

    run_once(definition)

    assert [(row["id"], row["bid"]) for row in kept(tmp_path / "table")] == [
        (1, 1.0),
        (2, None),
        (3, 2.0),
    ]


def symbols(folder: Path, **names: str) -> str:
    file = folder / "symbols.csv"
    file.write_text("symbol,name\n" + "".join(f"{key},{name}\n" for key, name in names.items()))
    return str(file)


def test_a_table_is_read_again_when_it_is_old(
    connection: Connection, topic: Any, pipeline: Any, tmp_path: Any
) -> None:
    file = symbols(tmp_path, A="Alpha")
    table = {"files": {"path": file, "format": "csv"}}
    step = {"enrich": {"table": table, "by": "symbol", "reload": "1ms"}}
    fill(connection, topic(), [trade(1, 1), trade(2, 2, "B")])
    with start(to_files(pipeline, topic(), tmp_path, step)) as running:
        eventually(lambda: running.progress().rows == 2)
        symbols(tmp_path, A="Alpha", B="Beta")
        fill(connection, topic(), [trade(3, 3, "B")])
        eventually(lambda: running.progress().rows == 3)

    found = [(row["id"], row["name"]) for row in kept(tmp_path / "table")]
    assert found == [(1, "Alpha"), (2, None), (3, "Beta")]


def test_what_is_looked_up_can_be_summed_by_and_is_read_again(
    connection: Connection, topic: Any, pipeline: Any, tmp_path: Any
) -> None:
    table = {"files": {"path": symbols(tmp_path, A="x", B="x"), "format": "csv"}}
    steps = [
        {"enrich": {"table": table, "by": "symbol", "reload": "1ms", "how": "inner"}},
        {
            "aggregate": {
                "time": "time", "window": "10s", "by": "name", "values": {"n": "count(*)"},
            }
        },
    ]  # fmt: skip
    fill(connection, topic(), [trade(1, 1), trade(2, 2, "B"), trade(3, 20)])
    with start(to_files(pipeline, topic(), tmp_path, *steps)) as running:
        eventually(lambda: running.progress().rows == 1)
        symbols(tmp_path, A="y", B="y")
        fill(connection, topic(), [trade(4, 40, "B"), trade(5, 60)])
        eventually(lambda: running.progress().rows == 3)
        assert running.progress().restarts == 0

    assert windows(tmp_path / "table") == [
        (0, 10, "x", 2),
        (20, 30, "x", 1),
        (40, 50, "y", 1),
    ]
