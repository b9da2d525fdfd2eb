"""The step `python`: what a function returns fits the step's columns, or is refused."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from penstock import Connection, memory_table, start
from penstock.pipeline import ORIGIN
from penstock.pipeline.values import Function
from penstock.steps.python import PythonStep
from penstock.testing import fill, read_all

SCHEMA = "n bigint, s string"


@pytest.fixture(scope="module")
def spark() -> Any:
    from penstock.engine import spark_session

    return spark_session()


def through(spark: Any, function: Any, schema: str | None = None) -> Any:
    rows = spark.createDataFrame([(None, "a")], SCHEMA)
    return PythonStep(function=Function.read(function), schema=schema).apply(rows)


def results(spark: Any, function: Any, schema: str | None = None) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in through(spark, function, schema).collect()]


def refused(spark: Any, function: Any, schema: str | None = None) -> str:
    with pytest.raises(Exception, match="penstock-error") as raised:
        through(spark, function, schema).collect()
    frame = str(raised.value).partition("penstock-error")[2]
    assert '"kind": "RefusedError"' in frame
    assert '"stage": "step"' in frame
    return frame


def by_pandas(table: pa.Table) -> pa.Table:
    return pa.Table.from_pandas(table.to_pandas(), preserve_index=False)


def test_types_that_a_batch_of_nulls_has_in_pandas_are_no_obstacle(
    connection: Connection, topic: Any, pipeline: Any, unique: str
) -> None:
    given = [{"n": None, "s": None}, {"n": 2**53 - 1, "s": "a"}, {"n": None, "s": "b"}]
    fill(connection, topic(), given)
    definition = pipeline(
        source={"kafka": topic()},
        decode={"json": {"schema": SCHEMA}},
        steps=[{"python": by_pandas}],
        sink={"memory": unique},
    )
    with start(definition, once=True) as running:
        running.wait(240)
    assert memory_table(unique).to_arrow().to_pylist() == given
    assert read_all(connection, f"{unique}.dead-letters") == []


@pytest.mark.parametrize(
    "values", [[(None, None)], [(None, "a"), (1, None)], [(1, None), (2, None)]]
)
def test_a_batch_of_nulls_keeps_the_types_of_the_rows(spark: Any, values: list[Any]) -> None:
    rows = spark.createDataFrame(values, SCHEMA).coalesce(1)
    step = PythonStep(function=Function.read(by_pandas))

    assert [tuple(row) for row in step.apply(rows).collect()] == values
    traced = step.traced(rows.selectExpr("*", *(f"7 AS {name}" for name in ORIGIN)))
    assert [tuple(row) for row in traced.collect()] == [(*row, 7, 7, 7) for row in values]


def test_columns_are_found_by_their_names(spark: Any) -> None:
    def swapped(_table: pa.Table) -> pa.Table:
        return pa.table({"b": ["is b"], "a": ["is a"]})

    def one_batch(_table: pa.Table) -> pa.RecordBatch:
        return swapped(_table).to_batches()[0]

    for function in (swapped, one_batch):
        assert results(spark, function, "a string, b string") == [("is a", "is b")]


def test_values_that_are_the_same_in_another_type_are_cast(spark: Any) -> None:
    def function(_table: pa.Table) -> pa.Table:
        inner = pa.array([{"y": 1.0}], pa.struct([("y", pa.float64())]))
        text = pa.array(["a"]).dictionary_encode()
        return pa.table({"text": text, "list": [[]], "inner": inner, "many": pa.nulls(1)})

    schema = (
        "inner struct<x: int, y: int not null>, list array<int>, text string, many map<string,int>"
    )
    assert results(spark, function, schema) == [((None, 1), [], "a", None)]


def test_what_says_other_things_about_nulls_fits(spark: Any) -> None:
    def function(table: pa.Table) -> pa.Table:
        return pa.table(table.to_pydict())

    rows = spark.sql("SELECT 1L AS n, array(named_struct('x', 2L)) AS list, map('k', 3L) AS m")
    made = PythonStep(function=Function.read(function)).apply(rows.drop("m"))
    assert made.collect() == rows.drop("m").collect()


def test_no_rows_need_no_columns(spark: Any) -> None:
    assert results(spark, lambda _: pa.table({})) == []
    assert results(spark, lambda table: table.slice(0, 0)) == []


@pytest.mark.parametrize(
    ("made", "said"),
    [
        ({"n": [1.5], "s": ["a"]}, "the column 'n' is not int64: Float value 1.5"),
        ({"n": ["1"], "s": ["a"]}, "the column 'n' is text, and the step has int64"),
        ({"n": [{"x": 1}], "s": ["a"]}, "the column 'n' is not int64"),
        ({"n": [1]}, "did not return the column 's', which the step has"),
        ({}, "more than once"),
        (
            {"n": [1], "s": ["a"], "t": [1], "u": [1]},
            "the columns 't', 'u', which the step does not",
        ),
        ({"N": [1], "s": ["a"]}, "the column 'N', which the step does not have; allowed: n, s"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_reason(
    spark: Any, made: dict[str, Any], said: str
) -> None:
    def function(_table: pa.Table) -> pa.Table:
        return pa.table(made) if made else pa.table([[1], ["a"], [2]], names=["n", "s", "n"])

    assert said in refused(spark, function)


def test_a_field_that_the_struct_does_not_have_is_refused(spark: Any) -> None:
    def function(_table: pa.Table) -> pa.Table:
        return pa.table({"list": [[{"x": 1, "z": 2}]]})

    said = refused(spark, function, "list array<struct<x: int>>")
    assert "the column 'list'.z is not list<" in said
    assert "the field is not declared" in said
