"""What the sinks `delta` and `iceberg` both promise: rows once, by key, in a table that may grow."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Observation
from pyspark.sql import functions as f
from pyspark.sql.types import StructType

from penstock import start
from penstock.config import Connection
from penstock.errors import ConfigError, FencedError, RefusedError, SetupError, TransientError
from penstock.pipeline import Batch, Delivery, Mark, Opening, registry
from penstock.testing import eventually, fill

CONNECTION = Connection(brokers="nowhere:1")
ROWS = "id bigint, name string"
EXACT = {"delivery": Delivery.EXACTLY_ONCE}


@pytest.fixture(scope="module")
def spark() -> Any:
    from penstock.engine import spark_session

    return spark_session()


class Table:
    """A sink with its table: prepared as at a start, written to batch by batch, and read."""

    def __init__(self, spark: Any, kind: str, folder: Path, **options: Any) -> None:
        place = {
            "delta": {"path": str(folder / "table")},
            "iceberg": {"warehouse": str(folder), "table": "db.trades"},
        }[kind]
        self.spark = spark
        self.sink: Any = registry.component("sink", kind).model_validate(place | options)

    def start(self, schema: str = ROWS, pipeline: str = "p") -> Table:
        self.writer = self.open(pipeline)
        self.writer.prepare(StructType.fromDDL(schema))
        return self

    def open(self, pipeline: str = "p") -> Any:
        return self.sink.open(Opening(self.spark, pipeline, CONNECTION, **EXACT))

    def write(self, number: int, rows: Any, schema: str = ROWS, **more: Any) -> Batch:
        frame = self.spark.createDataFrame(rows, schema).coalesce(1)
        return self.put(frame, number, **more)

    def put(self, frame: Any, number: int, **more: Any) -> Batch:
        options = {"pipeline": "p", "epoch": 0, "connection": CONNECTION, **EXACT} | more
        batch = Batch(frame, id=number, **options)
        self.writer.write(batch)
        return batch

    @property
    def target(self) -> Any:
        return self.sink.target(self.spark)

    def rows(self) -> list[tuple[Any, ...]]:
        return sorted(tuple(row) for row in self.spark.table(self.target.sql).collect())

    def columns(self) -> dict[str, str]:
        return dict(self.spark.table(self.target.sql).dtypes)


@pytest.fixture(params=["delta", "iceberg"])
def table(request: Any, spark: Any, tmp_path: Path) -> Callable[..., Table]:
    return lambda folder=tmp_path, **options: Table(spark, request.param, folder, **options)


def test_appended_batches_are_written_once_and_counted_each_time(table: Any, spark: Any) -> None:
    trades = table().start()
    trades.write(0, [(1, "a"), (2, "b")])
    trades.write(1, [(1, "a")])
    trades.start()
    seen = Observation()
    rows = spark.createDataFrame([(1, "a"), (2, "b")], ROWS)
    trades.put(rows.observe(seen, f.count(f.lit(1)).alias("rows")), 0)

    assert seen.get == {"rows": 2}
    assert trades.rows() == [(1, "a"), (1, "a"), (2, "b")]


def test_an_empty_batch_leaves_its_mark(table: Any) -> None:
    trades = table().start()
    assert trades.target.newest("p") is None
    empty = trades.write(3, [])
    assert trades.target.newest("p") == empty.mark


@pytest.mark.by_turns
def test_marks_tell_parts_epochs_and_pipelines_apart(table: Any) -> None:
    trades = table().start()
    for part in (1, 2, 2, 1, 3):
        trades.write(7, [(part, "part")], part=part)
    for _ in range(2):
        trades.write(0, [(4, "of another pipeline")], pipeline="p.dead-letters")
    trades.write(0, [(5, "of the next epoch")], epoch=1)
    with pytest.raises(FencedError, match="another process runs the pipeline 'p'"):
        trades.write(8, [(6, "of an epoch that is over")])

    assert [row[0] for row in trades.rows()] == [1, 2, 3, 4, 5]


def test_at_least_once_writes_a_batch_again(table: Any) -> None:
    trades = table().start()
    for _ in range(2):
        trades.write(0, [(1, "a")], delivery=Delivery.AT_LEAST_ONCE)

    assert trades.rows() == [(1, "a"), (1, "a")]


CHANGES = "id bigint, name string, gone boolean"


@pytest.mark.by_turns
def test_upsert_keeps_the_newest_row_of_a_key_and_deletes_what_is_gone(table: Any) -> None:
    trades = table(mode="upsert", key="id", delete_when="gone").start(CHANGES)
    trades.write(0, [(1, "a", None), (2, "b", False), (None, "n", False)], CHANGES)
    trades.write(
        1,
        [(1, "A", False), (3, "c", True), (1, "AA", False), (2, "b", True), (None, "m", False)],
        CHANGES,
    )
    assert trades.columns() == {"id": "bigint", "name": "string"}
    assert {row[0]: row[1] for row in trades.spark.table(trades.target.sql).collect()} == {
        1: "AA",
        None: "m",
    }


@pytest.mark.by_turns
def test_a_merged_batch_is_written_once_and_counted_once(table: Any, spark: Any) -> None:
    trades = table(mode="upsert", key="id").start()
    trades.write(0, [(1, "a")])
    seen = Observation()
    rows = spark.createDataFrame([(1, "b"), (2, "c"), (2, "d")], ROWS).coalesce(1)
    trades.put(rows.observe(seen, f.count(f.lit(1)).alias("rows")), 1)
    assert seen.get == {"rows": 3}

    trades.write(2, [(1, "z")])
    trades.write(1, [(1, "b"), (2, "d")])
    trades.write(3, [])

    assert trades.rows() == [(1, "z"), (2, "d")]


@pytest.mark.by_turns
def test_a_pipeline_keeps_the_newest_row_of_each_key(
    table: Any, pipeline: Any, connection: Connection, topic: Any
) -> None:
    trades = table(mode="upsert", key="id")
    fill(connection, topic(), [{"id": n % 5, "name": f"n{n}"} for n in range(20)])
    definition = pipeline(
        source={"kafka": topic()},
        decode={"json": {"schema": ROWS}},
        sink=trades.sink,
        delivery="exactly-once",
    )
    with start(definition, once=True) as running:
        running.wait(120)
        progress = running.progress()

    assert progress.rows == 20
    assert trades.rows() == [(n, f"n{n + 15}") for n in range(5)]
    assert trades.target.newest(definition.name).batch == 0


@pytest.mark.by_turns
def test_a_table_gains_columns_and_its_types_grow(table: Any) -> None:
    trades = table(mode="upsert", key="id")
    trades.start("id int, price float, cost decimal(6,2)")
    trades.write(0, [(1, 1.5, None)], "id int, price float, cost decimal(6,2)")

    trades.start("id bigint, price double, cost decimal(10,2), size int, pair struct<x:int>")
    wide = "id bigint, price double, cost decimal(10,2), size int, pair struct<x:int>"
    trades.write(1, [(2**40, 2.5, None, 7, (1,))], wide)
    # What is narrower than the table, and lacks a column, is taken as it is.
    trades.start("id int, size int").write(2, [(3, 4)], "id int, size int")

    assert trades.rows() == [
        (1, 1.5, None, None, None),
        (3, None, None, 4, None),
        (2**40, 2.5, None, 7, (1,)),
    ]
    assert trades.columns()["id"] == "bigint"
    assert trades.columns()["cost"] == "decimal(10,2)"


@pytest.mark.by_turns
@pytest.mark.parametrize("mode", [{}, {"mode": "upsert", "key": "id"}])
def test_a_column_that_the_table_lost_since_the_start_fails_the_batch(
    mode: dict[str, str], table: Any
) -> None:
    trades = table(properties={"delta.columnMapping.mode": "name"}, **mode).start()
    trades.write(0, [(1, "a")])
    trades.spark.sql(f"ALTER TABLE {trades.target.sql} DROP COLUMN name")

    with pytest.raises(
        ConfigError, match=r"has no column 'name' any more.*start the pipeline again"
    ):
        trades.write(1, [(2, "b")])
    assert trades.rows() == [(1,)]
    trades.start().write(1, [(2, "b")])
    assert trades.rows() == [(1, None), (2, "b")]


def test_numbers_by_the_clock_are_marks_too(table: Any) -> None:
    trades = table().start()
    for number in (1_800_000_000_000, 2**62):
        for part in (0, 1, 1, 0):
            batch = trades.write(number, [(part, str(number))], part=part, pipeline="p~notes")
            assert trades.target.newest("p~notes")[:2] == (0, number)
    assert trades.target.newest("p~notes") == Mark(0, 2**62, 1)
    assert batch.part == 0
    assert len(trades.rows()) == 4


def test_another_type_is_refused_before_a_record_is_read(table: Any) -> None:
    table().start("id bigint, name string")
    with pytest.raises(ConfigError, match=r"'name' as string, and the rows bring int.*CAST\(name"):
        table().start("id bigint, name int")


def test_partitions_are_made_and_others_refused(table: Any, tmp_path: Path) -> None:
    trades = table(partition_by="name").start()
    trades.write(0, [(1, "a"), (2, "b")])
    trades.write(1, [(3, "a")])

    assert trades.rows() == [(1, "a"), (2, "b"), (3, "a")]
    assert {path.name for path in tmp_path.rglob("name=*")} == {"name=a", "name=b"}
    with pytest.raises(ConfigError, match="is partitioned by name, and 'partition_by' asks for id"):
        table(partition_by="id").start()
    table().start()


def test_a_column_to_partition_by_must_be_there(table: Any) -> None:
    with pytest.raises(ConfigError, match="partition by the column 'nam'; did you mean 'name'"):
        table(partition_by="nam").start()


def test_a_place_that_cannot_be_written_is_reported_at_the_start(
    table: Any, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SetupError, match=r"cannot be written.*choose a place"):
        table(tmp_path / "file").start()


@pytest.mark.by_turns
def test_a_value_that_no_folder_can_be_named_after_is_refused(table: Any) -> None:
    trades = table(partition_by="name").start()
    with pytest.raises(RefusedError, match="too long to name a folder"):
        trades.write(0, [(1, "x" * 300)])
    trades.write(0, [(2, "b")], part=1)

    assert trades.rows() == [(2, "b")]


@pytest.mark.by_turns
def test_files_are_joined_and_a_replay_still_writes_nothing(table: Any) -> None:
    trades = table(compact={"every": "1h"}).start()
    for number in range(6):
        batch = trades.write(number, [(number, "a")])
    assert _files(trades) == 6

    trades.writer.maintain(batch)
    assert _files(trades) == 1
    trades.start()
    trades.write(5, [(5, "a")])
    assert trades.rows() == [(number, "a") for number in range(6)]

    trades.write(6, [(6, "b")])
    trades.writer.maintain(batch)  # the first joining since the start
    joined = _files(trades)
    trades.write(7, [(7, "b")])
    trades.writer.maintain(batch)  # not yet an hour later
    assert _files(trades) == joined + 1


def _files(table: Table) -> int:
    rows = table.spark.table(table.target.sql)
    return int(rows.select(f.input_file_name()).distinct().count())


@pytest.mark.by_turns
@pytest.mark.parametrize("mode", [{}, {"mode": "upsert", "key": "id"}])
def test_a_zombie_that_still_writes_the_batch_does_not_double_it(
    mode: dict[str, str], table: Any, spark: Any, tmp_path: Path
) -> None:
    trades = table(**mode).start()
    begun, go_on = tmp_path / "begun", tmp_path / "go-on"
    one = spark.createDataFrame([(1, "a")], ROWS).coalesce(1)
    slow = one.mapInPandas(_when(begun, go_on), ROWS)  # it holds one core; the other one is free
    failed: list[Exception] = []

    def zombie() -> None:
        try:
            trades.put(slow, 0)
        except TransientError as error:
            failed.append(error)

    writing = threading.Thread(target=zombie)
    writing.start()
    eventually(begun.exists, timeout=120)
    # A session state of its own, as every process has.
    other = Table.__new__(Table)
    other.spark, other.sink = spark.newSession(), trades.sink
    other.writer = other.open()
    other.write(0, [(1, "a")])
    go_on.touch()
    writing.join(120)

    assert trades.rows() == [(1, "a")]
    assert [str(error) for error in failed if "another writer" not in str(error)] == []


def _when(begun: Path, go_on: Path) -> Callable[[Any], Any]:
    """Rows that come only after another process was let through."""

    def rows(frames: Any) -> Any:
        import time

        begun.touch()
        while not go_on.exists():
            time.sleep(0.02)
        yield from frames

    return rows
