"""Two processes with one name, state that vanished, clocks that are behind: no record lost or doubled."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.types import StructType

from penstock import Admin, Connection, Consumer, State, memory_table, start
from penstock.engine import batch_writing, resuming, spark_session
from penstock.engine.resumption import Stamp
from penstock.errors import FencedError, GroupInUseError, PenstockError
from penstock.kafka import GroupOffsets
from penstock.pipeline import CLAIMED, Opening, Pipeline, SourceLog
from penstock.sources.kafka import KafkaLog
from penstock.testing import eventually, fill, read_all

SINKS = ["memory", "kafka", "files", "delta", "iceberg", "database"]
ALL = range(60)
COLUMNS = StructType().add("n", "integer")
REFUSES_7 = "SELECT CAST(n + 0 * (100 / (n - 7)) AS int) AS n FROM rows"


def options(sink: str, unique: str, folder: Path) -> dict[str, Any]:
    return {
        "memory": {"memory": unique},
        "kafka": {"kafka": f"{unique}-out"},
        "files": {"files": {"path": str(folder / "files")}},
        "delta": {"delta": str(folder / "delta")},
        "iceberg": {"iceberg": {"warehouse": str(folder / "lake"), "table": "db.rows"}},
        "database": {"database": {"url": f"sqlite:///{folder}/rows.db", "table": "numbers"}},
    }[sink]


@pytest.fixture
def definition(pipeline: Any, topic: Any, unique: str, tmp_path: Path) -> Any:
    """Makes the same pipeline again and again; `state` is the folder of one process."""

    def make(sink: str, state: str = "a", **changes: Any) -> Pipeline:
        given: dict[str, Any] = {
            "source": {"kafka": {"topics": topic()}},
            "decode": {"json": {"schema": "n int not null"}},
            "sink": options(sink, unique, tmp_path),
            "delivery": "exactly-once",
            "state": str(tmp_path / "state" / state),
            "restart": {"wait": "50ms", "longest": "200ms", "limit": 2},
        }
        return pipeline(**(given | changes))

    return make


def written(made: Pipeline) -> Counter[int]:
    """What is in the sink, and how often."""
    sink: Any = made.sink
    if sink.name == "memory":
        rows = memory_table(sink.table).to_arrow().column("n").to_pylist()
    elif sink.name == "kafka":
        values = [record.value for record in read_all(made.connection, sink.topic)]  # type: ignore[arg-type]
        rows = [int(value.split(b":")[1].rstrip(b"}")) for value in values]
    else:
        rows = [row.n for row in sink.lookup(spark_session(), COLUMNS).collect()]
    return Counter(rows)


def another_process_claims(made: Pipeline, partitions: list[tuple[str, int]]) -> None:
    """Do what a second process does at its start: one Spark session has one query of a name."""
    spark, delivery = spark_session(), made.delivery
    opening = Opening(spark, made.name, made.connection, delivery, tuple(partitions))  # type: ignore[arg-type]
    with made.sink.open(opening) as writer:
        known = writer.last_write()
        assert known is not None
        before = writer.claim(known.mark.epoch + 1)
    assert before == known
    assert {place: end for place, (_, end) in before.ranges.items()} == dict.fromkeys(
        partitions, 30
    )


def once_each(numbers: Any) -> Counter[int]:
    return Counter(dict.fromkeys(numbers, 1))


def run_once(made: Pipeline, **options: Any) -> Any:
    with start(made, once=True, **options) as running:
        running.wait(120)
        return running.progress()


def numbers(connection: Connection, topic: str, wanted: Any = ALL, bad: Any = ()) -> None:
    fill(connection, topic, [b"bad" if n in bad else {"n": n} for n in wanted], partitions=2)


def dead(made: Pipeline) -> list[bytes]:
    letters = read_all(made.connection, f"{made.name}.dead-letters")  # type: ignore[arg-type]
    return [letter.value for letter in letters]


@pytest.mark.by_turns
@pytest.mark.parametrize("sink", SINKS)
def test_a_process_stops_when_another_one_takes_over_and_every_record_is_written_once(
    connection: Connection, topic: Any, definition: Any, sink: str
) -> None:
    numbers(connection, topic())
    made = definition(sink, "a")
    with start(made) as first:
        eventually(lambda: first.progress().rows == len(ALL), timeout=120)
        another_process_claims(made, [(topic(), 0), (topic(), 1)])
        numbers(connection, topic(), range(60, 100))
        with pytest.raises(FencedError, match="another process runs the pipeline"):
            first.wait(120)
        assert first.progress().state is State.FAILED
    assert written(definition(sink)) == once_each(ALL)

    run_once(definition(sink, "b"))
    assert written(definition(sink)) == once_each(range(100))


def test_a_batch_that_another_process_noted_at_the_same_moment_does_not_end_the_pipeline(
    connection: Connection, topic: Any, definition: Any
) -> None:
    numbers(connection, topic())
    made = definition("delta", restart={"wait": "50ms", "limit": 0})
    with start(made) as running:
        eventually(lambda: running.progress().rows == len(ALL), timeout=120)
        (planned,) = Path(made.state).rglob("offsets")
        last = max(
            (file for file in planned.iterdir() if file.name.isdigit()),
            key=lambda file: int(file.name),
        )
        text = last.read_text()
        assert text.count(":30") == 2
        # As a worker does that was suspended, and wakes up when another one has its lease.
        (planned / str(int(last.name) + 1)).write_text(text.replace(":30", ":40"))
        numbers(connection, topic(), range(60, 100))
        eventually(lambda: running.progress().rows == 100, timeout=120)
        assert running.progress().restart_reasons == {"worker_lost": 1}
    assert written(made) == once_each(range(100))


@pytest.mark.by_turns
@pytest.mark.parametrize("sink", SINKS)
def test_a_lost_state_folder_and_a_clock_that_is_behind_lose_and_double_nothing(
    connection: Connection,
    topic: Any,
    definition: Any,
    sink: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    numbers(connection, topic())
    run_once(definition(sink))
    shutil.rmtree(definition(sink).state)
    numbers(connection, topic(), range(60, 100))
    monkeypatch.setattr(resuming, "now", lambda: 1000.0)

    assert run_once(definition(sink)).rows == 40
    assert written(definition(sink)) == once_each(range(100))


@pytest.mark.by_turns
@pytest.mark.parametrize("sink", SINKS)
def test_a_batch_that_was_written_and_not_committed_is_known_without_the_state_folder(
    connection: Connection,
    topic: Any,
    definition: Any,
    sink: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    numbers(connection, topic(), bad={7, 30})
    commit = KafkaLog.commit

    def killed(log: KafkaLog, offsets: Any, metadata: str) -> None:
        stamp = Stamp.read(metadata)
        if stamp is None or stamp.batch != CLAIMED:
            raise RuntimeError("killed")
        commit(log, offsets, metadata)

    with monkeypatch.context() as patched:
        patched.setattr(KafkaLog, "commit", killed)
        patched.setattr("penstock.engine.batch_writing.write_dead_letters", _interrupted)
        with pytest.raises(PenstockError):
            run_once(definition(sink, "a", restart={"limit": 0}))
    assert written(definition(sink)) == once_each(n for n in ALL if n not in {7, 30})

    run_once(definition(sink, "b"))

    assert written(definition(sink)) == once_each(n for n in ALL if n not in {7, 30})
    assert dead(definition(sink)) == [b"bad", b"bad"]
    with Admin(connection) as admin:
        assert admin.committed(definition(sink).group_id) == admin.latest(
            [(topic(), 0), (topic(), 1)]
        )


def _interrupted(*_: object) -> str:
    raise RuntimeError("killed")


@pytest.mark.by_turns
@pytest.mark.parametrize("sink", SINKS)
def test_a_batch_that_was_written_is_not_written_again_by_a_definition_that_refuses_some_of_it(
    connection: Connection, topic: Any, definition: Any, sink: str
) -> None:
    numbers(connection, topic())

    def killed(_: object) -> None:
        raise RuntimeError("killed")

    with pytest.raises(PenstockError):
        run_once(definition(sink, restart={"limit": 0}), on_batch=killed)
    refuses = definition(
        sink, steps=[{"sql": "SELECT CAST(n + 0 * (100 / (n - 7)) AS int) AS n FROM rows"}]
    )

    progress = run_once(refuses)

    assert written(refuses) == once_each(ALL)
    assert (progress.rows, progress.failed, dead(refuses)) == (60, 0, [])


def test_a_decode_that_changed_between_the_rows_and_the_dead_letters_loses_no_record(
    connection: Connection, topic: Any, definition: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(connection, topic(), [{"n": 1}, {"n": None}, {"n": 3}])

    def killed(*_: object) -> None:
        raise RuntimeError("killed")

    old = definition("memory", restart={"limit": 0})
    with monkeypatch.context() as patched:
        patched.setattr(batch_writing, "write_dead_letters", killed)
        with pytest.raises(PenstockError):
            run_once(old)
    assert (written(old), dead(old)) == (once_each([1, 3]), [])
    changed = definition("memory", decode={"json": {"schema": "n int"}}, restart={"limit": 0})

    with pytest.raises(PenstockError, match=r"another decode than the current one.*n int not null"):
        run_once(changed)
    run_once(old)
    assert (written(old), dead(old)) == (once_each([1, 3]), [b'{"n":null}'])

    fill(connection, topic(), [{"n": None}])
    run_once(changed)
    assert written(old) == once_each([1, 3, None])


@pytest.mark.parametrize("delivery", ["exactly-once", "at-least-once"])
def test_a_pipeline_that_does_not_commit_ignores_its_group_after_the_first_start(
    connection: Connection, topic: Any, definition: Any, delivery: str
) -> None:
    numbers(connection, topic())
    made = definition("memory", commit=False, delivery=delivery)
    with GroupOffsets(connection, made.group_id) as group:
        group.commit({(topic(), 0): 10, (topic(), 1): 10})
    run_once(made)
    first = written(made)
    assert len(first) == 40

    assert run_once(made).records == 0
    numbers(connection, topic(), range(60, 80))
    assert run_once(made).records == 20
    assert written(made) == first + once_each(range(60, 80))


@pytest.mark.by_turns
@pytest.mark.parametrize("sink", ["kafka", "memory", "database", "files", "delta", "iceberg"])
def test_at_most_once_writes_no_record_twice_when_some_are_refused(
    connection: Connection, topic: Any, definition: Any, sink: str
) -> None:
    numbers(connection, topic())
    refuses = [{"sql": REFUSES_7}]

    run_once(definition(sink, delivery="at-most-once", steps=refuses))

    assert written(definition(sink)) == once_each(n for n in ALL if n != 7)


def test_at_most_once_does_not_run_a_batch_again_when_the_group_is_gone(
    connection: Connection, topic: Any, definition: Any
) -> None:
    numbers(connection, topic())
    made = definition("memory", delivery="at-most-once", restart={"limit": 0})

    def killed(_: object) -> None:
        raise RuntimeError("killed")

    with pytest.raises(PenstockError):
        run_once(made, on_batch=killed)
    with Admin(connection) as admin:
        admin.delete_group(made.group_id)
    memory_table(made.sink.table).clear()

    assert run_once(made).records == 0


def test_a_consumer_in_the_pipelines_group_is_named_and_nothing_is_written_beside_it(
    connection: Connection, topic: Any, definition: Any
) -> None:
    numbers(connection, topic())
    made = definition("memory", delivery="at-least-once")
    run_once(made)
    numbers(connection, topic(), range(60, 80))
    with intruder(connection, made.group_id, topic()):
        for _ in range(3):
            with pytest.raises(GroupInUseError, match="intruder"):
                start(made)
        assert written(made) == once_each(ALL)
    run_once(made)
    assert written(made) == once_each(range(80))


def test_a_consumer_that_joins_while_a_pipeline_runs_makes_it_wait_after_one_batch(
    connection: Connection, topic: Any, definition: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The batch is written before its commit is refused; it is not written again until that may work."""
    attempts: list[str] = []
    look = resuming.take_over_group

    def counted(log: SourceLog, *given: Any) -> None:
        attempts.append(log.group)
        look(log, *given)

    monkeypatch.setattr(resuming, "take_over_group", counted)
    numbers(connection, topic())
    made = definition("memory", delivery="at-least-once")
    with start(made) as running:
        eventually(lambda: running.progress().rows == 60, timeout=120)
        with intruder(connection, made.group_id, topic()):
            numbers(connection, topic(), range(60, 80))
            eventually(lambda: len(attempts) >= 3, timeout=120)
            waiting = running.progress()
            assert waiting.state is State.RETRYING
            assert "intruder" in str(waiting.last_error)
            assert max(written(made).values()) == 1
        eventually(lambda: running.progress().rows >= 80, timeout=120)
    found = written(made)
    assert sorted(found) == list(range(80))
    assert max(found.values()) <= 2


@contextmanager
def intruder(connection: Connection, group: str, topic: str) -> Iterator[None]:
    with Consumer(connection, group_id=group, client_id="intruder") as consumer:
        consumer.subscribe(topic)
        eventually(lambda: consumer.poll(0.1) or consumer.assignment, timeout=60)
        yield
