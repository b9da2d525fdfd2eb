"""A step shapes rows: SQL that runs code, or reads files or other tables, is refused."""

import json

import pytest

from penstock.errors import ConfigError
from penstock.pipeline import Pipeline
from penstock.pipeline.safe_sql import unsafe_in_plan
from penstock.steps.aggregate import AggregateStep
from penstock.steps.sql import SqlStep

UNSAFE = [
    "SELECT TRANSFORM(a) USING 'cat' AS (b) FROM rows",
    "FROM rows SELECT TRANSFORM(a) USING 'cat' AS (b)",
    "SELECT reflect('java.lang.System', 'exit') FROM rows",
    "SELECT Try_Reflect('java.lang.System', 'exit') FROM rows",
    "SELECT java_method('java.lang.System', 'exit') FROM rows",
    "SELECT system.builtin.java_method('a', 'b') FROM rows",
    "SELECT `reflect`('a', 'b') FROM rows",
    "SELECT/**/reflect/**/('a', 'b') FROM rows",
    "SELECT a FROM rows ORDER BY reflect('a', 'b')",
    "SELECT a FROM rows WHERE EXISTS (SELECT reflect('a', 'b'))",
    "SELECT transform(a, x -> reflect('a', x)) FROM rows",
    "SELECT sum(a) OVER (ORDER BY reflect('a', 'b')) FROM rows",
    "SELECT * FROM parquet.`/tmp/x`",
    "SELECT * FROM `text`.`/etc/passwd`",
    "SELECT * FROM rows JOIN json.`/tmp/x`",
    "SELECT (SELECT count(*) FROM text.`/etc/passwd`) FROM rows",
    "WITH x AS (SELECT * FROM text.`/etc/passwd`) SELECT * FROM x",
    "WITH text AS (SELECT 1) SELECT * FROM text.`/etc/passwd`",
    "SELECT * FROM rows UNION ALL SELECT * FROM delta.`/tmp/x`",
    "SELECT * FROM spark_catalog.default.other",
    "SELECT * FROM other",
    "SELECT * FROM IDENTIFIER('text.`/etc/passwd`')",
    "SELECT IDENTIFIER('reflect')('a', 'b') FROM rows",
    "SELECT * FROM read_files('/etc/passwd')",
    "SELECT * FROM table_changes('delta.`/tmp/x`', 0)",
    "SELECT * FROM python_worker_logs()",
    "ADD JAR '/tmp/x.jar'",
    "CREATE FUNCTION x AS 'y' USING JAR '/tmp/x.jar'",
    "INSERT OVERWRITE DIRECTORY '/tmp/x' SELECT * FROM rows",
    "FROM rows INSERT OVERWRITE DIRECTORY '/tmp/x' SELECT *",
    "SELECT 1; ADD JAR '/tmp/x.jar'",
]
SAFE = [
    "SELECT * FROM rows",
    "SELECT a AS reflect, reflect FROM rows",
    "SELECT transform(a, x -> x + 1), 'reflect(1)', '`text`.`/etc/passwd`' FROM rows",
    "WITH x AS (SELECT * FROM rows) SELECT * FROM x",
    "SELECT * FROM rows LATERAL VIEW explode(a) t AS b",
    "SELECT * FROM rows, range(3)",
    "SELECT rows.a, rows.b.c FROM rows",
]


def definition(query, **options):
    return Pipeline(
        name="p",
        source={"kafka": {"topics": "t"}},
        steps=[{"sql": {"query": query, **options}}],
        sink="discard",
    )


@pytest.mark.parametrize("query", UNSAFE)
def test_sql_that_does_more_than_shape_rows_is_refused_when_the_definition_is_read(query):
    with pytest.raises(ConfigError):
        definition(query)


@pytest.mark.parametrize("query", SAFE)
def test_sql_that_shapes_rows_is_allowed(query):
    assert definition(query).steps == [SqlStep(query=query)]


@pytest.mark.parametrize("query", [query for query in UNSAFE if query.startswith("SELECT *")])
def test_one_setting_allows_it(query):
    assert definition(query, unsafe=True).steps[0].unsafe


@pytest.mark.parametrize(
    "text", ["max(reflect('a', 'b'))", "max((SELECT count(*) FROM text.`/etc/passwd`))"]
)
def test_an_aggregate_cannot_do_it_either(text):
    with pytest.raises(ValueError, match="allowed: an aggregate of columns"):
        AggregateStep(time="t", window=60, values={"a": text})


def _plan(kind, **fields):
    return json.dumps([{"class": f"org.apache.spark.x.{kind}", **fields}])


@pytest.mark.parametrize(
    "plan",
    [
        _plan("ScriptTransformation"),
        _plan("UnresolvedFunction", nameParts="[system, builtin, Reflect]"),
        _plan("UnresolvedGenerator", name={"product-class": "x", "funcName": "java_method"}),
        _plan("UnresolvedRelation", multipartIdentifier="[text, /etc/passwd]"),
        _plan("UnresolvedTableValuedFunction", name="[read_files]"),
        _plan("PlanWithUnresolvedIdentifier"),
        _plan("InsertIntoDir"),
        _plan("Project", projectList=[[{"plan": json.loads(_plan("ScriptTransformation"))}]]),
    ],
)
def test_what_sparks_own_parser_finds_is_refused(plan):
    assert unsafe_in_plan(plan)


def test_a_column_with_the_name_of_a_function_is_not_a_function():
    assert unsafe_in_plan(_plan("UnresolvedAttribute", nameParts="[reflect]")) is None
