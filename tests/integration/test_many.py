"""Several pipelines in one engine: each with its own share, its own failures and its own life."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import pyarrow.parquet as pq
import pytest

from penstock import Connection, Running, State, start
from penstock.engine import spark_session
from penstock.pipeline import Step
from penstock.testing import eventually, fill

POOL = "spark.scheduler.pool"
PATIENCE = 120.0


class Seen(Step):
    """Takes note of the pool in which its batch runs."""

    name = "seen"
    pools: list[Any]

    def apply(self, rows: Any) -> Any:
        self.pools.append(rows.sparkSession.sparkContext.getLocalProperty(POOL))
        return rows


def numbers(first: int, until: int) -> list[dict[str, Any]]:
    return [{"n": n} for n in range(first, until)]


@pytest.fixture
def make(pipeline: Any, topic: Any, unique: str, tmp_path: Any) -> Any:
    def one(number: int, *steps: Any, **options: Any) -> Any:
        return pipeline(
            name=f"{unique}-{number}",
            source={"kafka": topic(str(number))},
            decode={"json": {"schema": "n bigint"}},
            steps=list(steps),
            sink={"files": str(tmp_path / str(number))},
            **options,
        )

    return one


def kept(folder: Any) -> list[int]:
    return sorted(pq.read_table(folder).column("n").to_pylist())


def test_each_batch_runs_in_a_pool_of_its_own(
    connection: Connection, topic: Any, make: Any
) -> None:
    seen = Seen(pools=[])
    with ExitStack() as stack:
        for number in (1, 2):
            fill(connection, topic(str(number)), numbers(0, 3))
            running = stack.enter_context(start(make(number, seen)))
            eventually(lambda one=running: one.progress().rows == 3, PATIENCE)
    pools = {pool for pool in seen.pools if pool}
    assert len(pools) == 2, "a pool is a turn: names of pipelines would decide who comes first"
    assert spark_session().sparkContext.getLocalProperty(POOL) is None


def test_one_fails_one_is_changed_and_the_others_go_on(
    connection: Connection, topic: Any, make: Any, tmp_path: Any
) -> None:
    for number in range(3):
        fill(connection, topic(str(number)), numbers(0, 5))
    broken = make(0, {"sql": "SELECT raise_error('broken') AS n FROM rows"}, max_refused=0)
    with ExitStack() as stack:
        failing: Running = stack.enter_context(start(broken.model_copy(update={"restart": once()})))
        changed: Running = stack.enter_context(start(make(1)))
        steady: Running = stack.enter_context(start(make(2)))
        eventually(lambda: failing.progress().state is State.FAILED, PATIENCE)
        eventually(lambda: changed.progress().rows == 5 == steady.progress().rows, PATIENCE)
        changed.stop()
        for number in (1, 2):
            fill(connection, topic(str(number)), numbers(5, 10))
        again = stack.enter_context(start(make(1, {"sql": "SELECT -n AS n FROM rows"})))
        eventually(lambda: again.progress().rows == 5 and steady.progress().rows == 10, PATIENCE)
        assert steady.progress().restarts == 0
        assert steady.is_active
        assert not failing.is_active

    assert kept(tmp_path / "1") == [*range(-9, -4), *range(5)]
    assert kept(tmp_path / "2") == list(range(10))


def once() -> Any:
    from penstock.pipeline.definition import Restart

    return Restart(limit=0)
