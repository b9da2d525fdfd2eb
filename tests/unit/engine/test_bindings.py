"""Steps of a run: bound once, used by all its attempts, and bound again after a new Java process."""

from __future__ import annotations

from typing import Any

from penstock.engine.bindings import Bindings
from penstock.engine.stateful.plan import plan_of
from penstock.pipeline import BoundStep, Pipeline, Step


class ReadingStep(Step):
    """Notes when what it read is released."""

    name = "reading"
    closed: list[str]

    def bind(self) -> BoundStep:
        return ReadTable(self)

    def mixes(self) -> str | None:
        return None


class ReadTable(BoundStep):
    step: ReadingStep
    stale = False

    def is_stale(self) -> bool:
        return self.stale

    def close(self) -> None:
        self.step.closed.append("closed")


def pipeline(*steps: Any) -> Pipeline:
    connection = {"bootstrap.servers": "nowhere:1"}
    return Pipeline(
        name="p", connection=connection, source={"kafka": "t"}, steps=steps, sink="discard"
    )


def test_attempts_share_what_a_step_read() -> None:
    step, bindings = ReadingStep(closed=[]), Bindings()
    bindings.use("java")
    first = plan_of(pipeline(step), bindings.bind)
    bindings.use("java")
    second = plan_of(pipeline(step), bindings.bind)
    assert first.batch[0] is second.batch[0]
    assert step.closed == []


def test_what_was_read_in_another_java_process_is_read_again() -> None:
    step, bindings = ReadingStep(closed=[]), Bindings()
    bindings.use("java")
    before = bindings.bind(step)
    bindings.use("another java")
    assert step.closed == ["closed"]
    assert bindings.bind(step) is not before


def test_two_steps_with_the_same_options_are_two() -> None:
    bindings = Bindings()
    one, other = ReadingStep(closed=[]), ReadingStep(closed=[])
    assert one == other
    assert bindings.bind(one) is not bindings.bind(other)


def test_all_steps_are_released_at_the_end() -> None:
    step, bindings = ReadingStep(closed=[]), Bindings()
    bindings.bind(step)
    bindings.close()
    bindings.close()
    assert step.closed == ["closed"]


def test_a_stale_table_on_the_stream_makes_the_plan_stale() -> None:
    keeper = {"deduplicate": {"time": "at", "by": "id", "within": "1m"}}
    plan = plan_of(pipeline(ReadingStep(closed=[]), keeper))
    (table,) = plan.branches[0].steps
    assert not plan.is_stale()
    table.stale = True  # type: ignore[attr-defined]
    assert plan.is_stale()
    assert not plan_of(pipeline(keeper, ReadingStep(closed=[]))).is_stale()
