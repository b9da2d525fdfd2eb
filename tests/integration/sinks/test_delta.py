"""The sink `delta`: what only Delta tables have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.types import StructType

from penstock.config import Connection
from penstock.errors import ConfigError, RefusedError
from penstock.pipeline import Batch, Delivery, Opening
from penstock.sinks.delta import DeltaSink

CONNECTION = Connection(brokers="nowhere:1")
ROWS = "id bigint, name string"


@pytest.fixture(scope="module")
def spark() -> Any:
    from penstock.engine import spark_session

    return spark_session()


def start(spark: Any, sink: DeltaSink) -> DeltaSink:
    schema = StructType.fromDDL(ROWS)
    sink.prepare(Opening(spark, schema, "p", CONNECTION, Delivery.EXACTLY_ONCE))
    return sink


def write(spark: Any, sink: DeltaSink, number: int, *rows: Any) -> Batch:
    frame = spark.createDataFrame(rows, ROWS).coalesce(1)
    batch = Batch(frame, "p", 0, number, CONNECTION, delivery=Delivery.EXACTLY_ONCE)
    sink.write(batch)
    return batch


def test_a_table_has_a_path_or_a_name() -> None:
    for options in ({}, {"path": "/t", "table": "t"}):
        with pytest.raises(ValueError, match="either 'path'"):
            DeltaSink.model_validate(options)


def test_a_table_in_sparks_catalog_is_made_by_name(spark: Any, unique: str) -> None:
    name = unique.replace("-", "_")
    sink = start(spark, DeltaSink(table=f"default.{name}", properties={"delta.appendOnly": "true"}))
    write(spark, sink, 0, (1, "a"))
    write(spark, sink, 0, (1, "a"))

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
    sink = start(spark, DeltaSink(path=str(tmp_path / "t")))
    spark.sql(f"ALTER TABLE {place} ADD CONSTRAINT positive CHECK (id > 0)")

    with pytest.raises(RefusedError, match=r"refuses a row.*positive"):
        write(spark, sink, 0, (1, "a"), (-1, "b"))
    write(spark, sink, 1, (2, "c"))

    assert [tuple(row) for row in spark.table(place).collect()] == [(2, "c")]


def test_a_folder_of_other_files_is_refused(spark: Any, tmp_path: Path) -> None:
    spark.range(1).write.parquet(str(tmp_path / "t"))
    with pytest.raises(ConfigError, match="files that are no Delta table"):
        start(spark, DeltaSink(path=str(tmp_path / "t")))


def test_removing_old_files_keeps_the_marks(spark: Any, tmp_path: Path) -> None:
    sink = start(spark, DeltaSink(path=str(tmp_path / "t"), compact={"keep": "1h"}))
    for number in range(3):
        batch = write(spark, sink, number, (number, "a"))
    sink.tidy(batch)
    write(spark, sink, 2, (2, "a"))

    history = spark.sql(f"DESCRIBE HISTORY delta.`{tmp_path}/t`").collect()
    assert {"OPTIMIZE", "VACUUM END"} <= {row["operation"] for row in history}
    assert spark.table(f"delta.`{tmp_path}/t`").count() == 3
