"""What a batch takes of topics that come and go, and what is lost with them, over a log in memory."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.engine.epochs import begin, plan_batch
from tests.unit.engine.memory_log import MemoryLog

from penstock.engine.checkpoint import Epoch
from penstock.engine.resumption import Stamp
from penstock.engine.topic_watcher import MovedError, TopicWatcher
from penstock.errors import DataLossError
from penstock.pipeline import Batch, Pipeline

P0, P1, OTHER = ("t", 0), ("t", 1), ("other", 0)
START = {P0: 0, P1: 0, OTHER: 0}


@pytest.fixture
def log() -> MemoryLog:
    return MemoryLog({P0: 10, P1: 10, OTHER: 10})


@pytest.fixture
def epoch(tmp_path: Path, log: MemoryLog) -> Epoch:
    return begin(tmp_path).new(7, START, log.topic_ids({"t", "other"}))


def following(log: MemoryLog, epoch: Epoch, loss: str = "skip", **more: Any) -> TopicWatcher:
    pipeline = Pipeline(
        name="p",
        connection={"bootstrap.servers": "nowhere:1"},
        source={"kafka": {"topics": "t, other", "on_data_loss": loss}},
        sink="discard",
    )
    given: dict[str, Any] = {"committed": {}, "seen_ends": dict} | more
    return TopicWatcher(pipeline, [pipeline.source], epoch, log, lambda: None, **given)  # type: ignore[arg-type,return-value]


def batch(moved: TopicWatcher, number: int = 0, **more: Any) -> Batch:
    ranges = moved.plan(number).ranges
    rows: Any = SimpleNamespace(sparkSession=None)
    return Batch(rows, "p", 7, number, connection=None, ranges=ranges, **more)  # type: ignore[arg-type]


def test_a_batch_takes_what_spark_planned_of_topics_that_are_there(
    log: MemoryLog, epoch: Epoch
) -> None:
    plan_batch(epoch, 0, {P0: 5, P1: 0, OTHER: 7}, done=False)
    taken = following(log, epoch).plan(0)
    assert taken.ranges == {P0: (0, 5), P1: (0, 0), OTHER: (0, 7)}
    assert (taken.lost, taken.differs) == ([], False)


def test_a_partition_that_is_new_begins_at_its_oldest_record_also_when_the_batch_is_run_again(
    log: MemoryLog, epoch: Epoch
) -> None:
    added = ("t", 2)
    log.ends[added], log.starts[added] = 9, 4
    plan_batch(epoch, 0, {**START, added: 9}, done=False)
    assert following(log, epoch).plan(0).ranges[added] == (4, 9)
    log.starts[added] = 6
    assert following(log, epoch).plan(0).ranges[added] == (4, 9)


def test_what_was_not_read_of_a_topic_that_is_gone_is_lost_once(
    log: MemoryLog, epoch: Epoch
) -> None:
    plan_batch(epoch, 0, {P0: 5, P1: 5, OTHER: 7}, done=False)
    moved = following(log, epoch)
    log.delete("other")
    taken = moved.plan(0)
    assert taken.ranges.keys() == {P0, P1}
    assert [(loss.partition, loss.records) for loss in taken.lost] == [(OTHER, 7)]
    assert taken.differs
    assert moved.plan(0).lost == []


def test_a_pipeline_that_may_not_skip_refuses_to_go_on_without_it(
    log: MemoryLog, epoch: Epoch
) -> None:
    plan_batch(epoch, 0, {P0: 5, P1: 5, OTHER: 7}, done=False)
    moved = following(log, epoch, loss="fail")
    log.delete("other")
    with pytest.raises(DataLossError, match="other-0"):
        moved.plan(0)


def test_a_topic_that_is_recreated_is_noticed_between_two_batches(
    log: MemoryLog, epoch: Epoch
) -> None:
    moved = following(log, epoch, seen_ends=lambda: {OTHER: 9})
    log.recreate("other", 1)
    assert [loss.records for loss in moved.check({P0: 0, P1: 0, OTHER: 3})] == [6]
    assert moved.recreated == {"other"}


def test_a_batch_during_which_a_topic_was_recreated_is_run_again(
    log: MemoryLog, epoch: Epoch
) -> None:
    plan_batch(epoch, 0, {P0: 5, P1: 5, OTHER: 7}, done=False)
    moved = following(log, epoch)
    running = batch(moved)
    log.recreate("other", 1)
    with pytest.raises(MovedError, match="'other'"):
        moved.after(running)


def test_records_that_spark_skipped_are_counted_where_they_are_missing(
    log: MemoryLog, epoch: Epoch
) -> None:
    plan_batch(epoch, 0, {P0: 5, P1: 5, OTHER: 7}, done=False)
    moved = following(log, epoch)
    running = batch(moved)
    log.starts[P0] = 3
    log.skips = 3
    assert [(loss.partition, loss.records) for loss in moved.after(running)] == [(P0, 3)]


def test_of_a_batch_that_was_committed_before_nothing_is_missing(
    log: MemoryLog, epoch: Epoch
) -> None:
    plan_batch(epoch, 0, {P0: 5, P1: 5, OTHER: 7}, done=False)
    moved = following(log, epoch, committed={P0: 5, P1: 5, OTHER: 7})
    running = batch(moved, may_repeat=True)
    log.starts[P0] = 3
    log.skips = 3
    assert moved.after(running) == []


def test_a_range_is_read_from_its_oldest_record(log: MemoryLog, epoch: Epoch) -> None:
    log.starts[P0] = 4
    ranges, lost = following(log, epoch).from_oldest({P0: (2, 8), P1: (0, 3)})
    assert ranges == {P0: (4, 8), P1: (0, 3)}
    assert [(loss.partition, loss.records) for loss in lost] == [(P0, 2)]


def test_the_end_of_a_batch_is_committed_with_its_stamp(log: MemoryLog, epoch: Epoch) -> None:
    following(log, epoch).commit({P0: 5, ("gone", 0): 3}, 2)
    assert log.offsets == {P0: (5, Stamp(7, 2).text)}
