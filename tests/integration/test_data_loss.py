"""Kafka removes records before they are read: the pipeline ends, or goes on and counts them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import pytest

from penstock import Admin, Connection, State, memory_table, start
from penstock.cli.live_progress import summary
from penstock.errors import DataLossError
from penstock.pipeline import Batch, Opening, Sink, Writer
from penstock.testing import eventually, fill


class HookedSink(Sink):
    """A list of rows; something happens after each batch was planned and before it is read."""

    name = "hooked"
    table: str
    before: ClassVar[dict[str, Callable[[Batch], None]]] = {}
    kept: ClassVar[dict[str, list[int]]] = {}

    def open(self, opening: Opening) -> Writer:
        return HookedWriter(self, opening)


class HookedWriter(Writer[HookedSink]):
    def write(self, batch: Batch) -> None:
        table = self.sink.table
        self.sink.before.get(table, lambda _: None)(batch)
        rows = batch.rows.toArrow().column("n").to_pylist()
        self.sink.kept.setdefault(table, []).extend(rows)


def numbers(first: int, until: int) -> list[dict[str, int]]:
    return [{"n": n} for n in range(first, until)]


def definition(pipeline: Any, sink: Any, **source: Any) -> Any:
    return pipeline(
        source={"kafka": source},
        decode={"json": {"schema": "n int"}},
        sink=sink,
        restart={"wait": "50ms", "limit": 2},
    )


def remove(connection: Connection, topic: str, before: int) -> None:
    with Admin(connection) as admin:
        assert admin.delete_records({(topic, 0): before}) == {(topic, 0): before}


def test_records_removed_while_it_was_stopped_are_refused_with_everything_to_know(
    connection: Connection, topic: Any, pipeline: Any, unique: str
) -> None:
    fill(connection, topic(), numbers(0, 5))
    chosen = definition(pipeline, {"memory": unique}, topics=topic())
    with start(chosen, once=True) as running:
        assert running.wait(120)
    fill(connection, topic(), numbers(5, 20))
    remove(connection, topic(), 12)

    with pytest.raises(DataLossError) as caught:
        start(chosen)

    assert str(caught.value) == (
        f"{topic()}-0: the pipeline was at offset 5 and the oldest record is 12: 7 records were "
        "removed before they were read; to continue without them give the source 'on_data_loss: skip', "
        f"or reset the group's offsets to earliest: penstock groups reset {unique} --to earliest"
    )


def test_records_removed_while_it_was_stopped_are_skipped_and_counted(
    connection: Connection, topic: Any, pipeline: Any, unique: str
) -> None:
    fill(connection, topic(), numbers(0, 5))
    chosen = definition(pipeline, {"memory": unique}, topics=topic(), on_data_loss="skip")
    with start(chosen, once=True) as running:
        assert running.wait(120)
    fill(connection, topic(), numbers(5, 20))
    remove(connection, topic(), 12)

    with start(chosen, once=True) as running:
        assert running.wait(120)
        progress = running.progress()

    assert sorted(memory_table(unique).to_pandas()["n"]) == [*range(5), *range(12, 20)]
    assert (progress.lost, progress.rows) == (7, 8)
    assert "7 records were removed before they were read" in str(progress.last_error)
    assert summary(progress).endswith("lag 0, 0 failed, 7 lost")


def test_a_group_that_was_moved_before_the_oldest_record_is_skipped_and_counted(
    connection: Connection, topic: Any, pipeline: Any, unique: str
) -> None:
    from penstock.kafka import GroupOffsets

    fill(connection, topic(), numbers(0, 20))
    remove(connection, topic(), 12)
    with GroupOffsets(connection, unique) as group:
        group.commit({(topic(), 0): 3})

    with pytest.raises(
        DataLossError, match="was at offset 3 and the oldest record is 12: 9 records"
    ):
        start(definition(pipeline, {"memory": unique}, topics=topic()))
    chosen = definition(pipeline, {"memory": unique}, topics=topic(), on_data_loss="skip")
    with start(chosen, once=True) as running:
        assert running.wait(120)
        assert (running.progress().lost, running.progress().rows) == (9, 8)


@pytest.mark.parametrize("on_data_loss", ["fail", "skip"])
def test_records_removed_between_the_plan_and_the_read(
    connection: Connection, topic: Any, pipeline: Any, unique: str, on_data_loss: str
) -> None:
    fill(connection, topic(), numbers(0, 30))
    HookedSink.before[unique] = lambda batch: batch.id or remove(connection, topic(), 12)
    sink = HookedSink(table=unique)
    chosen = definition(pipeline, sink, topics=topic(), on_data_loss=on_data_loss)
    with start(chosen) as running:
        if on_data_loss == "fail":
            with pytest.raises(
                DataLossError, match="was at offset 0 and the oldest record is 12: 12 records"
            ):
                running.wait(120)
        else:
            eventually(lambda: running.progress().rows == 18, timeout=120)
        progress = running.progress()
    if on_data_loss == "fail":
        assert (progress.state, progress.restarts) == (State.FAILED, 0)
        with Admin(connection) as admin:
            assert admin.committed(unique) == {(topic(), 0): 0}
    else:
        assert (progress.lost, progress.records, progress.state) == (12, 30, State.RUNNING)
        assert HookedSink.kept[unique] == list(range(12, 30))


def test_what_was_fetched_before_it_was_removed_is_not_lost(
    connection: Connection, topic: Any, pipeline: Any, unique: str
) -> None:
    """Spark reads ahead: the second batch has its records, though Kafka has them no more."""
    fill(connection, topic(), numbers(0, 30))
    HookedSink.before[unique] = lambda batch: batch.id == 1 and remove(connection, topic(), 25)
    chosen = definition(
        pipeline, HookedSink(table=unique), topics=topic(), max_records_per_batch=10
    )
    with start(chosen, once=True) as running:
        assert running.wait(120)
        progress = running.progress()
    assert (progress.lost, sorted(HookedSink.kept[unique])) == (0, list(range(30)))


def test_a_part_of_a_refused_batch_that_is_removed_is_counted(
    connection: Connection, topic: Any, pipeline: Any, unique: str
) -> None:
    """A batch is read again in parts when a step refuses a row; by then its beginning is gone."""
    fill(connection, topic(), numbers(0, 16))
    HookedSink.before[unique] = lambda batch: batch.part == 0 and remove(connection, topic(), 3)
    chosen = pipeline(
        source={"kafka": {"topics": topic(), "on_data_loss": "skip"}},
        decode={"json": {"schema": "n int"}},
        steps=[{"sql": "SELECT n, assert_true(n <> 9) AS checked FROM rows"}],
        sink=HookedSink(table=unique),
    )
    with start(chosen, once=True) as running:
        assert running.wait(240)
        progress = running.progress()
    assert sorted(HookedSink.kept[unique]) == [n for n in range(3, 16) if n != 9]
    assert (progress.lost, progress.failed, progress.rows) == (3, 1, 12)


def test_what_a_part_lacks_is_counted_though_the_pipeline_fails_before_the_batch_is_done(
    connection: Connection, topic: Any, pipeline: Any, unique: str
) -> None:
    """The next attempt goes on with the parts that are left; the finished one is not read again."""
    fill(connection, topic(), numbers(0, 16))
    failed: list[int] = []

    def before(batch: Batch) -> None:
        if batch.part == 0:
            remove(connection, topic(), 3)
        if batch.part == 2 and not failed:
            failed.append(batch.part)
            raise RuntimeError("the power is out")

    HookedSink.before[unique] = before
    chosen = pipeline(
        source={"kafka": {"topics": topic(), "on_data_loss": "skip"}},
        decode={"json": {"schema": "n int"}},
        steps=[{"sql": "SELECT n, assert_true(n <> 9) AS checked FROM rows"}],
        sink=HookedSink(table=unique),
        restart={"wait": "50ms", "limit": 2},
    )
    with start(chosen) as running:
        eventually(lambda: running.progress().rows == 12, timeout=240)
        progress = running.progress()
    assert failed == [2]
    assert (progress.lost, progress.failed, progress.restarts) == (3, 1, 1)


def test_records_removed_under_a_step_that_keeps_state_are_counted(
    connection: Connection, topic: Any, pipeline: Any, unique: str
) -> None:
    moment = "2024-01-01T00:00:00Z"
    fill(connection, topic(), [{"n": n, "time": moment} for n in range(10)])
    HookedSink.before[unique] = lambda batch: batch.id or remove(connection, topic(), 4)
    chosen = pipeline(
        source={"kafka": {"topics": topic(), "on_data_loss": "skip"}},
        decode={"json": {"schema": "n int, time timestamp"}},
        steps=[{"deduplicate": {"by": "n", "time": "time", "within": "1m"}}],
        sink=HookedSink(table=unique),
    )
    with start(chosen, once=True) as running:
        assert running.wait(240)
        progress = running.progress()
    assert sorted(HookedSink.kept[unique]) == list(range(4, 10))
    assert (progress.lost, progress.rows) == (4, 6)
