"""What a failure is does not depend on what is in the records."""

from __future__ import annotations

import os
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import orjson
import pyarrow as pa
import pytest
from pyspark.sql.types import StructType
from tests.services.hostile import EVERYTHING, PHRASES

from penstock import Connection, start
from penstock.config.secrets import mask
from penstock.engine.reasons import failure, is_transient, refusal
from penstock.error_frame import in_worker
from penstock.errors import (
    PipelineFailedError,
    RefusedError,
    SetupError,
    TransientError,
)
from penstock.pipeline import Opening
from penstock.pipeline.values import Function
from penstock.sinks.files.file_writing import storage_errors
from penstock.sinks.lake.lake_failures import lake_errors
from penstock.steps.python import PythonStep
from penstock.testing import eventually, fill, read_all


@pytest.fixture(scope="module")
def spark() -> Any:
    from penstock.engine import spark_session

    return spark_session()


def refusing(rows: pa.Table) -> pa.Table:
    """Raises with the first text that is no number."""
    for text in rows.column("v").to_pylist():
        if not text.isdigit():
            raise ValueError(text)
    return rows


def computed(rows: Any) -> Exception:
    """What comes out of rows that fail, past everything that looks at failures of sinks."""
    with pytest.raises(Exception) as raised, storage_errors("/t"), lake_errors("the table t"):
        rows.write.format("noop").mode("overwrite").save()
    return raised.value


def test_a_value_that_cannot_be_cast_is_refused_by_the_step_whatever_is_in_it(spark: Any) -> None:
    for text in PHRASES:
        rows = (
            spark.createDataFrame([(text,)], "v string")
            .coalesce(1)
            .selectExpr("cast(v AS int) AS n")
        )
        error = computed(rows)
        assert refusal(error), text
        stage, kind, message = refusal(error) or ("", "", "")
        assert (stage, kind) == ("step", "CAST_INVALID_INPUT"), text
        quoted = text.replace("\\", "\\\\").replace("'", "\\'")
        assert message.startswith(mask(f"The value '{quoted}' of the type")), text
        assert message.endswith(" instead."), text
        assert not is_transient(error), text


def test_what_a_python_step_raises_is_refused_by_the_step_whatever_is_in_it(spark: Any) -> None:
    step = PythonStep(function=Function.read(refusing))
    for text in [*PHRASES, "a sign that no encoding has: \ud800", "x" * 3_000_000]:
        given = spark.range(1).coalesce(1)
        shown = text.encode("utf-8", "backslashreplace").decode()

        def fail(batches: Any, text: str = text) -> Any:
            for _ in batches:
                raise RefusedError(f"m:f: ValueError: {text}", stage="step")
            yield from ()

        rows = given.mapInArrow(in_worker(fail, "step"), "v string")
        found = refusal(computed(rows))
        assert found is not None, text
        assert found[:2] == ("step", "RefusedError")
        assert found[2] == mask(f"m:f: ValueError: {shown}"[:10_000])
    rows = step.apply(spark.createDataFrame([(EVERYTHING,)], "v string"))
    stage, kind, message = refusal(computed(rows)) or ("", "", "")
    assert (stage, kind) == ("step", "RefusedError")
    assert message.endswith(mask(f"refusing: ValueError: {EVERYTHING}"))


def test_an_error_of_ours_crosses_from_a_worker_with_all_it_says(spark: Any) -> None:
    def away(batches: Any) -> Any:
        for _ in batches:
            raise TransientError(EVERYTHING, retry_after=42.5)
        yield from ()

    rows = spark.range(1).mapInArrow(in_worker(away, "decode"), "n int")
    error = computed(rows)
    assert refusal(error) is None
    found = failure(error, "p", None)
    assert isinstance(found, TransientError)
    assert (str(found), found.retry_after) == (mask(EVERYTHING), 42.5)


def test_a_fault_of_the_code_fails_the_pipeline_whatever_it_says(spark: Any) -> None:
    for text in (EVERYTHING, "\npenstock.errors.TransientError: x"):

        def broken(batches: Any, text: str = text) -> Any:
            for _ in batches:
                raise KeyError(text)
            yield from ()

        for rows in (
            spark.range(1).mapInArrow(in_worker(broken, "step"), "n int"),
            spark.range(1).mapInArrow(broken, "n int"),
        ):
            error = computed(rows)
            assert refusal(error) is None
            assert type(failure(error, "p", None)) is PipelineFailedError


@pytest.fixture
def tiny(tmp_path: Path) -> Iterator[Path]:
    """A disk of 256 kB; a folder where this machine does not allow one to be mounted."""
    place = tmp_path / "tiny"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(place)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("needs the right to mount a file system")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.mark.parametrize("kind", ["parquet", "delta"])
def test_a_full_disk_is_waited_for(spark: Any, tiny: Path, kind: str) -> None:
    rows = spark.range(100_000).selectExpr("id", "uuid() AS text")
    guard = lake_errors("the table t") if kind == "delta" else storage_errors(str(tiny))
    with pytest.raises(TransientError, match="no space left"), guard:
        rows.write.format(kind).save(f"{tiny}/table")
    with pytest.raises(Exception) as raised:
        rows.write.format(kind).save(f"{tiny}/other")
    assert is_transient(raised.value)


def test_a_disk_that_may_not_be_written_is_not_waited_for(spark: Any, tiny: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(tiny)], check=True)
    with (
        pytest.raises(SetupError, match="choose a place that this user may write"),
        lake_errors("the table t"),
    ):
        spark.range(1).write.format("delta").save(f"{tiny}/table")
    (tiny.parent / "file").write_text("x")
    with pytest.raises(SetupError, match="Not a directory"), lake_errors("the table t"):
        spark.range(1).write.format("delta").save(f"{tiny.parent}/file/table")


def test_a_folder_that_cannot_be_named_is_a_refusal(spark: Any, tmp_path: Path) -> None:
    rows = spark.createDataFrame([(f"{'No space left on device' * 20}", 1)], "p string, n int")
    for guard, kind in ((storage_errors("/t"), "parquet"), (lake_errors("t"), "delta")):
        with pytest.raises(RefusedError, match="too long to name a folder"), guard:
            rows.write.format(kind).partitionBy("p").save(str(tmp_path / kind))


def test_another_writer_of_a_delta_table_is_transient(spark: Any, tmp_path: Path) -> None:
    table = f"delta.`{tmp_path}/table`"
    spark.range(10).selectExpr("id", "id AS n").write.format("delta").save(f"{tmp_path}/table")
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.isolationLevel' = 'Serializable')")
    begun, changed = tmp_path / "begun", tmp_path / "changed"

    def wait(batches: Any) -> Any:
        begun.touch()
        eventually(changed.exists)
        yield from batches

    def change() -> None:
        eventually(begun.exists)
        spark.sql(f"DELETE FROM {table}")
        changed.touch()

    rows = spark.range(0, 10, 1, 1).mapInArrow(wait, "id long")  # one task: the other needs a core
    rows.createOrReplaceTempView("waiting")
    other = Thread(target=change)
    other.start()
    with pytest.raises(TransientError, match="changed by another writer"), lake_errors("t"):
        spark.sql(
            f"MERGE INTO {table} t USING waiting w ON t.id = w.id "
            "WHEN MATCHED THEN UPDATE SET n = 7 WHEN NOT MATCHED THEN INSERT (id, n) VALUES (w.id, 0)"
        )
    other.join()
    assert changed.exists()


def test_a_broker_that_is_away_is_waited_for(spark: Any) -> None:
    frame = spark.createDataFrame([("x",)], "value string").write.format("kafka").mode("append")
    options = {"kafka.bootstrap.servers": "127.0.0.1:1", "kafka.max.block.ms": "500", "topic": "t"}
    with pytest.raises(Exception) as raised:
        frame.options(**options).save()
    assert is_transient(raised.value)
    assert refusal(raised.value) is None


def checked(rows: pa.Table) -> pa.Table:
    """Raises with the value of a row that asks for it."""
    for kind, value in zip(
        rows.column("kind").to_pylist(), rows.column("v").to_pylist(), strict=True
    ):
        if kind == "python":
            raise ValueError(value)
    return rows


SQL = """
    SELECT n, kind, v, CASE WHEN kind = 'cast' THEN CAST(v AS int) END AS number,
           CASE WHEN kind = 'sink' THEN v ELSE '{good}' END AS place FROM rows
"""
BAD = {1: "cast", 2: "python", 3: "sink"}
GOOD = [0, 4]


def sqlite_sink(folder: Path, _topic: str) -> dict[str, Any]:
    with sqlite3.connect(folder / "db") as database:
        database.execute(
            "CREATE TABLE t (n INTEGER, kind TEXT, v TEXT, number INTEGER, "
            "place TEXT CHECK (length(place) < 200))"
        )
    return {"database": {"url": f"sqlite:///{folder}/db", "table": "t"}}


SINKS: dict[str, Callable[[Path, str], dict[str, Any]]] = {
    "files": lambda folder, _: {"files": {"path": f"{folder}/t", "partition_by": ["place"]}},
    "delta": lambda folder, _: {"delta": {"path": f"{folder}/t", "partition_by": ["place"]}},
    "iceberg": lambda folder, _: {
        "iceberg": {"warehouse": str(folder), "table": "db.t", "partition_by": ["place"]}
    },
    "database": sqlite_sink,
    "kafka": lambda _, topic: {"kafka": {"topic": topic, "topic_column": "place"}},
}


@pytest.mark.by_turns
@pytest.mark.parametrize(
    ("name", "delivery"),
    [
        ("files", "exactly-once"),
        ("delta", "exactly-once"),
        ("iceberg", "exactly-once"),
        ("database", "exactly-once"),
        ("kafka", "exactly-once"),
        ("kafka", "at-least-once"),
    ],
)
def test_records_that_quote_failures_are_dead_letters_of_their_stage_and_the_others_are_written(
    connection: Connection,
    topic: Any,
    pipeline: Any,
    unique: str,
    tmp_path: Path,
    name: str,
    delivery: str,
) -> None:
    records: list[Any] = [
        {"n": n, "kind": BAD.get(n, "good"), "v": EVERYTHING} for n in sorted([*BAD, *GOOD])
    ]
    fill(connection, topic(), [*records, EVERYTHING.encode()], partitions=1)
    definition = pipeline(
        source={"kafka": topic()},
        decode={"json": {"schema": "n int, kind string, v string"}},
        steps=[{"python": checked}, {"sql": SQL.format(good=topic("out"))}],
        sink=SINKS[name](tmp_path, topic("out")),
        delivery=delivery,
    )

    with start(definition, once=True) as running:
        running.wait(280)
        progress = running.progress()

    assert (progress.rows, progress.failed, progress.restarts) == (2, 4, 0)
    assert sorted(written(definition, connection, topic("out"))) == GOOD
    letters = [dict(each.headers) for each in read_all(connection, f"{unique}.dead-letters")]
    found = {each["penstock.offset"]: each["penstock.stage"] for each in letters}
    assert found == {b"1": b"step", b"2": b"step", b"3": b"write", b"5": b"decode"}
    (step,) = (each for each in letters if each["penstock.offset"] == b"2")
    assert step["penstock.error"].decode().endswith(mask(f"checked: ValueError: {EVERYTHING}"))


def written(definition: Any, connection: Connection, topic: str) -> list[int]:
    if definition.sink.name == "kafka":
        return [orjson.loads(each.value)["n"] for each in read_all(connection, topic)]
    from penstock.engine import spark_session

    schema = StructType.fromDDL("n int, kind string, v string, number int, place string")
    writer = definition.sink.open(Opening(spark_session(), "p", connection))
    return [row["n"] for row in writer.read_back(schema).collect()]
