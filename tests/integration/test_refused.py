"""Records that a step or the sink refuses go to the dead letters, alone; their neighbours arrive once."""

from __future__ import annotations

from collections.abc import Callable
from queue import Queue
from typing import Any, ClassVar

import pyarrow as pa
import pytest

from penstock import Admin, Connection, Running, State, memory_table, start
from penstock.errors import PipelineFailedError, RefusedError
from penstock.pipeline import EVERY_DELIVERY, Batch, Delivery, Mark, Opening, Sink, Writer
from penstock.testing import fill, read_all

BAD = {7, 8, 31}
ALL = range(40)


class PickySink(Sink):
    """Keeps numbers with their marks, as a database would, and refuses some."""

    name = "picky"
    delivers: ClassVar[frozenset[Delivery]] = EVERY_DELIVERY
    table: str
    bad: frozenset[int] = frozenset(BAD)
    # The write after which the process "dies", counted over all writes.
    dies_after: int = 0

    kept: ClassVar[dict[str, list[int]]] = {}
    marks: ClassVar[dict[str, Mark]] = {}
    writes: ClassVar[dict[str, int]] = {}
    # Called before each write, by table.
    watchers: ClassVar[dict[str, Callable[[Batch], None]]] = {}

    def open(self, opening: Opening) -> Writer:
        return PickyWriter(self, opening)


class PickyWriter(Writer[PickySink]):
    def write(self, batch: Batch) -> None:
        sink, table = self.sink, self.sink.table
        if watch := sink.watchers.get(table):
            watch(batch)
        numbers = batch.rows.toArrow().column("n").to_pylist()
        if batch.mark <= sink.marks.get(table, Mark(-1, 0, 0)):
            return
        if refused := sink.bad & set(numbers):
            raise RefusedError(f"no room for {min(refused)}")
        sink.kept.setdefault(table, []).extend(numbers)
        sink.marks[table] = batch.mark
        sink.writes[table] = sink.writes.get(table, 0) + 1
        if sink.writes[table] == sink.dies_after:
            raise RuntimeError("killed after the write")


def numbers(connection: Connection, topic: str) -> None:
    fill(connection, topic, [{"n": n} for n in ALL], partitions=2)


def letters(connection: Connection, pipeline: str) -> dict[bytes, dict[str, bytes]]:
    found = read_all(connection, f"{pipeline}.dead-letters")
    assert len({letter.value for letter in found}) == len(found)
    return {letter.value: dict(letter.headers) for letter in found}


def run_once(definition: Any) -> Any:
    with start(definition, once=True) as running:
        running.wait(240)
        return running.progress()


def values(bad: set[int]) -> set[bytes]:
    return {b'{"n":%d}' % n for n in bad}


def test_a_pipeline_runs_from_its_first_write_on_also_if_that_is_a_part_of_a_batch(
    connection: Connection, topic: Any, pipeline: Any, unique: str
) -> None:
    numbers(connection, topic())
    handle: Queue[Running] = Queue()
    states: list[State] = []

    def note_state(_: Batch) -> None:
        running = handle.get(timeout=60)
        states.append(running.progress().state)
        handle.put(running)

    PickySink.watchers[unique] = note_state
    definition = pipeline(
        source={"kafka": topic()},
        decode={"json": {"schema": "n int"}},
        sink=PickySink(table=unique, bad=frozenset({39})),
    )
    with start(definition, once=True) as running:
        handle.put(running)
        running.wait(240)

    kept = PickySink.kept[unique]
    assert sorted(kept) == list(range(39))
    assert states[0] is State.STARTING
    assert states[-1] is State.RUNNING


def test_rows_that_the_sink_refuses_go_to_the_dead_letters_alone(
    connection: Connection, topic: Any, pipeline: Any, unique: str
) -> None:
    numbers(connection, topic())

    progress = run_once(
        pipeline(
            source={"kafka": topic()},
            decode={"json": {"schema": "n int"}},
            sink=PickySink(table=unique),
        )
    )

    assert sorted(PickySink.kept[unique]) == [n for n in ALL if n not in BAD]
    assert (progress.rows, progress.failed) == (37, 3)
    dead = letters(connection, unique)
    assert dead.keys() == values(BAD)
    headers = dead[b'{"n":31}']
    assert headers["penstock.stage"] == b"write"
    assert headers["penstock.error_type"] == b"RefusedError"
    assert headers["penstock.error"] == b"no room for 31"
    assert (headers["penstock.partition"], headers["penstock.offset"]) == (b"1", b"15")
    with Admin(connection) as admin:
        assert admin.committed(unique) == admin.latest(admin.partitions([topic()]))


@pytest.mark.by_turns
@pytest.mark.parametrize("dies_after", [1, 2, 4])
def test_a_batch_that_dies_between_its_parts_goes_on_with_the_part_that_was_under_way(
    connection: Connection, topic: Any, pipeline: Any, unique: str, dies_after: int
) -> None:
    numbers(connection, topic())
    definition = pipeline(
        source={"kafka": topic()},
        decode={"json": {"schema": "n int"}},
        sink=PickySink(table=unique, dies_after=dies_after),
        delivery="exactly-once",
        dead_letters={"memory": f"{unique}-dead"},
    )
    with pytest.raises(PipelineFailedError, match="killed after the write"):
        run_once(definition)

    progress = run_once(definition)

    assert sorted(PickySink.kept[unique]) == [n for n in ALL if n not in BAD]
    assert (progress.rows, progress.failed) == (37, 3)
    dead = memory_table(f"{unique}-dead").to_arrow().to_pylist()
    assert {letter["value"] for letter in dead} == values(BAD)
    assert len(dead) == 3


def test_rows_that_a_sql_step_fails_on_go_to_the_dead_letters(
    connection: Connection, topic: Any, pipeline: Any, unique: str
) -> None:
    numbers(connection, topic())

    run_once(
        pipeline(
            source={"kafka": topic()},
            decode={"json": {"schema": "n int"}},
            steps=[{"sql": "SELECT n, 100 / (n - 7) AS share FROM rows"}],
            sink={"memory": unique},
        )
    )

    assert sorted(memory_table(unique).to_pandas()["n"]) == [n for n in ALL if n != 7]
    ((value, headers),) = letters(connection, unique).items()
    assert value == b'{"n":7}'
    assert headers["penstock.stage"] == b"step"
    assert headers["penstock.error_type"] == b"DIVIDE_BY_ZERO"


def doubled(rows: pa.Table) -> pa.Table:
    found = rows.column("n").to_pylist()
    if 31 in found:
        raise ValueError("31 cannot be doubled")
    return pa.table({"n": pa.array([2 * n for n in found], pa.int32())})


def test_rows_that_a_python_step_raises_on_go_to_the_dead_letters(
    connection: Connection, topic: Any, pipeline: Any, unique: str
) -> None:
    numbers(connection, topic())

    run_once(
        pipeline(
            source={"kafka": topic()},
            decode={"json": {"schema": "n int"}},
            steps=[{"python": doubled}],
            sink={"memory": unique},
        )
    )

    assert sorted(memory_table(unique).to_pandas()["n"]) == [2 * n for n in ALL if n != 31]
    ((value, headers),) = letters(connection, unique).items()
    assert value == b'{"n":31}'
    assert headers["penstock.error"].endswith(b"ValueError: 31 cannot be doubled")


def test_more_refusals_than_allowed_fail_the_pipeline_with_the_reason(
    connection: Connection, topic: Any, pipeline: Any, unique: str
) -> None:
    numbers(connection, topic())
    definition = pipeline(
        source={"kafka": topic()},
        decode={"json": {"schema": "n int"}},
        sink=PickySink(table=unique),
        max_refused=2,
    )

    with start(definition, once=True) as running:
        with pytest.raises(
            PipelineFailedError, match="more than 2 records of batch 0 were refused"
        ):
            running.wait(120)
        assert running.progress().state is State.FAILED

    # A raised limit lets the same batch go on where it was.
    run_once(definition.model_copy(update={"max_refused": 10}))
    assert sorted(PickySink.kept[unique]) == [n for n in ALL if n not in BAD]
    assert letters(connection, unique).keys() == values(BAD)
