"""Where a pipeline starts and goes on, over a log in memory and a checkpoint on disk."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.engine.epochs import begin, plan_batch
from tests.unit.engine.memory_log import MemoryLog

from penstock.engine.checkpoint import Checkpoint
from penstock.engine.claims import Claims, Writers
from penstock.engine.resuming import Resuming, Resumption
from penstock.engine.resumption import STARTS_OVER, Stamp
from penstock.errors import ConfigError, DataLossError, GroupInUseError
from penstock.pipeline import CLAIMED, Opening, Pipeline
from penstock.pipeline.source_log import CommittedOffset

P0, P1 = ("t", 0), ("t", 1)
SPARK: Any = SimpleNamespace(sparkContext=SimpleNamespace(master="local[*]"))


@pytest.fixture
def log() -> MemoryLog:
    return MemoryLog({P0: 10, P1: 20})


@pytest.fixture
def checkpoint(tmp_path: Path) -> Checkpoint:
    return begin(tmp_path)


def find(log: MemoryLog, checkpoint: Checkpoint, **source: Any) -> Resumption:
    pipeline = Pipeline(
        name="p",
        connection={"bootstrap.servers": "nowhere:1"},
        source={"kafka": {"topics": "t", **source}},
        sink="discard",
    )
    opening = Opening(SPARK, "p", pipeline.connection)  # type: ignore[arg-type]
    claims = Claims(pipeline, Writers.open(pipeline, opening))
    return Resuming(checkpoint, pipeline, [pipeline.source], log, lambda _: claims).find()


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        ("earliest", {P0: 3, P1: 0}),
        ("latest", {P0: 10, P1: 20}),
        ({"timestamp": 15}, {P0: 10, P1: 15}),
        ({"offsets": {"t": {0: 7}}}, {P0: 7, P1: 0}),
    ],
)
def test_the_first_start_is_where_the_source_says(
    log: MemoryLog, checkpoint: Checkpoint, start: Any, expected: Any
) -> None:
    log.starts[P0] = 3
    found = find(log, checkpoint, start=start)
    assert found.epoch.start() == expected


def test_the_first_start_is_at_the_offsets_of_the_group_where_it_has_some(
    log: MemoryLog, checkpoint: Checkpoint
) -> None:
    log.offsets[P1] = CommittedOffset(4, "")
    assert find(log, checkpoint).epoch.start() == {P0: 0, P1: 4}


def test_a_start_at_committed_offsets_is_refused_where_there_are_none(
    log: MemoryLog, checkpoint: Checkpoint
) -> None:
    log.offsets[P1] = CommittedOffset(4, "")
    with pytest.raises(ConfigError, match="no offset for t-0;"):
        find(log, checkpoint, start="committed")


def test_the_start_of_an_epoch_is_committed_with_its_stamp(
    log: MemoryLog, checkpoint: Checkpoint
) -> None:
    found = find(log, checkpoint)
    stamp = Stamp(found.epoch.number, CLAIMED)
    assert log.offsets == {P0: (0, stamp.text), P1: (0, stamp.text)}


def test_an_epoch_goes_on_after_a_batch_that_is_done(
    log: MemoryLog, checkpoint: Checkpoint
) -> None:
    first = find(log, checkpoint)
    plan_batch(first.epoch, 0, {P0: 5, P1: 5})
    log.commit({P0: 5, P1: 5}, Stamp(first.epoch.number, 0).text)
    again = find(log, checkpoint)
    assert again.epoch.number == first.epoch.number
    assert again.committed == {P0: 5, P1: 5}


def test_a_group_that_a_person_moved_begins_an_epoch_there(
    log: MemoryLog, checkpoint: Checkpoint
) -> None:
    first = find(log, checkpoint)
    plan_batch(first.epoch, 0, {P0: 5, P1: 5})
    log.commit({P0: 2, P1: 5}, "")
    again = find(log, checkpoint)
    assert again.epoch.number > first.epoch.number
    assert again.epoch.start() == {P0: 2, P1: 5}


@pytest.mark.parametrize(
    ("start", "expected"), [("earliest", {P0: 3, P1: 0}), ("latest", {P0: 10, P1: 20})]
)
def test_offsets_that_were_taken_away_begin_an_epoch_where_the_source_says(
    log: MemoryLog, checkpoint: Checkpoint, start: str, expected: Any
) -> None:
    first = find(log, checkpoint, start=start)
    plan_batch(first.epoch, 0, {P0: 5, P1: 5})
    log.starts[P0] = 3
    log.commit({P0: 5, P1: 5}, STARTS_OVER)
    again = find(log, checkpoint, start=start)
    assert again.epoch.number > first.epoch.number
    assert again.epoch.start() == expected
    assert {each.metadata for each in log.offsets.values()} == {Stamp(again.epoch.number, -1).text}


def test_the_other_partitions_of_one_that_starts_over_go_on(
    log: MemoryLog, checkpoint: Checkpoint
) -> None:
    first = find(log, checkpoint)
    plan_batch(first.epoch, 0, {P0: 5, P1: 5})
    log.commit({P0: 5, P1: 5}, Stamp(first.epoch.number, 0).text)
    log.commit({P1: 0}, STARTS_OVER)
    assert find(log, checkpoint).epoch.start() == {P0: 5, P1: 0}


def test_offsets_that_were_taken_away_are_missing_for_a_source_that_needs_some(
    log: MemoryLog, checkpoint: Checkpoint
) -> None:
    log.commit({P0: 2, P1: 2}, "")
    first = find(log, checkpoint, start="committed")
    plan_batch(first.epoch, 0, {P0: 5, P1: 5})
    log.commit({P0: 0, P1: 0}, STARTS_OVER)
    with pytest.raises(ConfigError, match="the group has no offset for t-0, t-1"):
        find(log, checkpoint, start="committed")


def test_a_topic_that_was_recreated_is_read_from_its_beginning(
    log: MemoryLog, checkpoint: Checkpoint
) -> None:
    first = find(log, checkpoint, on_data_loss="skip")
    plan_batch(first.epoch, 0, {P0: 5, P1: 5})
    log.recreate("t", partitions=3)
    log.ends[P0] = 2
    again = find(log, checkpoint, on_data_loss="skip")
    assert again.epoch.number > first.epoch.number
    assert again.epoch.start() == {P0: 0, P1: 0, ("t", 2): 0}


def test_records_that_were_removed_unread_are_refused_or_counted(
    log: MemoryLog, checkpoint: Checkpoint
) -> None:
    first = find(log, checkpoint)
    plan_batch(first.epoch, 0, {P0: 5, P1: 5})
    log.commit({P0: 5, P1: 5}, Stamp(first.epoch.number, 0).text)
    log.starts[P0] = 8
    with pytest.raises(DataLossError, match="3 records were removed"):
        find(log, checkpoint)
    assert find(log, checkpoint, on_data_loss="skip").epoch.number == first.epoch.number


def test_consumers_in_the_group_are_noticed_before_anything_is_written(
    log: MemoryLog, checkpoint: Checkpoint
) -> None:
    first = find(log, checkpoint)
    plan_batch(first.epoch, 0, {P0: 5, P1: 5})
    log.commit({P0: 5, P1: 5}, Stamp(first.epoch.number, 0).text)
    log.members = ["intruder"]
    with pytest.raises(GroupInUseError, match="intruder"):
        find(log, checkpoint)
