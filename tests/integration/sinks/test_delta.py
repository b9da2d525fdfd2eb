"""The sink `delta`: what only Delta tables have."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.types import StructType

from penstock.config import Connection
from penstock.engine import spark_session
from penstock.errors import ConfigError, RefusedError
from penstock.pipeline import Batch, Delivery, LastWrite, Mark, Opening, Writer
from penstock.sinks.delta import DeltaSink

CONNECTION = Connection(brokers="nowhere:1")
ROWS = "id bigint, name string"


@pytest.fixture(scope="module")
def spark() -> Any:
    return spark_session()


def start(spark: Any, sink: DeltaSink) -> Writer:
    writer = sink.open(Opening(spark, "p", CONNECTION, Delivery.EXACTLY_ONCE))
    writer.prepare(StructType.fromDDL(ROWS))
    return writer


def write(spark: Any, writer: Writer, number: int, *rows: Any) -> Batch:
    frame = spark.createDataFrame(rows, ROWS).coalesce(1)
    batch = Batch(frame, "p", 0, number, CONNECTION, delivery=Delivery.EXACTLY_ONCE)
    writer.write(batch)
    return batch


def test_a_table_has_a_path_or_a_name() -> None:
    for options in ({}, {"path": "/t", "table": "t"}):
        with pytest.raises(ValueError, match="either 'path'"):
            DeltaSink.model_validate(options)


def test_a_table_in_sparks_catalog_is_made_by_name(spark: Any, unique: str) -> None:
    name = unique.replace("-", "_")
    writer = start(
        spark, DeltaSink(table=f"default.{name}", properties={"delta.appendOnly": "true"})
    )
    write(spark, writer, 0, (1, "a"))
    write(spark, writer, 0, (1, "a"))

    assert [tuple(row) for row in spark.table(name).collect()] == [(1, "a")]
    properties = {
        row["key"]: row["value"] for row in spark.sql(f"SHOW TBLPROPERTIES {name}").collect()
    }
    assert properties["delta.appendOnly"] == "true"
    spark.sql(f"DROP TABLE {name}")


def test_a_row_that_breaks_a_constraint_is_refused_and_nothing_of_its_batch_stays(
    spark: Any, tmp_path: Path
) -> None:
    place = f"delta.`{tmp_path}/t`"
    writer = start(spark, DeltaSink(path=str(tmp_path / "t")))
    spark.sql(f"ALTER TABLE {place} ADD CONSTRAINT positive CHECK (id > 0)")

    with pytest.raises(RefusedError, match=r"refuses a row.*positive"):
        write(spark, writer, 0, (1, "a"), (-1, "b"))
    write(spark, writer, 1, (2, "c"))

    assert [tuple(row) for row in spark.table(place).collect()] == [(2, "c")]


def test_a_folder_of_other_files_is_refused(spark: Any, tmp_path: Path) -> None:
    spark.range(1).write.parquet(str(tmp_path / "t"))
    with pytest.raises(ConfigError, match="files that are no Delta table"):
        start(spark, DeltaSink(path=str(tmp_path / "t")))


def test_removing_old_files_keeps_the_marks(spark: Any, tmp_path: Path) -> None:
    writer = start(spark, DeltaSink(path=str(tmp_path / "t"), compact={"keep": "1h"}))
    for number in range(3):
        batch = write(spark, writer, number, (number, "a"))
    writer.maintain(batch)
    write(spark, writer, 2, (2, "a"))

    history = spark.sql(f"DESCRIBE HISTORY delta.`{tmp_path}/t`").collect()
    assert {"OPTIMIZE", "VACUUM END"} <= {row["operation"] for row in history}
    assert spark.table(f"delta.`{tmp_path}/t`").count() == 3


def test_marks_of_an_older_release_are_known_without_ranges(spark: Any, tmp_path: Path) -> None:
    place = str(tmp_path / "t")
    writer = start(spark, DeltaSink(path=place))
    rows = spark.createDataFrame([(1, "a")], ROWS)
    numbered = {"txnAppId": "penstock~p~0", "txnVersion": str(3 << 24)}
    rows.write.format("delta").options(**numbered).mode("append").save(place)

    assert writer.last_write() == LastWrite(Mark(0, 3, 0))
    write(spark, writer, 3, (1, "a"))
    assert writer.claim(7) == LastWrite(Mark(0, 3, 0))
    assert spark.read.format("delta").load(place).count() == 1


def test_ranges_are_found_past_the_commits_of_others(spark: Any, tmp_path: Path) -> None:
    place = str(tmp_path / "t")
    writer = start(spark, DeltaSink(path=place, properties={"delta.checkpointInterval": "3"}))
    rows = spark.createDataFrame([(1, "a")], ROWS).coalesce(1)
    batch = Batch(rows, "p", 5, 0, CONNECTION, {("t", 0): (3, 9)}, delivery=Delivery.EXACTLY_ONCE)
    writer.write(batch)
    for number in range(6):
        writer.write(replace(batch, pipeline="q", id=number))
    spark.sql(f"OPTIMIZE delta.`{place}`")

    assert writer.last_write() == LastWrite(Mark(5, 0, 0), {("t", 0): (3, 9)})


def test_a_table_whose_log_has_a_checkpoint_is_opened_by_any_thread(
    spark: Any, tmp_path: Path
) -> None:
    # The second start of a pipeline, after a failure, is in another thread than the first. A process
    # that was killed after its commit left no checksum, from which Delta knows the table's protocol.
    sink = DeltaSink(path=str(tmp_path / "t"), properties={"delta.checkpointInterval": "2"})
    writer = start(spark, sink)
    batches = [write(spark, writer, number, (number, "a")) for number in range(5)]
    assert list((tmp_path / "t" / "_delta_log").glob("*.checkpoint.parquet"))
    for checksum in (tmp_path / "t" / "_delta_log").glob("*.crc"):
        checksum.unlink()
    spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()

    def last_write() -> LastWrite | None:
        opening = Opening(spark_session(), "p", CONNECTION, Delivery.EXACTLY_ONCE)
        return sink.open(opening).last_write()

    with ThreadPoolExecutor(1) as pool:
        known = pool.submit(last_write).result()
    assert known is not None
    assert known.mark == batches[-1].mark
