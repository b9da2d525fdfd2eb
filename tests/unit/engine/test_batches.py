"""The order of things in a batch: hooks, commit, write, progress; over a log in memory, without Spark."""

from __future__ import annotations

from pathlib import Path
from threading import Event, Thread
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.engine.epochs import begin, plan_batch
from tests.unit.engine.fake_sink import FakeSink
from tests.unit.engine.memory_log import MemoryLog

from penstock.config.log_fields import deployments_named
from penstock.config.logs import event_logger
from penstock.engine.batch_writing import Writing
from penstock.engine.batches import BatchLoop, StopRequestedError
from penstock.engine.claims import Claims, Writers
from penstock.engine.counting import Failures, Written
from penstock.engine.loop import Hooks
from penstock.engine.phases import batch_phases, ended_phases
from penstock.engine.progress import Done, Progress
from penstock.engine.resumption import Stamp
from penstock.engine.stateful.plan import plan_of
from penstock.engine.topic_watcher import TopicWatcher
from penstock.errors import TransientError
from penstock.pipeline import Batch, Mark, Opening, Pipeline

P0, P1 = ("t", 0), ("t", 1)
ROWS: Any = SimpleNamespace(sparkSession=None)


class World:
    """A loop over a log in memory, and the calls in their order."""

    def __init__(self, folder: Path, trace: Any = None, **definition: Any) -> None:
        self.calls: list[Any] = []
        self.log = MemoryLog({P0: 10, P1: 10})
        self.epoch = begin(folder).new(7, {P0: 0, P1: 0}, self.log.topic_ids({"t"}))
        self.fails: Exception | None = None
        self.bad = 0
        pipeline = Pipeline(
            name="p",
            connection={"bootstrap.servers": "nowhere:1"},
            **{"source": {"kafka": "t"}, "sink": FakeSink(calls=self.calls)} | definition,
        )
        opening = Opening(None, "p", pipeline.connection, pipeline.delivery)  # type: ignore[arg-type]
        query: Any = lambda: None  # noqa: E731
        plan = plan_of(pipeline)
        watcher = TopicWatcher(
            pipeline, plan.sources, self.epoch, self.log, query, committed={}, seen_ends=dict
        )
        hooks = Hooks(
            lambda done: self.calls.append(("done", done.mark, done.position)),
            lambda: self.calls.append("before"),
            trace,
        )
        self.loop = BatchLoop(
            pipeline,
            plan,
            pipeline.connection,  # type: ignore[arg-type]
            self.epoch,
            watcher=watcher,
            progress=Progress("p"),
            query=query,
            claims=Claims(pipeline, Writers.open(pipeline, opening)),
            hooks=hooks,
        )
        self.loop._writing = SimpleNamespace(run=self.write)  # type: ignore[assignment]
        self.calls.clear()

    def write(self, batch: Batch) -> Written:
        offset = self.log.offsets.get(P0)
        self.calls.append(("write", batch.ranges, offset and offset.offset))
        if self.fails:
            raise self.fails
        return Written(5, Failures(self.bad), example="bad" if self.bad else None)

    def run(self, number: int, end: int) -> None:
        plan_batch(self.epoch, number, {P0: end, P1: end}, done=False)
        self.loop.run(ROWS, number)


def test_a_batch_is_written_then_committed_then_reported(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.run(0, 3)
    ranges, end = {P0: (0, 3), P1: (0, 3)}, {P0: 3, P1: 3}
    assert world.calls == ["before", ("write", ranges, None), ("done", Mark(7, 0, 0), end)]
    assert world.log.offsets[P0] == (3, Stamp(7, 0).text)
    progress = world.loop.progress
    assert (progress.batches, progress.records, progress.rows) == (1, 6, 5)
    assert progress.position == end


def test_at_most_once_commits_before_it_writes(tmp_path: Path) -> None:
    world = World(tmp_path, delivery="at-most-once")
    world.run(0, 3)
    assert world.calls[1] == ("write", {P0: (0, 3), P1: (0, 3)}, 3)


def test_a_pipeline_that_does_not_commit_leaves_the_group_alone(tmp_path: Path) -> None:
    world = World(tmp_path, commit=False, delivery="exactly-once")
    world.run(0, 3)
    assert world.log.offsets == {}


def test_only_the_first_batch_after_a_start_may_be_a_repetition(tmp_path: Path) -> None:
    world = World(tmp_path)
    repeats: list[bool] = []
    write = world.write
    world.loop._writing.run = lambda batch: (repeats.append(batch.may_repeat), write(batch))[1]  # type: ignore[method-assign,assignment]
    world.run(0, 3)
    world.run(1, 5)
    assert repeats == [True, False]


def test_a_batch_that_fails_commits_nothing_and_keeps_its_error(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.fails = TransientError("away")
    with pytest.raises(TransientError):
        world.run(0, 3)
    assert world.log.offsets == {}
    assert world.loop.error is world.fails
    assert world.loop.progress.batches == 0


class Trace:
    """Notes the batches that it receives."""

    def __init__(self) -> None:
        self.batches: list[tuple[Mark, str]] = []
        self.phases: list[list[tuple[str, bool]]] = []

    def done(self, done: Done) -> None:
        self._note(done.mark, "done")

    def failed(self, mark: Mark, seconds: float, error: BaseException) -> None:
        assert seconds >= 0
        self._note(mark, str(error))

    def _note(self, mark: Mark, text: str) -> None:
        self.batches.append((mark, text))
        self.phases.append([(each.name, each.failed) for each in ended_phases()])


def test_batches_that_end_or_fail_are_traced(tmp_path: Path) -> None:
    trace = Trace()
    world = World(tmp_path, trace)
    world.run(0, 3)
    world.fails = TransientError("away")
    with pytest.raises(TransientError):
        world.run(1, 5)
    world.loop.stop()
    with pytest.raises(StopRequestedError):
        world.loop.run(ROWS, 1)

    assert trace.batches == [(Mark(7, 0, 0), "done"), (Mark(7, 1, 0), "away")]
    ended = [("plan", False), ("commit", False), ("report", False)]
    assert trace.phases == [ended, [("plan", False)]]


def test_rows_and_dead_letters_of_a_batch_are_phases_of_it() -> None:
    writing: Any = object.__new__(Writing)
    writing._whole_or_in_parts = lambda _batch: Written(5, Failures(1))
    batch: Any = None

    def fail(*_given: object) -> str:
        raise TransientError("away")

    writing._write_dead_letters = fail
    with batch_phases(), pytest.raises(TransientError):
        try:
            writing.run(batch)
        finally:
            phases = [(each.name, each.failed) for each in ended_phases()]
    assert (phases, ended_phases()) == ([("write", False), ("dead_letters", True)], ())


def test_events_of_a_batch_have_its_number_and_in_a_worker_the_deployment(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Jobs of other tests may have left a worker in this process.
    monkeypatch.setattr("penstock.config.log_fields._workers", 0)
    caplog.set_level("DEBUG", "penstock")
    world = World(tmp_path)
    world.run(0, 3)
    write = world.write

    def write_and_log(batch: Batch) -> Written:
        event_logger("penstock.sinks.x").warning("slow_table", table="t")
        return write(batch)

    world.loop._writing.run = write_and_log  # type: ignore[method-assign]
    world.fails = TransientError("away")
    with deployments_named(), pytest.raises(TransientError):
        world.run(1, 5)
    event_logger("penstock.x").warning("outside")

    def fields(event: str) -> list[Any]:
        (record,) = [each for each in caplog.records if each.getMessage() == event]
        return [getattr(record, name, None) for name in ("pipeline", "deployment", "batch")]

    assert fields("batch_done") == ["p", None, 0]
    assert fields("slow_table") == ["p", "p", 1]
    assert fields("batch_failed") == ["p", "p", 1]
    assert fields("outside") == [None, None, None]


def test_bad_records_are_counted_with_an_example(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.bad = 2
    world.run(0, 3)
    progress = world.loop.progress
    assert (progress.failed, progress.last_error) == (2, "bad")


def test_no_batch_begins_after_a_stop(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.loop.stop()
    with pytest.raises(StopRequestedError):
        world.run(0, 3)
    assert world.calls == []
    assert world.loop.ended_between
    assert world.loop.error is None


def test_a_stop_waits_for_the_batch_that_runs(tmp_path: Path) -> None:
    world = World(tmp_path)
    begun, goes_on, stopped = Event(), Event(), Event()
    write = world.write

    def slow(batch: Batch) -> Written:
        begun.set()
        goes_on.wait(30)
        return write(batch)

    world.loop._writing.run = slow  # type: ignore[method-assign,assignment]
    running = Thread(target=world.run, args=(0, 3))
    running.start()
    begun.wait(30)
    stopping = Thread(target=lambda: (world.loop.stop(), stopped.set()))
    stopping.start()
    assert not stopped.is_set()
    assert world.loop.check_topics() is False  # and nothing is asked of the topics meanwhile
    goes_on.set()
    running.join(30)
    assert stopped.wait(30)
    assert world.loop.progress.batches == 1


def test_a_topic_that_was_recreated_between_two_batches_ends_the_epoch(tmp_path: Path) -> None:
    world = World(tmp_path, source={"kafka": {"topics": "t", "on_data_loss": "skip"}})
    world.run(0, 10)
    assert world.loop.check_topics() is False
    world.log.recreate("t", 2)
    assert world.loop.check_topics() is True
    assert world.loop.recreated == {"t"}
