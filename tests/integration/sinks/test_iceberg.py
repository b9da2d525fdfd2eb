"""The sink `iceberg`: catalogs, transforms, and marks that outlive snapshots."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.types import StructType

from penstock.config import Connection
from penstock.errors import ConfigError
from penstock.pipeline import Batch, Delivery, LastWrite, Mark, Opening, Writer
from penstock.sinks.iceberg import IcebergSink

CONNECTION = Connection(brokers="nowhere:1")
ROWS = "id bigint, at timestamp"


@pytest.fixture(scope="module")
def spark() -> Any:
    from penstock.engine import spark_session

    return spark_session()


def start(spark: Any, sink: IcebergSink, schema: str = ROWS) -> Writer:
    writer = sink.open(Opening(spark, "p", CONNECTION, Delivery.EXACTLY_ONCE))
    writer.prepare(StructType.fromDDL(schema))
    return writer


def write(spark: Any, writer: Writer, number: int, *rows: Any) -> Batch:
    frame = spark.createDataFrame(rows, ROWS).coalesce(1)
    batch = Batch(frame, "p", 0, number, CONNECTION, delivery=Delivery.EXACTLY_ONCE)
    writer.write(batch)
    return batch


def sink_in(folder: Path, **options: Any) -> IcebergSink:
    given = {"warehouse": str(folder), "table": "db.trades", **options}
    return IcebergSink.model_validate(given)


def count(spark: Any, writer: Any) -> int:
    return int(spark.table(writer.sink.target(spark).sql).count())


def test_a_table_without_a_warehouse_names_its_catalog() -> None:
    with pytest.raises(ValueError, match=r"'db.trades' has no catalog: give 'warehouse'"):
        IcebergSink(table="db.trades")


def test_a_catalog_that_is_not_set_up_is_named(spark: Any) -> None:
    with pytest.raises(ConfigError, match=r"no catalog 'lake'.*spark\.sql\.catalog\.lake"):
        start(spark, IcebergSink(table="lake.db.trades"))


def test_a_catalog_of_the_session_is_used(spark: Any, tmp_path: Path) -> None:
    settings = {"": "org.apache.iceberg.spark.SparkCatalog", ".type": "hadoop"}
    for key, value in (settings | {".warehouse": str(tmp_path)}).items():
        spark.conf.set(f"spark.sql.catalog.mine{key}", value)
    writer = start(spark, IcebergSink(table="mine.db.trades"))
    write(spark, writer, 0, (1, None))
    write(spark, writer, 0, (1, None))

    assert [row["id"] for row in spark.table("mine.db.trades").collect()] == [1]


@pytest.mark.parametrize("given", ["days(at)", "bucket(4, id)", "truncate(10, id)"])
def test_a_table_is_divided_by_functions_of_columns(spark: Any, tmp_path: Path, given: str) -> None:
    writer = start(spark, sink_in(tmp_path, partition_by=given))
    assert writer.sink.target(spark).partitions() == [given]
    start(spark, sink_in(tmp_path, partition_by=given.replace(" ", "")))
    write(spark, writer, 0, (1, None))
    assert count(spark, writer) == 1


@pytest.mark.parametrize("given", ["weeks(at)", "bucket(id)", "days(4, at)", "days("])
def test_a_function_that_iceberg_lacks_is_refused(given: str) -> None:
    with pytest.raises(ValueError, match=r"allowed: a column, years\(column\)"):
        IcebergSink(table="db.trades", warehouse="w", partition_by=[given])


def test_a_decimal_with_more_digits_behind_the_point_is_refused(spark: Any, tmp_path: Path) -> None:
    start(spark, sink_in(tmp_path), "cost decimal(6,2)")
    with pytest.raises(ConfigError, match="Iceberg cannot give a decimal more digits"):
        start(spark, sink_in(tmp_path), "cost decimal(10,4)")


def test_a_mark_outlives_the_snapshots(spark: Any, tmp_path: Path) -> None:
    writer = start(spark, sink_in(tmp_path, compact={"keep": "1h"}))
    for number in range(5):
        batch = write(spark, writer, number, (number, None))
    writer.maintain(batch)
    table = writer.sink.target(spark)
    _expire_all_but_the_head(table)
    assert [snapshot.operation() for snapshot in table._loaded().snapshots()] == ["replace"]

    write(spark, writer, 4, (4, None))
    assert count(spark, writer) == 5
    write(spark, writer, 5, (5, None))
    assert table.newest("p") == (0, 5, 0)
    assert count(spark, writer) == 6


def test_marks_of_an_older_release_are_known_without_ranges(spark: Any, tmp_path: Path) -> None:
    writer = start(spark, sink_in(tmp_path))
    table = writer.sink.target(spark)
    table._allow_staging()
    spark.conf.set("spark.wap.id", "p~0~3~0")
    table.append(spark.createDataFrame([(1, None)], ROWS))
    spark.conf.unset("spark.wap.id")
    (staged,) = table._loaded().snapshots()
    table._loaded().manageSnapshots().cherrypick(staged.snapshotId()).commit()

    assert writer.last_write() == LastWrite(Mark(0, 3, 0))
    write(spark, writer, 3, (1, None))
    assert writer.claim(7) == LastWrite(Mark(0, 3, 0))
    assert count(spark, writer) == 1


def _expire_all_but_the_head(table: Any) -> None:
    later = int((time.time() + 60) * 1000)
    table._loaded().expireSnapshots().expireOlderThan(later).commit()


def test_what_a_crash_left_staged_is_no_part_of_the_table(spark: Any, tmp_path: Path) -> None:
    writer = start(spark, sink_in(tmp_path))
    table = writer.sink.target(spark)
    table._allow_staging()
    spark.conf.set("spark.wap.id", "p~0~0~0")
    table.append(spark.createDataFrame([(1, None)], ROWS))
    spark.conf.unset("spark.wap.id")
    assert count(spark, writer) == 0

    write(spark, writer, 0, (1, None))
    write(spark, writer, 0, (1, None))
    assert count(spark, writer) == 1


def test_an_append_is_published_on_top_of_what_others_wrote_meanwhile(
    spark: Any, tmp_path: Path
) -> None:
    writer = start(spark, sink_in(tmp_path))
    table = writer.sink.target(spark)
    batch = Batch(spark.range(0), "p", 0, 0, CONNECTION, delivery=Delivery.EXACTLY_ONCE)
    rows = spark.createDataFrame([(1, None)], ROWS)
    with table.marked(batch):
        table.append(rows)
        spark.conf.unset("spark.wap.id")
        table.append(rows)
        spark.conf.set("spark.wap.id", batch.label)

    assert table.newest("p") == batch.mark
    write(spark, writer, 0, (1, None))
    assert count(spark, writer) == 2
