"""The same definitions on a real cluster: Penstock, parsers, steps and jars reach the executors."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock import Connection, Pipeline, memory_table, start
from penstock.engine import spark_session
from penstock.pipeline import SparkOptions
from penstock.testing import fill, read_all

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

TRADES = [{"id": i, "price": i / 2} for i in range(500)]


def run_once(definition: Pipeline) -> Any:
    with start(definition, once=True) as running:
        assert running.wait(280), running.progress()
        return running.progress()


def test_the_executors_python_has_the_packages_and_not_penstock(executors_python: Path) -> None:
    def imports(name: str) -> bool:
        run = [str(executors_python), "-E", "-c", f"import {name}"]
        return subprocess.run(run, check=False, capture_output=True).returncode == 0

    assert imports("pyarrow")
    assert not imports("penstock")


def test_json_becomes_parquet_and_bad_records_dead_letters(
    connection: Connection, unique: str, definition: Any, moved: Any, tmp_path: Path
) -> None:
    file = definition("""
source: {kafka: "{topic}"}
decode: {json: {schema: "id bigint not null, price double"}}
steps: [{sql: "SELECT *, price * 2 AS twice FROM rows"}]
sink: {files: {path: "{folder}/table"}}
delivery: exactly-once
""")
    fill(connection, unique, [*TRADES, "no JSON", {"id": None}], partitions=3)

    progress = run_once(moved(file))

    table = pq.read_table(tmp_path / "table")
    assert sorted(table.column("id").to_pylist()) == list(range(500))
    assert all(row["twice"] == row["id"] for row in table.to_pylist())
    assert (progress.records, progress.rows, progress.failed) == (502, 500, 2)
    letters = read_all(connection, f"{unique}.dead-letters")
    assert sorted(letter.value for letter in letters) == [b"no JSON", b'{"id":null}']


def test_a_parser_beside_the_definition_is_sent_with_all_that_it_imports(
    connection: Connection, unique: str, definition: Any, moved: Any, tmp_path: Path
) -> None:
    file = definition(
        """
source: {kafka: "{topic}"}
decode:
  python:
    function: cluster_parser:parse
    schema: "id bigint, price double, parser string, helper string, penstock string"
sink: {delta: {path: "{folder}/table"}}
delivery: exactly-once
""",
        cluster_parser="""
import json

def parse(value):
    import cluster_helper  # not known before the first record
    import penstock

    if value == "bad":
        raise ValueError("a bad record")
    row = json.loads(value)
    return cluster_helper.widened(row) | {"parser": __file__, "penstock": penstock.__file__}
""",
        cluster_helper="""
def widened(row):
    return {**row, "helper": __file__}
""",
    )
    fill(connection, unique, [*TRADES, "bad"], partitions=2)

    progress = run_once(moved(file))

    rows = spark_session().read.format("delta").load(str(tmp_path / "table")).toArrow()
    assert sorted(rows.column("id").to_pylist()) == list(range(500))
    assert (progress.rows, progress.failed) == (500, 1)
    for name in ("parser", "helper", "penstock"):
        (place,) = set(rows.column(name).to_pylist())
        assert ".zip/" in place
        assert str(tmp_path) not in place


def test_topic_to_topic_exactly_once_through_a_step_in_python(
    connection: Connection, unique: str, definition: Any, moved: Any
) -> None:
    file = definition(
        """
source: {kafka: "{topic}"}
decode: {json: {schema: "id bigint not null, price double"}}
steps: [{python: cluster_step:expensive}]
sink: {kafka: {topic: "{topic}-out", value: id}}
delivery: exactly-once
""",
        cluster_step="""
import pyarrow.compute as pc

def expensive(table):
    return table.filter(pc.greater_equal(table["price"], 100))
""",
    )
    fill(connection, unique, TRADES, partitions=2)

    progress = run_once(moved(file))

    written = sorted(int(record.value or b"-1") for record in read_all(connection, f"{unique}-out"))
    assert written == list(range(200, 500))
    assert (progress.records, progress.rows) == (500, 300)


def test_what_a_step_keeps_is_found_again_by_the_next_run(
    connection: Connection, unique: str, definition: Any, moved: Any, tmp_path: Path
) -> None:
    file = definition("""
source: {kafka: "{topic}"}
decode: {json: {schema: "id bigint, at timestamp"}}
steps: [{deduplicate: {by: id, time: at, within: 1h}}]
sink: {files: "{folder}/table"}
delivery: exactly-once
""")
    for last in (100, 150):
        rows = [{"id": i, "at": "2024-01-02T03:04:05Z"} for i in [*range(last), *range(last)]]
        fill(connection, unique, rows, partitions=2)
        run_once(moved(file))

    found = pq.read_table(tmp_path / "table").column("id").to_pylist()
    assert sorted(found) == list(range(150))


def halved(table: pa.Table) -> pa.Table:
    return table.slice(0, table.num_rows // 2)


def test_a_function_by_value_takes_its_module_along(
    connection: Connection, unique: str, pipeline: Any, there: SparkOptions
) -> None:
    fill(connection, unique, [{"id": i} for i in range(100)])
    definition = pipeline(
        source={"kafka": unique},
        decode={"json": {"schema": "id bigint"}},
        steps=[{"python": {"function": halved}}],
        sink={"memory": unique},
        spark=there,
    )

    run_once(definition)

    assert memory_table(unique).to_arrow().column("id").to_pylist() == list(range(50))


def test_a_database_in_a_file_is_written_by_the_driver(
    connection: Connection, unique: str, pipeline: Any, there: SparkOptions, tmp_path: Path
) -> None:
    import sqlite3

    fill(connection, unique, TRADES, partitions=2)
    definition = pipeline(
        source={"kafka": unique},
        decode={"json": {"schema": "id bigint not null"}},
        sink={"database": {"url": f"sqlite:///{tmp_path}/trades.db", "table": "trades"}},
        delivery="exactly-once",
        spark=there,
    )

    run_once(definition)

    with sqlite3.connect(tmp_path / "trades.db") as database:
        found = database.execute("SELECT id FROM trades ORDER BY id").fetchall()
    assert [id for (id,) in found] == list(range(500))
