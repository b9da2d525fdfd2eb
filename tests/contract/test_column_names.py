"""Every sink and every step takes columns of any name: dots, backticks, spaces, commas, SQL's words."""

from __future__ import annotations

import io
import sqlite3
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.types import BooleanType, LongType, StringType, StructField, StructType
from tests.services.mariadb import PASSWORD as MARIADB_PASSWORD
from tests.services.postgres import PASSWORD

from penstock import Connection, memory_table
from penstock.jobs.job_table import Table
from penstock.pipeline import FAILED, ORIGIN, Batch, Delivery, Opening, registry
from penstock.pipeline.names import quoted
from penstock.testing import fill, read_all

NAMES = ["a.b", "a`b", "a b", "select", "a,b", "ä", 'a"b', "100%"]
# Each breaks another way of quoting; for what takes seconds per name.
HARD = ["a.b", "a`b", "a b"]
SCHEMA = StructType([StructField(name, StringType()) for name in [*NAMES, "n"]])
Made = dict[str, Any]
Case = tuple[str, Made, Callable[[], list[Made]]]


def values(number: int) -> Made:
    return {name: f"{name}-{number}" for name in [*NAMES, "n"]}


@pytest.fixture
def case(request: Any) -> Case:
    """A sink's name, its options, and what reads its rows back."""
    make: Callable[[Any], Case] = request.param
    return make(request)


def files(format: str, **options: Any) -> Callable[[Any], Case]:
    def make(request: Any) -> Case:
        path = str(request.getfixturevalue("tmp_path") / "table")
        reader = request.getfixturevalue("spark").read.options(header="true", escape='"')
        reader = reader.schema(SCHEMA)
        read = lambda: [  # noqa: E731
            row.asDict() for row in reader.format(format).load(path).collect()
        ]
        return "files", {"path": path, "format": format, **options}, read

    return make


def lake(kind: str, **options: Any) -> Callable[[Any], Case]:
    def make(request: Any) -> Case:
        folder, spark = request.getfixturevalue("tmp_path"), request.getfixturevalue("spark")
        place = {"path": f"{folder}/t"} if kind == "delta" else {"warehouse": str(folder)}
        named = {} if kind == "delta" else {"table": "db.t"}
        where = f"{folder}/t" if kind == "delta" else f"{folder}/db/t"
        read = lambda: [  # noqa: E731
            row.asDict() for row in spark.read.format(kind).load(where).collect()
        ]
        return kind, {**place, **named, **options}, read

    return make


def sqlite(**options: Any) -> Callable[[Any], Case]:
    def make(request: Any) -> Case:
        file = request.getfixturevalue("tmp_path") / "db"

        def read() -> list[Made]:
            with sqlite3.connect(file) as session:
                session.row_factory = sqlite3.Row
                return [dict(row) for row in session.execute("SELECT * FROM t")]

        return "database", {"url": f"sqlite:///{file}", "table": "t", **options}, read

    return make


def server(kind: str, password: str, **options: Any) -> Callable[[Any], Case]:
    def make(request: Any) -> Case:
        database, table = request.getfixturevalue(kind), request.getfixturevalue("unique")
        sign = '"' if kind == "postgres" else "`"

        def read() -> list[Made]:
            with database.connect() as session, session.cursor() as cursor:
                cursor.execute(f"SELECT * FROM {sign}{table}{sign}")
                names = [column[0] for column in cursor.description]
                return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

        given = {"url": database.url, "password": password, "table": table}
        return "database", {**given, **options}, read

    return make


def memory(**options: Any) -> Callable[[Any], Case]:
    def make(request: Any) -> Case:
        name = request.getfixturevalue("unique")
        return (
            "memory",
            {"table": name, **options},
            lambda: memory_table(name).to_arrow().to_pylist(),
        )

    return make


def kafka(**options: Any) -> Callable[[Any], Case]:
    def make(request: Any) -> Case:
        connection, topic = (request.getfixturevalue(name) for name in ("connection", "unique"))
        fill(connection, topic, [])
        found = lambda: [  # noqa: E731
            orjson.loads(record.value) for record in read_all(connection, topic)
        ]
        return "kafka", {"topic": topic, **options}, found

    return make


UPSERT = {"mode": "upsert", "key": NAMES}
SINKS = {
    "files-parquet": files("parquet"),
    "files-json": files("json"),
    "files-csv": files("csv"),
    "files-in-folders": files("parquet", partition_by=NAMES),
    "delta": lake("delta"),
    "delta-upsert": lake("delta", **UPSERT),
    "delta-in-folders": lake("delta", partition_by=NAMES),
    "iceberg": lake("iceberg"),
    "iceberg-upsert": lake("iceberg", **UPSERT),
    "iceberg-divided": lake("iceberg", partition_by=[quoted(name) for name in NAMES]),
    "sqlite": sqlite(),
    "sqlite-upsert": sqlite(**UPSERT),
    "postgresql": server("postgres", PASSWORD),
    "postgresql-upsert": server("postgres", PASSWORD, **UPSERT),
    "mariadb": server("mariadb", MARIADB_PASSWORD),
    "mariadb-upsert": server("mariadb", MARIADB_PASSWORD, **(UPSERT | {"key": NAMES[:3]})),
    "memory": memory(),
    "memory-upsert": memory(**UPSERT),
    "kafka": kafka(),
}


@pytest.mark.by_turns
@pytest.mark.parametrize("case", SINKS.values(), ids=SINKS, indirect=True)
def test_every_sink_writes_columns_of_any_name(
    case: Case, spark: Any, connection: Connection
) -> None:
    name, options, read = case
    sink: Any = registry.component("sink", name).model_validate(options)
    opening = Opening(spark, "p", connection, Delivery.EXACTLY_ONCE)
    for batch_id in range(2):
        writer = sink.open(opening)
        writer.prepare(SCHEMA)
        rows = spark.createDataFrame([values(batch_id)], SCHEMA)
        exact = {"delivery": Delivery.EXACTLY_ONCE}
        writer.write(Batch(rows, "p", 7, batch_id, connection, may_repeat=False, **exact))

    assert sorted(read(), key=lambda row: row["n"]) == [values(0), values(1)]


ADDED = ["sqlite", "delta", "iceberg", "files-parquet", "memory"]


@pytest.mark.by_turns
@pytest.mark.parametrize("case", [SINKS[name] for name in ADDED], ids=ADDED, indirect=True)
def test_columns_of_any_name_are_added_to_a_table(
    case: Case, spark: Any, connection: Connection
) -> None:
    name, options, read = case
    sink: Any = registry.component("sink", name).model_validate(options)
    for batch_id, schema in enumerate([StructType([SCHEMA["n"]]), SCHEMA]):
        writer = sink.open(Opening(spark, "p", connection))
        writer.prepare(schema)
        rows = [{field.name: values(batch_id)[field.name] for field in schema}]
        writer.write(Batch(spark.createDataFrame(rows, schema), "p", 7, batch_id, connection))

    first, second = sorted(read(), key=lambda row: row["n"])
    assert second == values(1)
    assert [first.get(each) for each in NAMES] == [None] * len(NAMES)


@pytest.mark.by_turns
@pytest.mark.parametrize("name", HARD)
def test_a_row_is_deleted_by_a_column_of_any_name(
    name: str, spark: Any, connection: Connection, tmp_path: Path, unique: str
) -> None:
    schema = StructType([StructField("id", LongType()), StructField(name, BooleanType())])
    upsert = {"mode": "upsert", "key": "id", "delete_when": name}
    targets = {
        "memory": {"table": unique},
        "database": {"url": f"sqlite:///{tmp_path}/db", "table": "t"},
        "delta": {"path": f"{tmp_path}/t"},
    }
    for kind, options in targets.items():
        sink: Any = registry.component("sink", kind).model_validate(options | upsert)
        writer = sink.open(Opening(spark, "p", connection))
        writer.prepare(schema)
        for batch_id, rows in enumerate([[(1, False), (2, None)], [(1, True)]]):
            frame = spark.createDataFrame(rows, schema)
            writer.write(Batch(frame, "p", 7, batch_id, connection))

    assert memory_table(unique).to_arrow().to_pylist() == [{"id": 2}]
    with sqlite3.connect(tmp_path / "db") as session:
        assert list(session.execute("SELECT * FROM t")) == [(2,)]
    assert [row.id for row in spark.read.format("delta").load(f"{tmp_path}/t").collect()] == [2]


@pytest.mark.parametrize("name", HARD)
def test_the_parts_of_a_record_are_columns_of_any_name(
    name: str, spark: Any, connection: Connection, topic: Callable[..., str]
) -> None:
    sent = topic("sent")
    fill(connection, sent, [])
    for batch_id, options in enumerate([{"key": name}, {"value": name}]):
        sink: Any = registry.component("sink", "kafka").model_validate({"topic": sent, **options})
        writer = sink.open(Opening(spark, "p", connection))
        rows = spark.createDataFrame([values(1)], SCHEMA)
        writer.write(Batch(rows, "p", 7, batch_id, connection))

    keyed, valued = read_all(connection, sent)
    assert keyed.key == f"{name}-1".encode()
    assert orjson.loads(keyed.value) == {k: v for k, v in values(1).items() if k != name}
    assert valued.value == f"{name}-1".encode()


def test_the_sinks_without_a_table_take_columns_of_any_name(
    spark: Any, connection: Connection
) -> None:
    printed = io.StringIO()
    for kind in ("console", "discard"):
        sink: Any = registry.component("sink", kind).model_validate({})
        writer = sink.open(Opening(spark, "p", connection))
        writer.prepare(SCHEMA)
        with redirect_stdout(printed):
            writer.write(Batch(spark.createDataFrame([values(1)], SCHEMA), "p", 7, 0, connection))

    assert all(f"{name}-1" in printed.getvalue() for name in NAMES)


def timed(spark: Any, time: str) -> Any:
    columns = ", ".join(f"'{name}-1' AS {quoted(name)}" for name in NAMES if name != time)
    return spark.sql(f"SELECT TIMESTAMP'2024-01-01 00:00:30' AS {quoted(time)}, {columns}, 5 AS n")


@pytest.mark.parametrize("time", HARD)
def test_the_steps_that_keep_state_take_columns_of_any_name(spark: Any, time: str) -> None:
    rows, others = timed(spark, time), [name for name in NAMES if name != time]
    step = registry.component("step", "aggregate").model_validate(
        {
            "time": time,
            "window": "1m",
            "by": others,
            "values": {f"{time} sum": "sum(n)", "x.y": f"max({quoted(time)})"},
        }
    )
    (window,) = step.apply(rows).collect()
    assert [window[name] for name in others] == [f"{name}-1" for name in others]
    assert window[f"{time} sum"] == 5

    session = step.model_copy(update={"window": None, "session": 60.0})
    assert session.apply(rows).first()[f"{time} sum"] == 5

    once = registry.component("step", "deduplicate").model_validate(
        {"time": time, "by": others, "within": "1m"}
    )
    assert once.apply(rows.union(rows)).count() == 1

    join = registry.component("step", "join").model_validate(
        {"time": time, "by": others, "source": {"kafka": "x"}, "other_time": time}
    )
    other = rows.drop("n").withColumnRenamed(time, "their.`time")
    join = join.model_copy(update={"other_time": "their.`time"})
    (pair,) = join.join(rows, other).collect()
    assert pair["their.`time"] == pair[time]
    assert pair["n"] == 5


@pytest.mark.parametrize("time", HARD)
def test_a_stream_goes_by_a_time_of_any_name(spark: Any, time: str, tmp_path: Path) -> None:
    from penstock.engine.stateful.late_rows import late_records
    from penstock.engine.stateful.plan import plan_of
    from penstock.engine.stateful.stateful_stream import rows_of, session_for_state
    from penstock.pipeline import Pipeline

    step = {"aggregate": {"time": time, "window": "1m", "values": {"n": "count(*)"}}}
    pipeline = Pipeline(
        name="p",
        source={"kafka": "t"},
        decode="raw",
        steps=[{"sql": f"SELECT *, timestamp AS {quoted(time)} FROM rows"}, step],
        sink="discard",
    )
    plan = plan_of(pipeline)
    records = spark.sql(
        "SELECT CAST('k' AS binary) AS key, CAST('v' AS binary) AS value, 't' AS topic, "
        "0 AS partition, 5L AS offset, TIMESTAMP'2024-01-01 00:00:30' AS timestamp, "
        "0 AS timestampType"
    )
    records.write.parquet(f"{tmp_path}/records")
    own = session_for_state(spark)
    stream = own.readStream.schema(records.schema).parquet(f"{tmp_path}/records")
    rows = plan.stream[0].apply(rows_of(plan, plan.branches[0], stream))
    found: list[Any] = []
    query = rows.writeStream.outputMode("update").trigger(availableNow=True)
    query = query.foreachBatch(lambda batch, _: found.extend(batch.collect()))
    query.option("checkpointLocation", f"{tmp_path}/state").start().awaitTermination()

    assert [row["n"] for row in found] == [1]
    traced = plan.branches[0].decode.traced(records)
    assert set(ORIGIN) <= set(traced.columns)
    assert FAILED in traced.columns
    (late,) = late_records(plan.branches[0], records, 2**62).collect()
    assert late["error"].startswith(f"{time} is 2024-01-01 00:00:30")


@pytest.mark.parametrize("how", ["left", "inner"])
def test_rows_are_looked_up_by_columns_of_any_name(spark: Any, tmp_path: Path, how: str) -> None:
    table = pa.table({name: [f"{name}-1"] for name in NAMES} | {"new.`one": ["x"]})
    pq.write_table(table, tmp_path / "t.parquet")
    for columns in (None, dict.fromkeys([*NAMES, "new.`one"], "string")):
        step = registry.component("step", "enrich").model_validate(
            {
                "table": {"files": f"{tmp_path}/t.parquet"},
                "by": NAMES,
                "how": how,
                "columns": columns,
            }
        )
        (row,) = step.bind().apply(spark.createDataFrame([values(1)], SCHEMA)).collect()
        assert row.asDict() == {**values(1), "new.`one": "x"}


def twice(table: pa.Table) -> pa.Table:
    return pa.concat_tables([table, table])


def test_python_and_sql_steps_keep_columns_of_any_name(spark: Any) -> None:
    rows = spark.createDataFrame([values(1)], SCHEMA)
    declared = dict.fromkeys([*NAMES, "n"], "string")
    function = f"{__name__}:twice"
    for options in ({"function": function}, {"function": function, "schema": declared}):
        step = registry.component("step", "python").model_validate(options)
        assert [row.asDict() for row in step.apply(rows).collect()] == [values(1), values(1)]
    query = f"SELECT {', '.join(map(quoted, NAMES))}, n FROM rows"
    chosen = registry.component("step", "sql").model_validate({"query": query})
    assert chosen.bind().apply(rows).first().asDict() == values(1)


# The decode json refuses a quotation mark in a name, with the reason.
@pytest.mark.parametrize("name", [name for name in NAMES if '"' not in name])
def test_decodes_give_columns_of_any_name(name: str, spark: Any) -> None:
    records = spark.sql("SELECT CAST('{}' AS binary) AS value")
    json = registry.component("decode", "json").model_validate({"schema": {name: "string"}})
    text = registry.component("decode", "text").model_validate({"column": name})
    assert json.decode(records).columns == [name, FAILED]
    assert text.decode(records).first()[name] == "{}"


def test_the_table_of_a_job_has_columns_of_any_name() -> None:
    inner = pa.struct([pa.field(name, pa.int64()) for name in NAMES])
    frame = pa.schema([*(pa.field(name, pa.string()) for name in NAMES), pa.field("in", inner)])
    assert Table(frame).to_arrow().schema.equals(frame)
