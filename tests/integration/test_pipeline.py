"""A pipeline from a real topic through real Spark: what arrives, what is committed, where it goes on."""

from __future__ import annotations

import shutil
from typing import Any

import pyarrow.parquet as pq
import pytest

from penstock import Admin, Connection, State, memory_table, start
from penstock.embedded.tools import run_tool
from penstock.errors import ConfigError, SetupError
from penstock.testing import eventually, fill, read_all

TRADES = "id bigint not null, symbol string, price double"


def trades(first: int, until: int) -> list[dict[str, Any]]:
    return [{"id": i, "symbol": f"S{i % 3}", "price": i / 2} for i in range(first, until)]


def to_table(pipeline: Any, folder: Any, **source: Any) -> Any:
    return pipeline(
        source={"kafka": source},
        decode={"json": {"schema": TRADES}},
        sink={"files": str(folder / "table")},
    )


def run_once(definition: Any) -> Any:
    with start(definition, once=True) as running:
        assert running.wait(280), running.progress()
        return running.progress()


def ids(folder: Any) -> list[int]:
    return sorted(pq.read_table(folder).column("id").to_pylist())


def test_every_record_is_in_the_table_and_the_group_stands_at_the_end(
    connection: Connection, topic: Any, pipeline: Any, tmp_path: Any
) -> None:
    fill(connection, topic(), trades(0, 1000), partitions=3)
    definition = pipeline(
        source={"kafka": {"topics": topic()}},
        decode={"json": {"schema": TRADES}},
        steps=[{"sql": "SELECT *, price * 2 AS twice FROM rows WHERE id <> 7"}],
        sink={"files": {"path": str(tmp_path / "table")}},
    )

    progress = run_once(definition)

    table = pq.read_table(tmp_path / "table")
    assert sorted(table.column("id").to_pylist()) == [i for i in range(1000) if i != 7]
    assert all(row["twice"] == row["id"] for row in table.to_pylist())
    assert (progress.records, progress.rows, progress.failed) == (1000, 999, 0)
    with Admin(connection) as admin:
        committed = admin.committed(definition.group_id)
        assert committed == admin.latest(committed)
        assert len(committed) == 3


def test_a_second_run_goes_on_where_the_first_stopped(
    connection: Connection, topic: Any, pipeline: Any, tmp_path: Any
) -> None:
    definition = to_table(pipeline, tmp_path, topics=topic())
    fill(connection, topic(), trades(0, 50), partitions=2)
    run_once(definition)
    fill(connection, topic(), trades(50, 80), partitions=2)

    assert run_once(definition).records == 30
    assert ids(tmp_path / "table") == list(range(80))


def test_small_batches_cover_the_backlog_with_exact_ranges(
    connection: Connection, topic: Any, pipeline: Any, tmp_path: Any
) -> None:
    fill(connection, topic(), trades(0, 100), partitions=2)
    definition = to_table(pipeline, tmp_path, topics=topic(), max_records_per_batch=30)

    progress = run_once(definition)

    assert progress.batches >= 4
    assert progress.records == 100
    assert ids(tmp_path / "table") == list(range(100))


def test_kafkas_own_tool_shows_the_true_lag_and_its_reset_is_obeyed(
    connection: Connection, topic: Any, pipeline: Any, tmp_path: Any
) -> None:
    definition = to_table(pipeline, tmp_path, topics=topic())
    fill(connection, topic(), trades(0, 40))
    run_once(definition)
    fill(connection, topic(), trades(40, 50))

    chosen = ["--group", definition.group_id]
    shown = run_tool("kafka-consumer-groups", connection, ["--describe", *chosen])
    fields = next(line for line in shown.splitlines() if topic() in line).split()
    assert fields[3:6] == ["40", "50", "10"]

    reset = ["--reset-offsets", *chosen, "--topic", topic(), "--to-offset", "35", "--execute"]
    run_tool("kafka-consumer-groups", connection, reset)
    assert run_once(definition).records == 15
    assert ids(tmp_path / "table") == sorted([*range(50), *range(35, 40)])


def test_a_reset_by_exactly_one_batch_is_obeyed(
    connection: Connection, topic: Any, pipeline: Any, tmp_path: Any
) -> None:
    from penstock.kafka import GroupOffsets

    definition = to_table(pipeline, tmp_path, topics=topic())
    fill(connection, topic(), trades(0, 10))
    run_once(definition)
    fill(connection, topic(), trades(10, 20))
    run_once(definition)
    with GroupOffsets(connection, definition.group_id) as group:
        group.commit({(topic(), 0): 10})

    assert run_once(definition).records == 10
    assert ids(tmp_path / "table") == sorted([*range(20), *range(10, 20)])


@pytest.mark.parametrize(
    ("begin", "expected"),
    [
        ("earliest", list(range(10))),
        ("latest", []),
        ({"offsets": "{topic: {0: 6}}"}, [6, 7, 8, 9]),
        ({"timestamp": "2100-01-01"}, []),
        ({"timestamp": 0}, list(range(10))),
    ],
)
def test_the_first_start_is_where_it_is_reported(
    connection: Connection, topic: Any, pipeline: Any, begin: Any, expected: Any
) -> None:
    fill(connection, topic(), trades(0, 10))
    if isinstance(begin, dict) and "offsets" in begin:
        begin = {"offsets": {topic(): {0: 6}}}
    definition = pipeline(
        source={"kafka": {"topics": topic(), "start": begin}},
        decode={"json": {"schema": TRADES}},
        sink={"memory": topic("table")},
    )

    progress = run_once(definition)

    assert progress.records == len(expected)
    if expected:
        assert sorted(memory_table(topic("table")).to_pandas()["id"]) == expected
    with Admin(connection) as admin:
        assert admin.committed(definition.group_id) == {(topic(), 0): 10}


def test_start_at_committed_is_refused_where_nothing_is_committed(
    connection: Connection, topic: Any, pipeline: Any
) -> None:
    fill(connection, topic(), trades(0, 1))
    definition = pipeline(
        source={"kafka": {"topics": topic(), "start": "committed"}}, sink="discard"
    )

    with pytest.raises(ConfigError, match=f"no offset for {topic()}-0; commit one, or start at"):
        start(definition)


def test_a_missing_topic_is_refused_with_the_nearest_one(
    connection: Connection, topic: Any, pipeline: Any
) -> None:
    fill(connection, topic("orders"), trades(0, 1))
    definition = pipeline(source={"kafka": topic("order")}, sink="discard")

    with pytest.raises(ConfigError) as caught:
        start(definition)

    assert f"there is no topic '{topic('order')}'" in str(caught.value)
    assert f"the nearest: {topic('orders')}" in str(caught.value)
    assert f"penstock topics create {topic('order')}" in str(caught.value)


def test_a_pattern_reads_all_topics_that_match(
    connection: Connection, topic: Any, pipeline: Any
) -> None:
    fill(connection, topic("a"), trades(0, 5))
    fill(connection, topic("b"), trades(5, 9))
    definition = pipeline(
        source={"kafka": {"pattern": f"{topic('')}[ab]"}},
        decode={"json": {"schema": TRADES, "metadata": ["topic", "offset"]}},
        sink={"memory": topic("table")},
    )

    run_once(definition)

    rows = memory_table(topic("table")).to_pandas().sort_values("id")
    assert list(rows["kafka_topic"]) == [topic("a")] * 5 + [topic("b")] * 4
    assert list(rows["kafka_offset"]) == [0, 1, 2, 3, 4, 0, 1, 2, 3]


def test_stop_finishes_the_running_batch_and_nothing_is_read_twice(
    connection: Connection, topic: Any, pipeline: Any, tmp_path: Any
) -> None:
    fill(connection, topic(), trades(0, 600), partitions=2)
    definition = to_table(pipeline, tmp_path, topics=topic(), max_records_per_batch=100)

    running = start(definition)
    eventually(lambda: running.progress().batches >= 2)
    running.stop()
    stopped = running.progress()

    assert stopped.state is State.STOPPED
    assert len(ids(tmp_path / "table")) == stopped.rows < 600
    assert run_once(definition).records == 600 - stopped.rows
    assert ids(tmp_path / "table") == list(range(600))


def test_a_step_with_an_unknown_column_is_refused_before_a_record_is_read(
    connection: Connection, topic: Any, pipeline: Any
) -> None:
    fill(connection, topic(), trades(0, 1))
    definition = pipeline(
        source={"kafka": topic()},
        decode={"json": {"schema": TRADES}},
        steps=[{"sql": "SELECT prize FROM rows"}],
        sink="discard",
    )

    with pytest.raises(ConfigError, match=r"steps\[0\] \(sql\): .*prize"):
        start(definition)


def test_the_same_pipeline_cannot_run_twice_at_once(
    connection: Connection, topic: Any, pipeline: Any
) -> None:
    fill(connection, topic(), trades(0, 1))
    definition = pipeline(source={"kafka": topic()}, sink="discard")

    with start(definition), pytest.raises(ConfigError, match="already runs in another process"):
        start(definition)


def test_a_folder_that_cannot_be_written_is_refused_before_a_record_is_read(
    connection: Connection, topic: Any, pipeline: Any, tmp_path: Any
) -> None:
    fill(connection, topic(), trades(0, 1))
    (tmp_path / "file").write_text("in the way")
    definition = pipeline(
        source={"kafka": topic()}, sink={"files": str(tmp_path / "file" / "table")}
    )

    with pytest.raises(SetupError, match=r"cannot write to .*/file/table: Not a directory"):
        start(definition)


def test_rows_into_a_topic_arrive_as_json_with_their_key(
    connection: Connection, topic: Any, pipeline: Any
) -> None:
    import orjson

    fill(connection, topic(), trades(0, 3))
    fill(connection, topic("out"), [])
    definition = pipeline(
        source={"kafka": topic()},
        decode={"json": {"schema": TRADES}},
        sink={"kafka": {"topic": topic("out"), "key": "symbol"}},
    )

    run_once(definition)

    records = read_all(connection, topic("out"))
    assert [(r.key, orjson.loads(r.value)) for r in records] == [
        (f"S{i}".encode(), {"id": i, "price": i / 2}) for i in range(3)
    ]


def test_at_most_once_commits_before_it_writes(
    connection: Connection, topic: Any, pipeline: Any, tmp_path: Any
) -> None:
    fill(connection, topic(), trades(0, 10))
    definition = pipeline(
        source={"kafka": topic()},
        decode={"json": {"schema": TRADES}},
        steps=[{"sql": "SELECT assert_true(id < 0), id FROM rows"}],
        sink={"files": str(tmp_path / "table")},
        delivery="at-most-once",
        max_refused=0,
    )

    with start(definition, once=True) as running:
        with pytest.raises(Exception, match="more than 0 records of batch 0 were refused"):
            running.wait(60)
        assert running.progress().state is State.FAILED
    with Admin(connection) as admin:
        assert admin.committed(definition.group_id) == {(topic(), 0): 10}
    assert run_once(definition).records == 0


def test_a_pipeline_whose_state_was_removed_goes_on_at_its_group_and_skips_nothing(
    connection: Connection, topic: Any, pipeline: Any, unique: str
) -> None:
    fill(connection, topic(), trades(0, 5))
    definition = pipeline(
        source={"kafka": topic()},
        decode={"json": {"schema": TRADES}},
        sink={"memory": unique},
        delivery="exactly-once",
    )
    run_once(definition)
    shutil.rmtree(definition.state)
    fill(connection, topic(), trades(5, 10))

    assert run_once(definition).rows == 5
    assert sorted(memory_table(unique).to_pandas()["id"]) == list(range(10))
