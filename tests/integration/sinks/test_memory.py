"""The sink `memory`: rows and keys in this process, what they may become, and reading them by SQL."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql.types import StructType

from penstock import memory_table, start
from penstock.config import Connection
from penstock.errors import ConfigError, FencedError, MissingExtraError
from penstock.pipeline import Batch, Delivery, Opening
from penstock.sinks.memory import MemorySink
from penstock.testing import fill

CONNECTION = Connection(brokers="nowhere:1")
CHANGES = "id int, n int, gone boolean"


@pytest.fixture(scope="module")
def spark() -> Any:
    from penstock.engine import spark_session

    return spark_session()


class Table:
    """A sink with its table."""

    def __init__(self, spark: Any, name: str, **options: Any) -> None:
        self.spark = spark
        self.name = name
        sink = MemorySink.model_validate({"table": name, **options})
        self.writer = sink.open(Opening(spark, name, CONNECTION))

    def start(self, schema: str) -> Table:
        self.writer.prepare(StructType.fromDDL(schema))
        return self

    def write(self, number: int, rows: list[Any], schema: str, **more: Any) -> None:
        # One partition: the order of the rows is the order in which they were written.
        frame = self.spark.createDataFrame(rows, schema).coalesce(1)
        batch = Batch(
            frame, self.name, 0, number, CONNECTION, delivery=Delivery.EXACTLY_ONCE
        )  # fmt: skip
        self.writer.write(replace(batch, **more))

    @property
    def rows(self) -> list[dict[str, Any]]:
        return memory_table(self.name).to_arrow().to_pylist()


@pytest.fixture
def keyed(spark: Any, unique: str) -> Table:
    return Table(spark, unique, mode="upsert", key="id", delete_when="gone").start(CHANGES)


def test_a_row_replaces_the_one_with_its_key_and_the_newest_of_a_batch_counts(
    keyed: Table,
) -> None:
    keyed.write(0, [(1, 1, False), (2, 1, False), (1, 2, None)], CHANGES)
    keyed.write(1, [(2, 3, False), (3, 3, False)], CHANGES)
    assert keyed.rows == [{"id": 1, "n": 2}, {"id": 2, "n": 3}, {"id": 3, "n": 3}]


def test_a_row_that_says_so_deletes_the_one_with_its_key(keyed: Table) -> None:
    keyed.write(0, [(1, 1, False), (2, 1, False), (3, 1, True)], CHANGES)
    keyed.write(1, [(1, 0, True), (9, 0, True), (2, 5, True), (2, 6, False)], CHANGES)
    assert keyed.rows == [{"id": 2, "n": 6}]


def test_a_key_may_be_several_columns_of_any_single_kind(spark: Any, unique: str) -> None:
    schema = "day date, name string, at timestamp, price decimal(10,2), n int"
    table = Table(spark, unique, mode="upsert", key=["day", "name", "at", "price"]).start(schema)
    query = (
        "SELECT DATE'2024-01-02' AS day, name, TIMESTAMP'2024-01-02 03:04:05' AS at, "
        "CAST(1.5 AS DECIMAL(10,2)) AS price, {n} AS n FROM VALUES ('a'), (NULL) AS t(name)"
    )
    for number in (1, 2):
        batch = Batch(spark.sql(query.format(n=number)), unique, 0, number, CONNECTION)
        table.writer.write(batch)
    assert [(row["name"], row["n"]) for row in table.rows] == [("a", 2), (None, 2)]


def test_the_keys_that_were_not_written_for_the_longest_time_fall_out(
    spark: Any, unique: str
) -> None:
    table = Table(spark, unique, mode="upsert", key="id", limit=3).start("id int, n int")
    table.write(0, [(1, 0), (2, 0), (3, 0)], "id int, n int")
    table.write(1, [(1, 1), (4, 1)], "id int, n int")
    assert [row["id"] for row in table.rows] == [3, 1, 4]
    assert memory_table(unique).dropped == 1


def test_the_oldest_rows_fall_out(spark: Any, unique: str) -> None:
    table = Table(spark, unique, limit=3).start("id int")
    for number in range(3):
        table.write(number, [(2 * number,), (2 * number + 1,)], "id int")
    assert [row["id"] for row in table.rows] == [3, 4, 5]
    assert memory_table(unique).dropped == 3


def test_many_small_batches_keep_every_key_right(spark: Any, unique: str) -> None:
    import pyarrow as pa

    from penstock.sinks.memory.memory_rows import Keyed

    rows, expected = Keyed(("id",)), {}
    for number in range(1200):
        ids = [(number * 7 + step) % 5000 for step in range(40)]
        rows.add(pa.table({"id": ids, "n": [number] * 40}), None, limit=10_000)
        for each in ids:
            expected.pop(each, None)
            expected[each] = number
    found = rows.snapshot().to_pylist()
    assert [(row["id"], row["n"]) for row in found] == list(expected.items())


def test_a_write_that_comes_again_is_skipped_and_a_later_part_is_not(
    spark: Any, unique: str
) -> None:
    table = Table(spark, unique).start("id int")
    for _ in range(2):
        table.write(0, [(1,)], "id int")
        table.write(1, [(2,)], "id int", part=1)
        table.write(1, [(3,)], "id int", part=2)
    for _ in range(2):
        table.write(0, [(4,)], "id int", epoch=1)
    with pytest.raises(FencedError, match="another process runs the pipeline"):
        table.write(2, [(6,)], "id int")
    # Another pipeline has marks of its own.
    table.write(0, [(5,)], "id int", pipeline=f"{unique}.dead-letters")
    assert [row["id"] for row in table.rows] == [1, 2, 3, 4, 5]


def test_without_that_promise_a_batch_that_comes_again_is_there_twice(
    spark: Any, unique: str
) -> None:
    table = Table(spark, unique)
    for _ in range(2):
        table.write(0, [(1,)], "id int", delivery=Delivery.AT_LEAST_ONCE)
    assert [row["id"] for row in table.rows] == [1, 1]


def test_a_table_gains_columns_and_wider_types(spark: Any, unique: str) -> None:
    table = Table(spark, unique).start("id int, p decimal(4,2)")
    table.write(0, [(1, None)], "id int, p decimal(4,2)")
    table.start("id bigint, p decimal(10,2), name string")
    assert table.rows == [{"id": 1, "p": None, "name": None}]
    table.write(1, [(2**40, "a")], "ID bigint, name string")
    assert table.rows[1] == {"id": 2**40, "p": None, "name": "a"}


def test_anything_else_is_refused(spark: Any, unique: str) -> None:
    table = Table(spark, unique).start("id int")
    with pytest.raises(ConfigError, match="'id' as int, and the rows bring string"):
        table.start("id string")
    with pytest.raises(ConfigError, match="'tags', which is array<int>: a key is a single value"):
        Table(spark, f"{unique}-2", mode="upsert", key="tags").start("tags array<int>")


def test_a_table_with_rows_keeps_its_key_until_it_is_cleared(spark: Any, unique: str) -> None:
    Table(spark, unique).start("id int").write(0, [(1,)], "id int")
    keyed = Table(spark, unique, mode="upsert", key="id")
    with pytest.raises(ConfigError, match="has rows and no key, and is now to have the key id"):
        keyed.start("id int")

    memory_table(unique).clear()

    keyed.start("id int").write(0, [(1,), (1,)], "id int")
    assert keyed.rows == [{"id": 1}]


# -- SQL


def test_sql_sees_all_tables_of_the_process_by_name(spark: Any, unique: str) -> None:
    other = f"{unique}-other"
    Table(spark, unique).start("id int, price double").write(
        0, [(1, 2.0), (1, 4.0), (2, 8.0)], "id int, price double"
    )
    Table(spark, other).start("id int, name string").write(0, [(1, "a")], "id int, name string")

    found = memory_table(unique).sql(
        f'SELECT name, avg(price) AS mean FROM "{unique}" JOIN "{other}" USING (id) GROUP BY name'
    )

    assert found.to_pylist() == [{"name": "a", "mean": 3.0}]


def test_sql_has_the_columns_before_the_first_row(spark: Any, unique: str) -> None:
    Table(spark, unique).start("id int")
    assert memory_table(unique).sql(f'SELECT count(id) AS n FROM "{unique}"').to_pylist() == [
        {"n": 0}
    ]


@pytest.mark.parametrize(
    ("select", "reported"),
    [
        ("CREATE TABLE t (a int)", "can only be read, with one SELECT"),
        ("SELECT 1; SELECT 2", "can only be read, with one SELECT"),
        ("COPY (SELECT 1) TO 'x.csv'", "can only be read, with one SELECT"),
        ("SELECT * FROM 'x.csv'", "cannot be run"),
        ("SELECT * FROM nowhere", "Table with name nowhere does not exist"),
    ],
)
def test_sql_only_reads_and_only_tables(unique: str, select: str, reported: str) -> None:
    with pytest.raises(ConfigError, match=reported):
        memory_table(unique).sql(select)


def test_sql_without_duckdb_says_what_to_install(
    unique: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(MissingExtraError, match=r"penstock\[duckdb\]"):
        memory_table(unique).sql("SELECT 1")


# -- as a pipeline


def test_a_pipeline_that_is_started_again_goes_on_with_the_table(
    connection: Connection, topic: Any, pipeline: Any, unique: str
) -> None:
    definition = pipeline(
        source={"kafka": topic()},
        decode={"json": {"schema": CHANGES}},
        sink={"memory": {"table": unique, "mode": "upsert", "key": "id", "delete_when": "gone"}},
        delivery="exactly-once",
    )
    for values in (
        [{"id": 1, "n": 1}, {"id": 2, "n": 1}],
        [{"id": 1, "n": 2}, {"id": 2, "gone": True}],
    ):
        fill(connection, topic(), values)
        with start(definition, once=True) as running:
            running.wait(120)
    assert memory_table(unique).to_arrow().to_pylist() == [{"id": 1, "n": 2}]
