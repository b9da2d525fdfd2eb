"""Steps and sinks for which Spark need not read a whole batch: bad records are counted all the same."""

from __future__ import annotations

from typing import Any

import pytest

from penstock import Connection, memory_table, start
from penstock.engine import Progress
from penstock.testing import fill, read_all

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
}


def run_once(definition: Any) -> Progress:
    with start(definition, once=True) as running:
        assert running.wait(280), running.progress()
        return running.progress()


@pytest.mark.parametrize("query", QUERIES)
def test_bad_records_behind_the_rows_that_a_step_reads(
    connection: Connection, topic: Any, pipeline: Any, unique: str, query: str
) -> None:
    fill(connection, topic(), [*GOOD, *BAD])
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
    assert sorted(offsets) == [*range(300, 600)]


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
