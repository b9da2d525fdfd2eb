"""The writers of an attempt: opened, prepared, claimed and closed together."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql.types import StructType
from tests.unit.engine.fake_sink import FakeSink

from penstock.engine.claims import Claims, Writers
from penstock.errors import FencedError, SetupError
from penstock.pipeline import Batch, LastWrite, Mark, Opening, Pipeline
from penstock.sinks.kafka.kafka_writer import KafkaWriter

P0, P1 = ("t", 0), ("t", 1)


def pipeline(calls: list[Any], **options: Any) -> Pipeline:
    given = {
        "sink": FakeSink(calls=calls),
        "dead_letters": FakeSink(calls=calls, label="dead"),
        "delivery": "exactly-once",
    } | options
    return Pipeline(
        name="p", connection={"bootstrap.servers": "nowhere:1"}, source={"kafka": "t"}, **given
    )


def opened(made: Pipeline) -> Any:
    opening = Opening(None, made.name, made.connection, made.delivery, (P0, P1))  # type: ignore[arg-type]
    return Writers.open(made, opening)


def claims(made: Pipeline, calls: list[Any]) -> Claims:
    return Claims(made, opened(made), lambda: calls.append("prepare"))


def batch(epoch: int, number: int, **more: Any) -> Batch:
    return Batch(None, "p", epoch, number, None, **more)  # type: ignore[arg-type]


def test_both_sinks_are_opened_prepared_and_closed_each_under_its_name() -> None:
    calls: list[Any] = []
    writers = opened(pipeline(calls))
    assert not writers.is_prepared
    writers.prepare(StructType().add("n", "integer"))
    writers.close()

    assert writers.is_prepared
    prepared = [call for call in calls if call[1] == "prepare"]
    assert prepared[0] == ("rows", "prepare", ("n",))
    assert prepared[1][0] == "dead"
    assert {"topic", "partition", "offset", "error", "value"} <= set(prepared[1][2])
    others = [call for call in calls if call[1] != "prepare"]
    assert others == [
        ("rows", "open", "p"),
        ("dead", "open", "p.dead-letters"),
        ("dead", "close"),
        ("rows", "close"),
    ]


def test_a_sink_that_was_opened_is_closed_when_the_other_cannot_be() -> None:
    calls: list[Any] = []
    dead = FakeSink(calls=calls, label="dead", opens=False)
    with pytest.raises(SetupError):
        opened(pipeline(calls, dead_letters=dead))
    assert calls == [("rows", "open", "p"), ("rows", "close")]


def test_dead_letters_in_a_topic_are_whole_records() -> None:
    made = pipeline([], dead_letters="bad")
    writer = opened(made).dead_letters
    assert isinstance(writer, KafkaWriter)
    assert (writer.sink.key, writer.sink.value, writer.sink.headers) == ("key", "value", "headers")
    assert writer.opening.pipeline == "p.dead-letters"
    assert writer.opening.partitions == (P0, P1)


def test_an_epoch_is_claimed_in_both_sinks_after_they_are_prepared() -> None:
    calls: list[Any] = []
    asked = claims(pipeline(calls), calls)
    before = asked.writers.rows.known = LastWrite(Mark(6, 2, 0), {P0: (0, 5)})  # type: ignore[attr-defined]
    assert asked.newest_epoch() == 6
    assert asked.claim(7) == before
    assert calls[2:] == ["prepare", ("rows", "claim", 7), ("dead", "claim", 7)]


def test_an_epoch_that_goes_on_is_claimed_only_where_it_is_not_known() -> None:
    calls: list[Any] = []
    asked = claims(pipeline(calls), calls)
    asked.writers.rows.known = LastWrite(Mark(7, 2, 0))  # type: ignore[attr-defined]
    asked.hold(7)
    assert calls[2:] == ["prepare", ("dead", "claim", 7)]


def test_only_the_first_batch_after_a_start_can_be_a_repetition() -> None:
    asked = claims(pipeline([]), [])
    asked.writers.rows.known = LastWrite(Mark(7, 2, 0))  # type: ignore[attr-defined]
    assert asked.has(batch(7, 2))
    assert not asked.has(batch(7, 2, may_repeat=False))
    assert not asked.has(batch(7, 3))
    with pytest.raises(FencedError):
        asked.has(batch(6, 3))


def test_without_marks_nothing_is_asked_or_claimed() -> None:
    calls: list[Any] = []
    asked = claims(pipeline(calls, delivery="at-least-once"), calls)
    asked.writers.rows.known = LastWrite(Mark(7, 2, 0))  # type: ignore[attr-defined]
    assert asked.last_write() is None
    assert asked.newest_epoch() == -1
    assert asked.claim(8) is None
    asked.hold(8)
    assert not asked.has(batch(7, 2))
    assert [call[1] for call in calls] == ["open", "open"]


def test_dead_letters_that_the_sink_has_are_not_written_again() -> None:
    asked = claims(pipeline([]), [])
    asked.writers.dead_letters.known = LastWrite(Mark(7, 2, 0), {P0: (0, 9)})  # type: ignore[attr-defined]
    assert asked.without_dead_letters({P0: (5, 9), P1: (0, 3)}) == {P1: (0, 3)}
    assert asked.without_dead_letters({}) == {}
