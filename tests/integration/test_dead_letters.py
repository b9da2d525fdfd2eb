"""Bad records: counted exactly, written completely to the dead letters; the good ones continue."""

from __future__ import annotations

from typing import Any

import pyarrow.parquet as pq
import pytest

from penstock import Admin, Connection, Producer, State, memory_table, start
from penstock.engine.dead_letters import DeadLetterStore, replay
from penstock.errors import PipelineFailedError
from penstock.testing import fill, read_all

VALUES = [
    '{"n": 1}',
    "not json",
    '{"n": "two"}',
    '{"n": 3}',
    None,
    '{"n": 99999999999}',
    '{"n": 4}',
]
GOOD = [1, 3, 4]


def parse(value: str, key: str, topic: str) -> dict[str, Any]:
    return {"n": int(value), "key": key, "topic": topic}


def run_once(definition: Any) -> Any:
    with start(definition, once=True) as running:
        assert running.wait(280), running.progress()
        return running.progress()


@pytest.mark.by_turns
@pytest.mark.parametrize("delivery", ["at-least-once", "exactly-once"])
def test_a_bad_record_as_large_as_its_topic_allows_goes_there_as_well(
    connection: Connection, topic: Any, pipeline: Any, unique: str, delivery: str
) -> None:
    """The topic of dead letters, created by us, has room for the record and for our headers."""
    largest = 4 * 1024 * 1024
    with Admin(connection) as admin:
        admin.create_topic(topic(), 1, config={"max.message.bytes": largest})
    with Producer(connection, **{"message.max.bytes": largest}) as producer:
        producer.produce(topic(), None, "x" * (largest - 100))
        producer.produce(topic(), None, '{"n": 1}')
    definition = pipeline(
        source={"kafka": topic()},
        decode={"json": {"schema": "n int"}},
        sink={"memory": unique},
        delivery=delivery,
    )

    progress = run_once(definition)

    assert (progress.rows, progress.failed) == (1, 1)
    (letter,) = read_all(connection, f"{unique}.dead-letters")
    assert letter.value is not None
    assert len(letter.value) == largest - 100
    assert replay(definition, DeadLetterStore(definition).waiting()).failed_again == 1
    (again,) = DeadLetterStore(definition).waiting()
    assert again.value == letter.value


def test_bad_records_go_to_the_dead_letter_topic_with_origin_and_error(
    connection: Connection, topic: Any, pipeline: Any, unique: str
) -> None:
    fill(connection, topic(), VALUES)
    definition = pipeline(
        source={"kafka": topic()},
        decode={"json": {"schema": "n int not null"}},
        sink={"memory": unique},
    )

    progress = run_once(definition)

    assert sorted(memory_table(unique).to_pandas()["n"]) == GOOD
    assert (progress.rows, progress.failed, progress.records) == (3, 4, 7)
    assert progress.last_error.startswith(
        f"{topic()}-0-5: "
    )  # the last one, in the order of offsets
    dead = read_all(connection, f"{unique}.dead-letters")
    assert [letter.value for letter in dead] == [
        b"not json", b'{"n": "two"}', None, b'{"n": 99999999999}',
    ]  # fmt: skip
    headers = dict(dead[1].headers)
    assert headers["penstock.topic"] == topic().encode()
    assert headers["penstock.offset"] == b"2"
    assert headers["penstock.stage"] == b"decode"
    assert headers["penstock.error_type"] == b"WrongType"
    assert b"n: found" in headers["penstock.error"]
    assert headers["penstock.pipeline"] == unique.encode()


def test_bad_records_go_to_a_table_and_the_group_moves_past_them(
    connection: Connection, topic: Any, pipeline: Any, tmp_path: Any
) -> None:
    fill(connection, topic(), VALUES)
    definition = pipeline(
        source={"kafka": topic()},
        decode={"json": {"schema": "n int not null"}},
        sink="discard",
        dead_letters={"files": str(tmp_path / "dead")},
    )

    run_once(definition)

    dead = sorted(pq.read_table(tmp_path / "dead").to_pylist(), key=lambda row: row["offset"])
    assert [(row["topic"], row["partition"], row["offset"]) for row in dead] == [
        (topic(), 0, 1), (topic(), 0, 2), (topic(), 0, 4), (topic(), 0, 5),
    ]  # fmt: skip
    assert dead[0]["value"] == b"not json"
    assert {row["stage"] for row in dead} == {"decode"}
    assert run_once(definition).records == 0


def test_a_parser_that_raises_fails_its_record_only(
    connection: Connection, topic: Any, pipeline: Any, unique: str
) -> None:
    fill(connection, topic(), ["1", "x", "3"], key=lambda index: f"k{index}".encode())
    definition = pipeline(
        source={"kafka": topic()},
        decode={"python": {"function": parse, "schema": "n bigint, key string, topic string"}},
        sink={"memory": unique},
    )

    progress = run_once(definition)

    rows = memory_table(unique).to_pandas().sort_values("n").to_dict("records")
    assert rows == [
        {"n": 1, "key": "k0", "topic": topic()},
        {"n": 3, "key": "k2", "topic": topic()},
    ]
    assert progress.failed == 1
    assert "invalid literal for int() with base 10: 'x'" in progress.last_error


def test_a_parser_that_changes_its_mind_fails_the_batch_and_loses_nothing(
    connection: Connection, topic: Any, pipeline: Any, tmp_path: Any
) -> None:
    calls = str(tmp_path / "calls")

    def fickle(value: str) -> dict[str, Any]:
        from pathlib import Path

        # The first pass asks twice: with the whole batch, then for this record alone.
        asked = len(list(Path(calls).parent.glob("calls-*")))
        if value == "2" and asked < 2:
            Path(f"{calls}-{asked}").touch()
            raise ValueError("not yet")
        return {"n": int(value)}

    fill(connection, topic(), ["1", "2"])
    definition = pipeline(
        source={"kafka": topic()},
        decode={"python": {"function": fickle, "schema": "n bigint"}},
        sink={"files": str(tmp_path / "table")},
    )

    with start(definition, once=True) as running:
        with pytest.raises(
            PipelineFailedError, match="decoding is not repeatable: 1 records failed"
        ):
            running.wait(120)
        assert running.progress().state is State.FAILED

    run_once(definition)
    assert set(pq.read_table(tmp_path / "table").column("n").to_pylist()) == {1, 2}


def test_a_step_in_python_that_raises_on_everything_fails_the_pipeline_with_its_reason(
    connection: Connection, topic: Any, pipeline: Any
) -> None:
    def explode(_table: Any) -> Any:
        raise RuntimeError("boom in the step")

    fill(connection, topic(), ["1", "2", "3"])
    definition = pipeline(
        source={"kafka": topic()},
        decode="text",
        steps=[{"python": {"function": explode, "schema": "value string"}}],
        sink="discard",
        max_refused=1,
    )

    with (
        start(definition, once=True) as running,
        pytest.raises(PipelineFailedError, match="RuntimeError: boom in the step"),
    ):
        running.wait(60)
