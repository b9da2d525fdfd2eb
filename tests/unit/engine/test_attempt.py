"""The steps of an attempt: what fails in which of them, and what is closed then; without Spark."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.engine.memory_log import MemoryLog

from penstock.engine import attempt as module
from penstock.engine.attempt import Attempt
from penstock.engine.batches import StaleTableError
from penstock.engine.bindings import Bindings
from penstock.engine.loop import Hooks
from penstock.engine.progress import Progress
from penstock.engine.topic_watcher import MovedError
from penstock.errors import ConfigError, DataLossError, PipelineFailedError, TransientError
from penstock.pipeline import Pipeline
from penstock.sources.kafka import KafkaSource


class Closes(MemoryLog):
    """A log that notes that it was closed."""

    closed = False

    def close(self) -> None:
        self.closed = True


class FakeLoop:
    """A loop with the outcome that a test gives it."""

    def __init__(self, **outcome: Any) -> None:
        self.progress, self.error, self.last_id = Progress("p"), None, -1
        self.ended_between, self.recreated, self.stopped = False, set(), False
        self.lost: Exception | None = None
        vars(self).update(outcome)

    def check_topics(self) -> bool:
        if self.lost:
            raise self.lost
        return bool(self.recreated)

    def stop_soon(self) -> None:
        self.stopped = True

    def stop(self) -> None:
        self.stopped = True

    def join(self) -> None:
        """Nothing is left to commit."""


class FakeQuery:
    """A query that ended, with an exception or without one."""

    lastProgress = None  # noqa: N815 - Spark's name
    isActive = False  # noqa: N815
    stopped = False

    def __init__(self, error: Exception | None = None) -> None:
        self._error = error

    def exception(self) -> Exception | None:
        return self._error

    def awaitTermination(self, _seconds: float) -> bool:  # noqa: N802 - Spark's name
        return True

    def stop(self) -> None:
        self.stopped = True


@pytest.fixture(autouse=True)
def _without_java(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ended_with", lambda query: query.exception())


def attempt(folder: Path, **more: Any) -> Attempt:
    pipeline = Pipeline(
        name="p",
        connection={"bootstrap.servers": "nowhere:1"},
        source={"kafka": "t"},
        sink="discard",
    )
    given: Any = (pipeline, str(folder), Progress("p"), Hooks(), Bindings())
    return Attempt(*given, once=False, **more)


def launched(folder: Path, loop: FakeLoop, query: FakeQuery) -> Attempt:
    made = attempt(folder)
    made._loop = loop  # type: ignore[assignment]
    made._query.set(query)  # type: ignore[arg-type]
    return made


def test_making_an_attempt_starts_nothing(tmp_path: Path) -> None:
    made = attempt(tmp_path, held=5)
    assert made.held == 5
    assert made.seen_ends() == {}
    made.close()


def test_what_was_opened_is_closed_when_a_step_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = Closes({("t", 0): 1})
    monkeypatch.setattr(KafkaSource, "open_log", lambda *_: log)

    def no_spark(_: object) -> Any:
        raise ConfigError("Java is missing")

    monkeypatch.setattr(module, "spark_session", no_spark)
    with pytest.raises(ConfigError, match="Java is missing"):
        attempt(tmp_path).begin()
    assert log.closed


def test_the_steps_follow_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[Any] = []
    ready, resumption = object(), SimpleNamespace(epoch=None)
    made = attempt(tmp_path)
    monkeypatch.setattr(made, "_preflight", lambda: (steps.append("preflight"), ready)[1])
    monkeypatch.setattr(made, "_resume", lambda r: (steps.append(("resume", r)), resumption)[1])
    monkeypatch.setattr(made, "_launch", lambda *given: steps.append(("launch", *given)))
    made.begin()
    assert steps == ["preflight", ("resume", ready), ("launch", ready, resumption)]


def test_a_query_that_ended_as_it_should_has_no_error(tmp_path: Path) -> None:
    made = launched(tmp_path, FakeLoop(), FakeQuery())
    made.wait()
    assert made.error() is None


def test_the_error_of_python_is_raised_and_not_sparks_text_of_it(tmp_path: Path) -> None:
    own = TransientError("the database is away")
    made = launched(tmp_path, FakeLoop(error=own), FakeQuery(RuntimeError("Py4J text")))
    assert made.error() is own


@pytest.mark.parametrize("loop", [{"recreated": {"t"}}, {"error": StaleTableError()}])
def test_moved_topics_and_stale_tables_begin_another_attempt(
    tmp_path: Path, loop: dict[str, Any]
) -> None:
    made = launched(tmp_path, FakeLoop(**loop), FakeQuery())
    made.wait()
    assert isinstance(made.error(), MovedError)


def test_lost_records_end_the_query_and_are_the_reason(tmp_path: Path) -> None:
    loss, query = DataLossError("t-0 lost 5 records"), FakeQuery()
    made = launched(tmp_path, FakeLoop(lost=loss), query)
    made._check_topics()
    assert query.stopped
    assert made.error() is loss


def test_a_broker_that_is_away_while_topics_are_checked_ends_nothing(tmp_path: Path) -> None:
    query = FakeQuery()
    made = launched(tmp_path, FakeLoop(lost=TransientError("no broker")), query)
    made._check_topics()
    assert not query.stopped
    assert made.error() is None


def test_a_stop_between_two_batches_is_no_error(tmp_path: Path) -> None:
    ended = PipelineFailedError("StopRequestedError")
    loop, query = FakeLoop(ended_between=True), FakeQuery(ended)
    made = launched(tmp_path, loop, query)
    made.stop(1.0)
    assert (loop.stopped, query.stopped) == (True, True)
    assert made.error() is None


def test_ends_of_recreated_topics_are_not_passed_on(tmp_path: Path) -> None:
    query = FakeQuery()
    query.lastProgress = SimpleNamespace(  # type: ignore[assignment]
        json='{"sources": [{"latestOffset": {"t": {"0": 7}, "u": {"1": 3}}}]}'
    )
    made = launched(tmp_path, FakeLoop(recreated={"t"}), query)
    assert made.seen_ends() == {("t", 0): 7, ("u", 1): 3}
    assert made.ends_for_the_next() == {("u", 1): 3}


def test_java_that_dies_after_the_query_has_ended_is_not_asked_again(tmp_path: Path) -> None:
    class GoneQuery(FakeQuery):
        @property
        def lastProgress(self) -> None:  # type: ignore[override]  # noqa: N802 - Spark's name
            raise ConnectionRefusedError

    made = launched(tmp_path, FakeLoop(recreated=set()), GoneQuery())
    made._seen = {("t", 0): 7}
    assert made.ends_for_the_next() == {("t", 0): 7}
