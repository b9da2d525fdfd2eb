"""Steps and sinks that read a batch in part, or twice: bad records are counted once, and all of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from penstock import Connection, memory_table, start
from penstock.engine import Progress, spark_session
from penstock.testing import fill, read_all

# A good record, a bad one, and so on: they are in both partitions.
GOOD = [{"word": str(number % 10)} for number in range(300)]
BAD = ["bad"] * 300
# Each query, and how many rows it leaves of the 300 good records.
QUERIES = {
    "SELECT word FROM rows LIMIT 10": 10,
    "SELECT word FROM rows WHERE 1 = 0": 0,
    "SELECT word, count(*) OVER (PARTITION BY word) AS total FROM rows WHERE word = 'none'": 0,
    "SELECT word FROM rows JOIN (SELECT id FROM range(9) WHERE id > 20) ON id = word": 0,
    "SELECT word FROM rows INTERSECT SELECT 'none'": 0,
    "SELECT DISTINCT word FROM rows": 10,
    "SELECT word FROM rows ORDER BY word": 300,
    "SELECT word FROM rows WHERE EXISTS (SELECT 1 FROM rows WHERE word = '1')": 300,
    "SELECT a.word FROM rows a JOIN rows b ON a.word < b.word AND b.word < '2'": 900,
    # An equality that is no key of the join: its sides are read again for each other's partitions.
    "SELECT word FROM rows JOIN range(2000000) ON word = '1' AND id < word": 30,
    "SELECT word FROM (VALUES (1), (5)) v(x) LEFT JOIN rows ON word > x": 360,
    "SELECT id AS word FROM range(9) WHERE id IN (SELECT word FROM rows)": 9,
}
# What raises for the value 7, with a condition of Spark or as Java's own arithmetic does.
REFUSING = {
    "SELECT timestamp_millis(if(n = 7, 1700000000000000000, n)) AS at FROM rows": "ArithmeticException",
    "SELECT map_from_arrays(array(n, 7), array(1, 2)) AS both FROM rows": "DUPLICATED_MAP_KEY",
    "SELECT size(sequence(1, if(n = 7, 99999999999, n))) AS many FROM rows": "COLLECTION_SIZE_LIMIT",
    "SELECT map_from_arrays(array(1), if(n = 7, array(), array(n))) AS one FROM rows": "_LEGACY_ERROR",
}


def complain(value: str) -> dict[str, Any]:
    row = json.loads(value)
    if "text" in row:
        raise ValueError(f"unknown: {row['text']}")
    return row  # type: ignore[no-any-return]


def run_once(definition: Any) -> Progress:
    with start(definition, once=True) as running:
        assert running.wait(280), running.progress()
        return running.progress()


@pytest.mark.parametrize("query", QUERIES)
def test_bad_records_behind_the_rows_that_a_step_reads(
    connection: Connection, topic: Any, pipeline: Any, unique: str, query: str
) -> None:
    fill(connection, topic(), [*GOOD, *BAD], partitions=2)
    definition = pipeline(
        source={"kafka": topic()},
        decode={"json": {"schema": "word string"}},
        steps=[{"sql": query}],
        sink={"memory": unique},
    )

    progress = run_once(definition)

    assert (progress.records, progress.rows, progress.failed) == (600, QUERIES[query], 300)
    assert len(memory_table(unique).to_pandas()) == QUERIES[query]
    letters = read_all(connection, f"{unique}.dead-letters")
    offsets = [int(dict(letter.headers)["penstock.offset"] or b"") for letter in letters]
    assert sorted(offsets) == sorted([*range(150, 300)] * 2)


@pytest.mark.parametrize("values", [BAD, [None] * 5], ids=["bad", "empty"])
def test_a_batch_without_a_good_record(
    connection: Connection, topic: Any, pipeline: Any, unique: str, values: list[Any]
) -> None:
    fill(connection, topic(), values)
    definition = pipeline(
        source={"kafka": topic()},
        decode={"json": {"schema": "word string"}},
        steps=[{"sql": "SELECT word, count(*) AS total FROM rows GROUP BY word"}],
        sink={"memory": unique},
    )

    progress = run_once(definition)

    assert (progress.rows, progress.failed) == (0, len(values))
    assert len(read_all(connection, f"{unique}.dead-letters")) == len(values)


def test_the_console_shows_some_rows_and_all_bad_records_are_counted(
    connection: Connection, topic: Any, pipeline: Any, unique: str, capsys: Any
) -> None:
    fill(connection, topic(), [*GOOD, *BAD])
    definition = pipeline(
        source={"kafka": topic()},
        decode={"json": {"schema": "word string"}},
        sink={"console": {"rows": 3}},
    )

    progress = run_once(definition)

    assert (progress.rows, progress.failed) == (300, 300)
    assert capsys.readouterr().out.count("\n") < 20
    assert len(read_all(connection, f"{unique}.dead-letters")) == 300


@pytest.mark.parametrize("query", REFUSING)
def test_a_value_that_a_function_refuses_is_one_dead_letter(
    connection: Connection, topic: Any, pipeline: Any, unique: str, query: str
) -> None:
    fill(connection, topic(), [{"n": number} for number in range(10)])
    definition = pipeline(
        source={"kafka": topic()},
        decode={"json": {"schema": "n bigint"}},
        steps=[{"sql": query}],
        sink={"memory": unique},
    )

    progress = run_once(definition)

    assert (progress.rows, progress.failed) == (9, 1)
    (letter,) = read_all(connection, f"{unique}.dead-letters")
    headers = dict(letter.headers)
    assert (headers["penstock.offset"], headers["penstock.stage"]) == (b"7", b"step")
    assert (headers["penstock.error_type"] or b"").decode().startswith(REFUSING[query])


def test_an_error_that_quotes_a_whole_record_or_half_a_sign_is_a_dead_letter(
    connection: Connection, topic: Any, pipeline: Any, unique: str
) -> None:
    texts = ['{"text": "\\ud800"}', {"text": "\u00fc" * 450_000}]
    fill(connection, topic(), [*texts, {"n": 1}])
    definition = pipeline(
        source={"kafka": topic()},
        decode={"python": {"function": complain, "schema": "n int"}},
        sink={"memory": unique},
    )

    progress = run_once(definition)

    assert (progress.rows, progress.failed) == (1, 2)
    first, second = read_all(connection, f"{unique}.dead-letters")
    assert dict(first.headers)["penstock.error"] == b"unknown: \\ud800"
    assert len(dict(second.headers)["penstock.error"] or b"") in (9_999, 10_000)


def test_a_limit_behind_a_step_with_state(
    connection: Connection, topic: Any, pipeline: Any, unique: str
) -> None:
    fill(connection, topic(), [*GOOD, *BAD], partitions=2)
    definition = pipeline(
        source={"kafka": topic()},
        decode={"json": {"schema": "word string"}},
        steps=[
            {"sql": "SELECT word, timestamp_seconds(1700000000) AS at FROM rows"},
            {"deduplicate": {"by": "word", "time": "at", "within": "1h"}},
            {"sql": "SELECT word FROM rows LIMIT 4"},
        ],
        sink={"memory": unique},
        delivery="at-least-once",
    )

    progress = run_once(definition)

    assert (progress.rows, progress.failed, progress.restarts) == (4, 300, 0)
    fill(connection, topic(), GOOD)
    assert run_once(definition).rows == 0  # it remembers all ten, also those behind the limit


def test_a_table_with_an_order_reads_rows_first_for_a_sample(
    connection: Connection, topic: Any, pipeline: Any, unique: str, tmp_path: Path
) -> None:
    fill(connection, topic(), GOOD, partitions=2)
    lake = {"warehouse": str(tmp_path / "lake"), "table": "db.words"}
    definition = pipeline(
        source={"kafka": topic()},
        decode={"json": {"schema": "word string"}},
        sink={"iceberg": lake},
        delivery="exactly-once",
    )
    assert run_once(definition).rows == 300
    table = definition.sink.target(spark_session()).sql
    spark_session().sql(f"ALTER TABLE {table} WRITE ORDERED BY word")
    fill(connection, topic(), [*GOOD, *BAD], partitions=2)

    progress = run_once(definition)

    assert (progress.rows, progress.failed) == (300, 300)
