"""What of a pipeline runs on Spark's stream, and what on each batch."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.engine.stateful.plan import plan_of
from penstock.errors import ConfigError
from penstock.pipeline import Pipeline

SQL = {"sql": "SELECT * FROM rows"}
AGGREGATE = {
    "aggregate": {
        "time": "at",
        "window": "1m",
        "by": "symbol",
        "late": "30s",
        "values": {"trades": "count(*)"},
    }
}
DEDUPLICATE = {"deduplicate": {"by": "symbol", "time": "at", "within": "2m"}}


def pipeline(*steps: Any) -> Pipeline:
    return Pipeline(
        name="p",
        connection={"bootstrap.servers": "nowhere:1"},
        source={"kafka": "trades"},
        decode={"json": {"schema": "symbol string, size bigint, at timestamp"}},
        steps=list(steps),
        sink="discard",
    )


def names(steps: Any) -> list[str]:
    return [bound.step.name for bound in steps]


def test_without_state_every_step_belongs_to_the_batch() -> None:
    plan = plan_of(pipeline(SQL, SQL))
    assert (names(plan.stream), names(plan.batch)) == ([], ["sql", "sql"])
    assert (plan.before, plan.output_mode, plan.delay) == (0, "append", 0.0)


def test_everything_up_to_the_last_step_with_state_is_part_of_the_stream() -> None:
    plan = plan_of(pipeline(SQL, DEDUPLICATE, AGGREGATE, SQL))
    (branch,) = plan.branches
    assert names(branch.steps) == ["sql"]
    assert names(plan.stream) == ["deduplicate", "aggregate"]
    assert names(plan.batch) == ["sql"]
    assert (plan.before, plan.delay) == (3, 120.0)
    assert branch.time == "at"


def test_each_step_is_bound_once_by_the_run() -> None:
    bound: list[str] = []

    def bind(step: Any) -> Any:
        bound.append(step.name)
        return step.bind()

    plan_of(pipeline(SQL, AGGREGATE), bind)
    assert bound == ["sql", "aggregate"]


def test_a_topic_on_both_sides_of_a_join_is_refused() -> None:
    join = {
        "join": {
            "source": {"kafka": "trades"},
            "decode": {"json": {"schema": "symbol string, at timestamp"}},
            "by": "symbol",
            "time": "at",
            "other_time": "at",
            "after": "1m",
            "late": "30s",
        }
    }
    joined = pipeline(join)
    with pytest.raises(ConfigError, match="'trades' is read by both sides of a join"):
        plan_of(joined)
