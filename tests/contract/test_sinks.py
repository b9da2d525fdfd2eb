"""What every sink promises, run against each of them: the rows arrive, all types, batch after batch."""

from __future__ import annotations

import io
from collections.abc import Callable
from contextlib import redirect_stdout
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import orjson
import pyarrow.parquet as pq
import pytest
from pyspark.sql.types import StructType
from tests.contract.labels import writes_that_look_alike
from tests.services.postgres import PASSWORD

from penstock import Connection, memory_table
from penstock.pipeline import Batch, Delivery, Opening, registry
from penstock.testing import fill, read_all

SCHEMA = (
    "id bigint, name string, price decimal(10,2), day date, at timestamp, tags array<string>, "
    "quote struct<bid:double,ask:double>, extra map<string,int>, flag boolean"
)
ALL = [
    "console",
    "delta",
    "discard",
    "files",
    "iceberg",
    "database",
    "kafka",
    "memory",
    "text_file",
]
MOMENT = datetime(2024, 1, 2, 3, 4, 5, tzinfo=timezone.utc)


def schema_of(ddl: str) -> Any:
    return StructType.fromDDL(ddl)


def row(number: int) -> tuple[Any, ...]:
    return (
        number, f"n{number}", Decimal("1.50"), date(2024, 1, 2), MOMENT, ["a", None],
        {"bid": 1.0, "ask": None}, {"x": 1}, None,
    )  # fmt: skip


@pytest.fixture
def targets(
    connection: Connection, unique: str, tmp_path: Any, postgres: Any, spark: Any
) -> dict[str, Any]:
    """For each sink: its options, and how to read back the ids that arrived (None: it keeps none)."""
    printed = io.StringIO()

    def from_topic() -> list[int]:
        return [orjson.loads(record.value)["id"] for record in read_all(connection, unique)]

    fill(connection, unique, [])
    return {
        "files": (
            {"path": str(tmp_path / "table")},
            lambda: pq.read_table(tmp_path / "table").column("id").to_pylist(),
        ),
        "delta": (
            {"path": str(tmp_path / "delta")},
            lambda: in_lake(spark, "delta", tmp_path).column("id").to_pylist(),
        ),
        "iceberg": (
            {"warehouse": str(tmp_path), "table": "db.iceberg"},
            lambda: in_lake(spark, "iceberg", tmp_path).column("id").to_pylist(),
        ),
        "memory": (
            {"table": unique},
            lambda: memory_table(unique).to_arrow().column("id").to_pylist(),
        ),
        "database": (
            {"url": postgres.url, "password": PASSWORD, "table": unique},
            lambda: postgres.values(unique, "id"),
        ),
        "kafka": ({"topic": unique}, from_topic),
        "console": ({"rows": 10}, lambda: [n for n in range(9) if f" n{n} " in printed.getvalue()]),
        "discard": ({}, None),
        "text_file": (
            {"path": str(tmp_path / "lines"), "column": "id"},
            lambda: [int(line) for line in (tmp_path / "lines").read_text().splitlines()],
        ),
        "printed": printed,
    }


def in_lake(spark: Any, kind: str, folder: Any) -> Any:
    place = f"{folder}/delta" if kind == "delta" else f"{folder}/db/iceberg"
    return spark.read.format(kind).load(place).toArrow()


# Sinks that send messages have tests of their own, with their servers: they refuse rows one by one.
MESSAGES = {"http", "jms", "opensearch", "rabbitmq"}
# Takes no row at all: it ends the pipeline.
NO_ROWS = {"stop"}


def test_every_sink_is_here(targets: dict[str, Any]) -> None:
    assert sorted((targets.keys() - {"printed"}) | MESSAGES | NO_ROWS) == registry.names("sink")


@pytest.mark.by_turns
@pytest.mark.parametrize("name", ALL)
def test_rows_of_all_types_arrive_batch_after_batch(
    name: str, targets: dict[str, Any], spark: Any, connection: Connection
) -> None:
    options, read = targets[name]
    sink: Any = registry.component("sink", name).model_validate(options)

    with (
        redirect_stdout(targets["printed"]),
        sink.open(Opening(spark, "p", connection)) as writer,
    ):
        writer.prepare(schema_of(SCHEMA))
        for batch_id, numbers in enumerate([[1, 2], [], [3]]):
            rows = spark.createDataFrame([row(n) for n in numbers], SCHEMA)
            batch = Batch(rows, "p", 0, batch_id, connection)
            writer.write(batch)
            writer.maintain(batch)

    if read is not None:
        assert sorted(read()) == [1, 2, 3]


def test_values_keep_their_types_in_tables(
    targets: dict[str, Any], spark: Any, connection: Connection, tmp_path: Any, unique: str
) -> None:
    readers: dict[str, Callable[[], Any]] = {
        "files": lambda: pq.read_table(tmp_path / "table"),
        "memory": lambda: memory_table(unique).to_arrow(),
        "delta": lambda: in_lake(spark, "delta", tmp_path),
        "iceberg": lambda: in_lake(spark, "iceberg", tmp_path),
    }
    for name, read in readers.items():
        sink: Any = registry.component("sink", name).model_validate(targets[name][0])
        with sink.open(Opening(spark, "p", connection)) as writer:
            writer.prepare(schema_of(SCHEMA))
            writer.write(Batch(spark.createDataFrame([row(7)], SCHEMA), "p", 0, 0, connection))

        (found,) = read().to_pylist()

        assert found["price"] == Decimal("1.50")
        assert found["day"] == date(2024, 1, 2)
        assert found["at"].replace(tzinfo=timezone.utc) == MOMENT
        assert found["tags"] == ["a", None]
        assert found["quote"] == {"bid": 1.0, "ask": None}
        assert dict(found["extra"]) == {"x": 1}
        assert found["flag"] is None


EXACT = ["delta", "files", "iceberg", "database", "kafka", "memory"]


@pytest.mark.parametrize("name", ALL)
def test_every_sink_says_what_it_promises(name: str) -> None:
    sink: Any = registry.component("sink", name)
    assert Delivery.AT_LEAST_ONCE in sink.delivers
    assert (Delivery.EXACTLY_ONCE in sink.delivers) == (name in EXACT)
    assert len(sink.__doc__.splitlines()[0]) > 20


@pytest.mark.by_turns
@pytest.mark.parametrize("name", EXACT)
def test_a_batch_that_is_run_again_replaces_what_it_wrote(
    name: str, targets: dict[str, Any], spark: Any, connection: Connection
) -> None:
    options, read = targets[name]
    sink: Any = registry.component("sink", name).model_validate(options)
    exact = Delivery.EXACTLY_ONCE
    writers: dict[str, Any] = {}

    def write(pipeline: str, batch_id: int, part: int, numbers: list[int]) -> None:
        if pipeline not in writers:
            writers[pipeline] = sink.open(Opening(spark, pipeline, connection, exact))
            writers[pipeline].prepare(schema_of(SCHEMA))
        rows = spark.createDataFrame([row(n) for n in numbers], SCHEMA)
        batch = Batch(rows, pipeline, 1, batch_id, connection, part=part, delivery=exact)
        writers[pipeline].write(batch)

    expected = writes_that_look_alike(write)

    assert sorted(read()) == expected


@pytest.mark.by_turns
@pytest.mark.parametrize("text", ["json", "csv"])
def test_files_of_text_promise_the_same(
    text: str, spark: Any, connection: Connection, tmp_path: Any
) -> None:
    def target(name: str) -> dict[str, Any]:
        path = str(tmp_path / name)
        read = spark.read.schema(SCHEMA if text == "json" else "id bigint, name string")
        files = read.option("header", "true").format(text)
        options = {"path": path, "format": text}
        found = lambda: [row.id for row in files.load(path).collect()]  # noqa: E731
        return {"files": (options, found), "printed": io.StringIO()}

    test_rows_of_all_types_arrive_batch_after_batch("files", target("a"), spark, connection)
    test_a_batch_that_is_run_again_replaces_what_it_wrote("files", target("b"), spark, connection)


@pytest.mark.parametrize("name", ["delta", "files", "iceberg"])
def test_what_a_table_holds_can_be_read_back(
    name: str, targets: dict[str, Any], spark: Any, connection: Connection
) -> None:
    sink: Any = registry.component("sink", name).model_validate(targets[name][0])
    with sink.open(Opening(spark, "p", connection)) as writer:
        assert writer.read_back(schema_of(SCHEMA)) is None
        writer.prepare(schema_of(SCHEMA))
        writer.write(Batch(spark.createDataFrame([row(1), row(2)], SCHEMA), "p", 0, 0, connection))

        found = writer.read_back(schema_of(SCHEMA)).collect()
    assert sorted(each.id for each in found) == [1, 2]
