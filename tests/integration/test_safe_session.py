"""The embedded session keeps to itself, and Spark's own parser finds what a SQL step must not do."""

import stat
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from penstock.engine.session import spark_session
from penstock.errors import ConfigError
from penstock.pipeline.safe_sql import refuse_unsafe

UNSAFE = [
    "SELECT TRANSFORM(a) USING 'cat' AS (b) FROM rows",
    "SELECT reflect('java.lang.System', 'exit') FROM rows",
    "SELECT * FROM rows LATERAL VIEW reflect('a', 'b') t AS b",
    "SELECT a FROM rows ORDER BY system.builtin.java_method('a', 'b')",
    "SELECT transform(a, x -> try_reflect('a', x)) FROM rows",
    "SELECT (SELECT count(*) FROM text.`/etc/passwd`) FROM rows",
    "WITH x AS (SELECT * FROM text.`/etc/passwd`) SELECT * FROM x",
    "SELECT * FROM rows JOIN LATERAL (SELECT * FROM text.`/etc/passwd`)",
    "SELECT * FROM IDENTIFIER('text.`/etc/passwd`')",
    "SELECT IDENTIFIER('reflect')('a', 'b')",
    "SELECT * FROM table_changes('x', 0)",
    "TABLE text.`/etc/passwd`",
    "FROM rows |> WHERE reflect('a', 'b') = 1",
    "FROM rows INSERT OVERWRITE DIRECTORY '/tmp/x' USING json SELECT *",
    "ADD JAR '/tmp/x.jar'",
]
SAFE = [
    "SELECT *, a AS reflect, 'reflect(1)' FROM rows",
    "WITH x AS (SELECT * FROM rows) SELECT transform(b, y -> y + 1) FROM x LATERAL VIEW explode(b) t",
    "SELECT a, count(*) OVER (PARTITION BY a) FROM rows WHERE a IN (SELECT id FROM range(3))",
]


@pytest.mark.parametrize("query", UNSAFE)
def test_sparks_own_parser_finds_what_is_unsafe(query):
    with pytest.raises((ConfigError, PySparkException, Py4JJavaError)) as raised:
        refuse_unsafe(spark_session(), query)
    assert raised.type is ConfigError


@pytest.mark.parametrize("query", SAFE)
def test_sparks_own_parser_finds_nothing_in_what_shapes_rows(query):
    refuse_unsafe(spark_session(), query)


def test_the_embedded_session_asks_for_a_secret_and_has_a_private_folder():
    """Every user of the machine can reach 127.0.0.1 and look into the folder for temporary files."""
    spark = spark_session()
    settings = dict(spark.sparkContext.getConf().getAll())
    folder = Path(settings["spark.local.dir"])
    assert settings["spark.authenticate"] == "true"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(folder.parent.stat().st_mode) == 0o700
    assert settings["spark.sql.warehouse.dir"].endswith(f"{folder.name}/warehouse")
    rows = spark.range(4).repartition(2).mapInPandas(lambda parts: parts, "id long")
    assert sorted(row.id for row in rows.collect()) == [0, 1, 2, 3]
