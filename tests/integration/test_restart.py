"""A pipeline that fails is restarted: without a limit while a system is away, else a few times."""

from __future__ import annotations

from typing import Any, ClassVar

import psutil
import pytest
from tests.services.outage import stay_away

from penstock import Admin, Broker, Connection, State, start
from penstock.engine import session, spark_session
from penstock.errors import PipelineFailedError, TransientError
from penstock.pipeline import Batch, Opening, Sink, Writer
from penstock.testing import eventually, fill


class WeakSink(Sink):
    """A list of rows that fails for a while, with the given error."""

    name = "weak"
    table: str
    fails: int
    away: bool = True
    tries: ClassVar[dict[str, int]] = {}
    kept: ClassVar[dict[str, list[int]]] = {}

    def open(self, opening: Opening) -> Writer:
        return WeakWriter(self, opening)


class WeakWriter(Writer[WeakSink]):
    def write(self, batch: Batch) -> None:
        sink, table = self.sink, self.sink.table
        tried = sink.tries[table] = sink.tries.get(table, 0) + 1
        rows = batch.rows.toArrow().column("n").to_pylist()
        if tried <= sink.fails:
            raise TransientError("no table today") if sink.away else RuntimeError("broken")
        sink.kept.setdefault(table, []).extend(rows)


def definition(pipeline: Any, topic: str, sink: Sink, **options: Any) -> Any:
    quick = {"restart": {"wait": "50ms", "longest": "200ms", "limit": 3}}
    return pipeline(
        source={"kafka": topic},
        decode={"json": {"schema": "n int"}},
        sink=sink,
        **(quick | options),
    )


def test_a_sink_that_is_away_is_waited_for_and_nothing_is_lost(
    connection: Connection, topic: Any, pipeline: Any, unique: str
) -> None:
    fill(connection, topic(), [{"n": n} for n in range(10)])
    slow = {"restart": {"wait": "2s"}}
    sink = WeakSink(table=unique, fails=2)
    with start(definition(pipeline, topic(), sink, **slow)) as running:
        waiting = eventually(
            lambda: (p := running.progress()).state is State.RETRYING and p, timeout=120
        )
        assert waiting.last_error == "no table today"
        done = eventually(lambda: (p := running.progress()).rows == 10 and p, timeout=120)
    assert (done.state, done.restarts, done.batches, done.last_error) == (State.RUNNING, 2, 1, None)
    assert sorted(WeakSink.kept[unique]) == list(range(10))


def test_another_failure_is_tried_again_up_to_the_limit_and_the_reason_stays(
    connection: Connection, topic: Any, pipeline: Any, unique: str
) -> None:
    fill(connection, topic(), [{"n": 1}])
    sink = WeakSink(table=unique, fails=100, away=False)
    with start(definition(pipeline, topic(), sink)) as running:
        with pytest.raises(PipelineFailedError, match="RuntimeError: broken"):
            running.wait(240)
        found = running.progress()
    assert (found.state, found.restarts) == (State.FAILED, 3)
    assert "RuntimeError: broken" in str(found.last_error)
    assert WeakSink.tries[unique] == 4


def test_a_run_that_ends_by_itself_is_not_started_again_after_a_failure(
    connection: Connection, topic: Any, pipeline: Any, unique: str
) -> None:
    fill(connection, topic(), [{"n": 1}])
    sink = WeakSink(table=unique, fails=1, away=False)
    with (
        start(definition(pipeline, topic(), sink), once=True) as running,
        pytest.raises(PipelineFailedError, match="broken"),
    ):
        running.wait(120)
    assert WeakSink.tries[unique] == 1


def test_a_stop_while_it_waits_ends_at_once_and_is_no_failure(
    connection: Connection, topic: Any, pipeline: Any, unique: str
) -> None:
    fill(connection, topic(), [{"n": 1}])
    sink = WeakSink(table=unique, fails=100)
    patient = {"restart": {"wait": "1h", "longest": "1h"}}
    running = start(definition(pipeline, topic(), sink, **patient))
    eventually(lambda: running.progress().state is State.RETRYING, timeout=120)
    running.stop()
    assert running.progress().state is State.STOPPED
    assert running.wait(0)


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_a_broker_that_goes_away_is_waited_for(pipeline: Any, unique: str) -> None:
    with Broker() as broker:
        fill(broker.connection, unique, [{"n": n} for n in range(5)])
        sink = WeakSink(table=unique, fails=0)
        chosen = definition(pipeline, unique, sink, connection=broker.connection)
        with start(chosen) as running:
            eventually(lambda: running.progress().rows == 5, timeout=300)
            broker.kill()
            eventually(lambda: running.progress().state is State.RETRYING, timeout=300)
            stay_away()
            broker.restart()
            fill(broker.connection, unique, [{"n": n} for n in range(5, 10)])
            eventually(lambda: running.progress().rows == 10, timeout=300)
        with Admin(broker.connection) as admin:
            assert admin.committed(unique) == {(unique, 0): 10}
    assert sorted(WeakSink.kept[unique]) == list(range(10))


@pytest.mark.slow
def test_sparks_java_process_may_die_and_is_started_again(
    connection: Connection, topic: Any, pipeline: Any, unique: str
) -> None:
    fill(connection, topic(), [{"n": n} for n in range(5)])
    with start(definition(pipeline, topic(), WeakSink(table=unique, fails=0))) as running:
        eventually(lambda: running.progress().rows == 5, timeout=120)
        assert session._jvm is not None
        psutil.Process(session._jvm.process.pid).kill()
        fill(connection, topic(), [{"n": n} for n in range(5, 10)])
        # The last batch may come once more: Spark had perhaps not noted it as done yet.
        eventually(lambda: set(WeakSink.kept[unique]) == set(range(10)), 180)
        eventually(lambda: running.progress().state is State.RUNNING)
        assert running.progress().restarts == 1
    assert spark_session().range(3).count() == 3


@pytest.mark.slow
def test_spark_that_was_ended_from_outside_is_started_again() -> None:
    context: Any = spark_session().sparkContext._jsc
    context.sc().stop()  # as a cluster does that ends an application

    assert spark_session().range(3).count() == 3
