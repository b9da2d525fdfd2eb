"""Real-time mode: what Spark notes is committed to the group; over a log in memory, without Spark."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.engine.epochs import begin, plan_batch
from tests.unit.engine.memory_log import MemoryLog

from penstock.engine.checkpoint import Epoch
from penstock.engine.loop import Hooks
from penstock.engine.progress import Done, Progress
from penstock.engine.realtime import RealTimeMonitor, require_slots
from penstock.engine.resumption import Stamp
from penstock.errors import ConfigError
from penstock.pipeline import Pipeline
from penstock.testing import eventually

P0, P1 = ("t", 0), ("t", 1)


class Query:
    """A query that runs until it is stopped."""

    isActive = True  # noqa: N815 - Spark's name

    def stop(self) -> None:
        self.isActive = False


@pytest.fixture
def log() -> MemoryLog:
    return MemoryLog({P0: 10, P1: 10})


@pytest.fixture
def epoch(tmp_path: Path, log: MemoryLog) -> Epoch:
    return begin(tmp_path).new(7, {P0: 0, P1: 0}, log.topic_ids({"t"}))


def monitor(log: MemoryLog, epoch: Epoch, hooks: Hooks | None = None, **more: Any) -> Any:
    pipeline = Pipeline(
        name="p",
        connection={"bootstrap.servers": "nowhere:1"},
        source={"kafka": "t"},
        decode="text",
        sink={"kafka": "out"},
        **more,
    )
    return RealTimeMonitor(pipeline, epoch, log, Progress("p"), hooks or Hooks())


def test_each_note_of_spark_is_committed_with_its_stamp_and_counted(
    log: MemoryLog, epoch: Epoch
) -> None:
    done: list[Done] = []
    follows = monitor(log, epoch, Hooks(done.append))
    query: Any = Query()
    follows.follow(query)
    plan_batch(epoch, 0, {P0: 4, P1: 0})
    plan_batch(epoch, 1, {P0: 5, P1: 6})
    eventually(lambda: len(done) == 2, 30)
    query.stop()
    follows.join()

    assert log.offsets[P1] == (6, Stamp(7, 1).text)
    assert [(each.mark, each.records) for each in done] == [((7, 0, 0), 4), ((7, 1, 0), 7)]
    assert (follows.progress.batches, follows.progress.records) == (2, 11)


def test_it_goes_on_after_the_last_note(log: MemoryLog, epoch: Epoch) -> None:
    plan_batch(epoch, 0, {P0: 4, P1: 0})
    plan_batch(epoch, 1, {P0: 9, P1: 0}, done=False)
    follows = monitor(log, epoch)
    assert follows.progress.position == {P0: 4, P1: 0}
    assert follows.last_id == -1
    assert (follows.ended_between, follows.recreated, follows.check_topics()) == (
        False,
        set(),
        False,
    )


def test_a_failure_of_a_hook_ends_the_query_and_is_kept(log: MemoryLog, epoch: Epoch) -> None:
    wrong = RuntimeError("the store is full")

    def fail(_: Done) -> None:
        raise wrong

    follows = monitor(log, epoch, Hooks(fail))
    query: Any = Query()
    plan_batch(epoch, 0, {P0: 4, P1: 0})
    follows.follow(query)
    follows.join()
    assert follows.error is wrong
    assert not query.isActive


def test_partitions_without_a_slot_are_refused_with_what_to_do() -> None:
    spark: Any = SimpleNamespace(sparkContext=SimpleNamespace(defaultParallelism=2))
    pipeline: Any = SimpleNamespace(name="p")
    require_slots(pipeline, spark, 2)
    with pytest.raises(ConfigError, match=r"3 partitions .* Spark has 2: .*local\[3\]"):
        require_slots(pipeline, spark, 3)
