"""Sinks that send rows as messages: what the system refuses goes to the dead letters, row by row."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pyarrow as pa
import pytest

from penstock import Connection, start
from penstock.errors import PipelineFailedError, TransientError
from penstock.pipeline import Opening, Sink, Writer
from penstock.sinks.messages import MessageWriter, Outlet, RecordIds, Refusal
from penstock.sinks.messages.outlet import Opener
from penstock.sinks.messages.record_columns import value_of
from penstock.testing import fill, read_all

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

BAD = {7, 8, 31}
ALL = range(40)


class PostboxSink(Sink):
    """A folder with a file for each delivery; some numbers are refused."""

    name = "postbox"
    names_refused = True
    folder: Path
    bad: frozenset[int] = frozenset(BAD)
    away: int = 0

    def open(self, opening: Opening) -> Writer:
        return PostboxWriter(self, opening)


class PostboxWriter(MessageWriter[PostboxSink]):
    def message(self, rows: DataFrame) -> dict[str, Column]:
        return {"value": value_of(rows, None, ())}

    def opener(self) -> Opener:
        return partial(PostboxOutlet, self.sink.folder, self.sink.bad, self.sink.away)


class PostboxOutlet(Outlet):
    def __init__(self, folder: Path, bad: frozenset[int], away: int) -> None:
        self._folder, self._bad = folder, bad
        self._ids = RecordIds()
        if len([*folder.glob("*.away")]) < away:
            (folder / f"{uuid4()}.away").touch()
            raise TransientError("the post office is closed")

    def send(self, rows: pa.RecordBatch) -> Iterable[Refusal]:
        kept = []
        ids = self._ids.of(rows)
        for row, value in enumerate(rows.column("value").to_pylist()):
            message = json.loads(value)
            if message["n"] in self._bad:
                yield Refusal(row, "NoSuchStreet", f"returned: {message['n']}")
            else:
                kept.append({**message, "id": ids[row].as_py() if ids else None})
        (self._folder / f"{uuid4()}.json").write_text(json.dumps(kept))


def sent(folder: Path) -> list[dict[str, Any]]:
    return [message for path in folder.glob("*.json") for message in json.loads(path.read_text())]


def letters(connection: Connection, name: str) -> dict[bytes | None, dict[str, bytes | None]]:
    found = read_all(connection, f"{name}.dead-letters")
    assert len({letter.value for letter in found}) == len(found)
    return {letter.value: dict(letter.headers) for letter in found}


def values(numbers: set[int]) -> set[bytes]:
    return {b'{"n":%d}' % n for n in numbers}


def run_once(definition: Any) -> Any:
    with start(definition, once=True) as running:
        running.wait(240)
        return running.progress()


@pytest.fixture
def numbers(connection: Connection, topic: Any) -> dict[str, Any]:
    fill(connection, topic(), [{"n": n} for n in ALL], partitions=2)
    return {"source": {"kafka": topic()}, "decode": {"json": {"schema": "n int"}}}


def test_refused_rows_go_to_the_dead_letters_and_no_other_is_sent_again(
    connection: Connection, numbers: Any, pipeline: Any, unique: str, tmp_path: Path
) -> None:
    progress = run_once(pipeline(**numbers, sink=PostboxSink(folder=tmp_path)))

    assert sorted(message["n"] for message in sent(tmp_path)) == [n for n in ALL if n not in BAD]
    assert all(set(message) == {"n", "id"} for message in sent(tmp_path))
    assert (progress.rows, progress.failed) == (37, 3)
    dead = letters(connection, unique)
    assert dead.keys() == values(BAD)
    assert dead[b'{"n":31}']["penstock.error_type"] == b"NoSuchStreet"
    assert dead[b'{"n":31}']["penstock.error"] == b"returned: 31"
    assert dead[b'{"n":31}']["penstock.stage"] == b"write"


@pytest.mark.parametrize(
    ("query", "copies"),
    [
        ("SELECT rows.* FROM rows", 1),
        ("SELECT n AS n FROM rows WHERE n < 99", 1),
        ("SELECT n, explode(array('a', 'b', 'c')) AS part FROM rows", 3),
    ],
)
def test_rows_keep_their_record_through_sql(
    connection: Connection,
    numbers: Any,
    pipeline: Any,
    unique: str,
    tmp_path: Path,
    query: str,
    copies: int,
) -> None:
    run_once(pipeline(**numbers, steps=[{"sql": query}], sink=PostboxSink(folder=tmp_path)))

    messages = sent(tmp_path)
    assert Counter(message["n"] for message in messages) == dict.fromkeys({*ALL} - BAD, copies)
    assert len({message["id"] for message in messages}) == len(messages)
    assert letters(connection, unique).keys() == values(BAD)


def test_rows_keep_their_record_where_the_fields_of_a_struct_are_selected(
    connection: Connection, numbers: Any, pipeline: Any, unique: str, tmp_path: Path
) -> None:
    steps = [
        {"sql": "SELECT named_struct('n', n) AS payload FROM rows"},
        {"sql": "SELECT payload.* FROM rows"},
        {"sql": "SELECT n FROM rows"},
    ]

    run_once(pipeline(**numbers, steps=steps, sink=PostboxSink(folder=tmp_path)))

    assert sorted(message["n"] for message in sent(tmp_path)) == [n for n in ALL if n not in BAD]
    assert all(message["id"] for message in sent(tmp_path))
    assert letters(connection, unique).keys() == values(BAD)


def test_a_message_of_all_columns_has_those_of_the_rows_and_no_other(
    connection: Connection, numbers: Any, pipeline: Any, unique: str, tmp_path: Path
) -> None:
    steps = [{"sql": "SELECT n, to_json(struct(*)) AS body FROM rows"}]

    run_once(pipeline(**numbers, steps=steps, sink=PostboxSink(folder=tmp_path)))

    bodies = [json.loads(message["body"]) for message in sent(tmp_path)]
    assert sorted(body["n"] for body in bodies) == [n for n in ALL if n not in BAD]
    assert all(set(body) == {"n"} for body in bodies)
    assert len(letters(connection, unique)) == len(BAD)


def unchanged(table: pa.Table) -> pa.Table:
    return table


def test_where_a_step_hides_the_record_it_is_found_by_writing_parts(
    connection: Connection, numbers: Any, pipeline: Any, unique: str, tmp_path: Path
) -> None:
    steps = [{"python": {"function": unchanged}}]
    sink = PostboxSink(folder=tmp_path, bad=frozenset({31}))

    run_once(pipeline(**numbers, steps=steps, sink=sink))

    assert {message["n"] for message in sent(tmp_path)} == {*ALL} - {31}
    assert letters(connection, unique).keys() == values({31})


def test_too_many_refused_rows_end_the_pipeline(
    numbers: Any, pipeline: Any, tmp_path: Path
) -> None:
    definition = pipeline(**numbers, sink=PostboxSink(folder=tmp_path), max_refused=2)

    with pytest.raises(PipelineFailedError, match="more than 2 records of batch 0 were refused"):
        run_once(definition)


def test_a_system_that_is_away_is_waited_for(
    connection: Connection, numbers: Any, pipeline: Any, unique: str, tmp_path: Path
) -> None:
    sink = PostboxSink(folder=tmp_path, away=2)

    run_once(pipeline(**numbers, sink=sink, restart={"wait": "100ms"}))

    assert {message["n"] for message in sent(tmp_path)} == {*ALL} - BAD
    assert letters(connection, unique).keys() == values(BAD)
