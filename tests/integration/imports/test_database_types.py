"""Values of databases in records: every type exact, keys, formats, rows that cannot be records."""

from __future__ import annotations

import base64
import json
import sqlite3
from collections.abc import Iterator
from datetime import datetime, timezone
from decimal import Decimal
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import fastavro
import pytest
from tests.integration.imports.database_rounds import Rounds
from tests.services import mariadb as mariadb_server
from tests.services import postgres as postgres_server
from tests.services.mariadb import MariaDb
from tests.services.postgres import Postgres

from penstock.embedded import SchemaRegistry
from penstock.errors import ConfigError


@pytest.fixture
def table(postgres: Postgres, unique: str) -> Iterator[str]:
    name = unique.replace("-", "_")
    yield name
    with postgres.connect() as session:
        session.execute(f"DROP TABLE IF EXISTS {name}")


def of_postgres(postgres: Postgres, **options: Any) -> Rounds:
    return Rounds(**({"url": postgres.url, "password": postgres_server.PASSWORD} | options))


POSTGRES = [
    ("boolean", "true", True),
    ("smallint", "-32768", -32768),
    ("bigint", "9223372036854775807", 9223372036854775807),
    ("real", "1.5", 1.5),
    ("double precision", "0.1", 0.1),
    ("double precision", "'NaN'", None),
    ("numeric(12, 3)", "123456789.120", "123456789.120"),
    ("numeric(60, 2)", "1" + "0" * 50 + ".25", "1" + "0" * 50 + ".25"),
    ("numeric", "1.000000000000000000000000000000000000000000000000001",
     "1.000000000000000000000000000000000000000000000000001"),
    ("text", "E'a\"b\\\\c\\n,;é '", 'a"b\\c\n,;é '),
    ("text", "''", ""),
    ("text", "NULL", None),
    ("char(4)", "'ab'", "ab  "),
    ("date", "'2024-02-29'", "2024-02-29"),
    ("time", "'12:34:56.5'", "12:34:56.5"),
    ("timestamp", "'2024-01-01 12:00:00.123456'", "2024-01-01T12:00:00.123456"),
    ("timestamptz", "'2024-01-01 12:00:00+02'", "2024-01-01T10:00:00.000000Z"),
    ("interval", "'1 day 2 hours'", "P1DT2H"),
    ("uuid", "'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
    ("bytea", "'\\x00ff'", base64.b64encode(b"\x00\xff").decode()),
    ("jsonb", "'{\"a\": [1.10, null]}'", '{"a": [1.10, null]}'),
    ("json", "'{\"b\":1}'", '{"b":1}'),
    ("inet", "'10.0.0.1/8'", "10.0.0.1/8"),
    ("int[]", "'{1,NULL,3}'", [1, None, 3]),
    ("int[]", "'{}'", []),
    ("int[]", "NULL", None),
    ("text[]", "ARRAY['a,b', 'q\"', NULL, '', 'NULL']", ["a,b", 'q"', None, "", "NULL"]),
    ("numeric(8, 2)[]", "'{1.5,2}'", ["1.50", "2.00"]),
    ("timestamptz[]", "ARRAY['2024-01-01 00:00:00+01'::timestamptz]", ["2023-12-31T23:00:00.000000Z"]),
    ("boolean[]", "'{t,f}'", [True, False]),
    ("bytea[]", "ARRAY['\\xff'::bytea]", ["/w=="]),
    ("int4range", "'[1,5)'", "[1,5)"),
    ("int4range[]", "ARRAY['[1,5)'::int4range, NULL]", ["[1,5)", None]),
    ("interval[]", "ARRAY['1 day 2 hours'::interval]", ["P1DT2H"]),
    ("penstock_mood[]", "'{ok,sad}'", ["ok", "sad"]),
    ("int2vector", "'1 2'", "1 2"),
]  # fmt: skip


def test_every_type_of_postgresql_is_exact(postgres: Postgres, table: str) -> None:
    columns = ", ".join(f"c{at} {kind}" for at, (kind, _, _) in enumerate(POSTGRES))
    with postgres.connect() as session:
        session.execute("DROP TYPE IF EXISTS penstock_mood CASCADE")
        session.execute("CREATE TYPE penstock_mood AS ENUM ('sad', 'ok')")
        session.execute(f"CREATE TABLE {table} (id serial, {columns})")
        values = ", ".join(value for _, value, _ in POSTGRES)
        session.execute(f"INSERT INTO {table} VALUES (1, {values})")
        session.execute(f"INSERT INTO {table} (id) VALUES (2)")
    with of_postgres(postgres, tables=table, mode="bulk") as rounds:
        assert rounds.run() == 2
        assert not rounds.bad
        row, empty = rounds.rows
        found = {f"{at} {kind}": row[f"c{at}"] for at, (kind, _, _) in enumerate(POSTGRES)}
        assert found == {f"{at} {kind}": want for at, (kind, _, want) in enumerate(POSTGRES)}
        assert set(empty.values()) == {2, None}


def test_rows_without_a_form_are_dead_letters_and_the_others_are_records(
    postgres: Postgres, table: str
) -> None:
    with postgres.connect() as session:
        session.execute(
            f"CREATE TABLE {table} (id int PRIMARY KEY, at timestamp, n int[], r float8)"
        )
        session.execute(
            f"INSERT INTO {table} SELECT n, now(), '{{1}}', 1 FROM generate_series(1, 50) n"
        )
        session.execute(f"UPDATE {table} SET at = 'infinity' WHERE id = 7")
        session.execute(f"UPDATE {table} SET n = '{{{{1,2}},{{3,4}}}}' WHERE id = 8")
        session.execute(f"UPDATE {table} SET r = 'Infinity' WHERE id = 9")
    with of_postgres(postgres, tables=table, mode="bulk") as rounds:
        assert rounds.run() == 47
        assert rounds.column("id") == [n for n in range(1, 51) if n not in (7, 8, 9)]
        assert [json.loads(each.value or b"")["id"] for each in rounds.bad] == ["7", "8", "9"]
        assert "infinity" in rounds.bad[0].error
        assert "several dimensions" in rounds.bad[1].error
        assert "'r': inf" in rounds.bad[2].error


def test_an_infinite_time_does_not_end_the_import(postgres: Postgres, table: str) -> None:
    with postgres.connect() as session:
        session.execute(f"CREATE TABLE {table} (id int, at timestamptz)")
        session.execute(f"INSERT INTO {table} VALUES (1, '2024-01-01'), (2, 'infinity')")
        with of_postgres(
            postgres, tables=table, mode="timestamp", timestamp_column="at", delay=0
        ) as rounds:
            assert rounds.run() == 1
            (position,) = rounds.positions.values()
            assert position["timestamp"] == "2024-01-01 00:00:00.000000"


KEYS = {
    "varchar(9)": "n",
    "char(5)": "n",
    "uuid": "lpad(n::text, 32, '0')::uuid",
    "date": "date '2024-01-01' + n::int",
    "timestamptz": "timestamptz '2024-01-01' + n * interval '1 day'",
    "numeric": "n / 4.0",
    "bigint": "n",
}


@pytest.mark.parametrize("kind", KEYS)
def test_pages_by_a_key_of_every_type(postgres: Postgres, table: str, kind: str) -> None:
    with postgres.connect() as session:
        session.execute(f"CREATE TABLE {table} (k {kind}, b varchar, n int, PRIMARY KEY (k, b))")
        session.execute(
            f"INSERT INTO {table} SELECT {KEYS[kind]}, b, n FROM generate_series(1, 30) n, "
            "(VALUES ('x'), ('Y')) AS v(b)"
        )
    with of_postgres(postgres, tables=table, mode="bulk", max_records=7) as rounds:
        assert rounds.run() == 60
        assert sorted(rounds.column("n")) == sorted([*range(1, 31)] * 2)
        assert len({(row["k"], row["b"]) for row in rounds.rows}) == 60
        assert rounds.transactions > 8


def test_a_query_may_end_with_a_comment(postgres: Postgres) -> None:
    query = "SELECT 1 AS id -- all of them"
    with of_postgres(postgres, query=query, mode="bulk", topic="rows") as rounds:
        assert rounds.run() == 1


def test_keys_of_several_columns_other_formats_and_a_column_as_key(
    postgres: Postgres, table: str
) -> None:
    with postgres.connect() as session:
        session.execute(f"CREATE TABLE {table} (b text, a int, v text, PRIMARY KEY (a, b))")
        session.execute(f"INSERT INTO {table} VALUES ('x', 1, 'v1'), ('y', 2, 'v2')")
    with of_postgres(postgres, tables=table, mode="bulk") as rounds:
        rounds.run()
        assert [key for _, key, _ in rounds.records] == [b'{"a":1,"b":"x"}', b'{"a":2,"b":"y"}']
    options = {"key": "a", "key_format": "int", "value_format": {"csv": {"delimiter": ";"}}}
    with of_postgres(postgres, tables=table, mode="bulk", **options) as rounds:
        rounds.run()
        assert rounds.records[1][1:] == (b"\x00\x00\x00\x02", b"y;2;v2")
    query = {"query": f"SELECT v FROM {table} ORDER BY a", "topic": "q", "value_format": "string"}
    with of_postgres(postgres, mode="bulk", **query) as rounds:
        rounds.run()
        assert [value for _, _, value in rounds.records] == [b"v1", b"v2"]
    wrong = {"key": "nope"}
    rounds = of_postgres(postgres, tables=table, mode="bulk", **wrong)
    with (
        rounds,
        pytest.raises(ConfigError, match="'key' names the column 'nope', which is not read"),
    ):
        rounds.run()
    rounds = of_postgres(postgres, tables=table, mode="bulk", key_format="int")
    with rounds, pytest.raises(ConfigError, match="writes one column, and the key has 2: a, b"):
        rounds.run()


def test_avro_with_a_registry_has_the_types_of_the_columns(
    postgres: Postgres, table: str, schema_registry: SchemaRegistry
) -> None:
    with postgres.connect() as session:
        session.execute(
            f"CREATE TABLE {table} (id bigint PRIMARY KEY, n numeric(9, 2), at timestamptz)"
        )
        session.execute(f"INSERT INTO {table} VALUES (7, 1.5, '2024-01-01 00:00:00+00')")
    avro = {"avro": {"registry": schema_registry.url}}
    options = {"tables": table, "mode": "bulk", "value_format": avro, "key_format": "long"}
    with of_postgres(postgres, topic=f"{table}.{{table}}", **options) as rounds:
        assert rounds.run() == 1
        topic, key, value = rounds.records[0]
    assert (topic, key) == (f"{table}.{table}", (7).to_bytes(8, "big"))
    latest = f"{schema_registry.url}/subjects/{topic}-value/versions/latest"
    with urlopen(latest) as answer:
        schema = fastavro.parse_schema(json.loads(json.load(answer)["schema"]))
    assert value is not None
    assert fastavro.schemaless_reader(BytesIO(value[5:]), schema) == {
        "id": 7,
        "n": Decimal("1.50"),
        "at": datetime(2024, 1, 1, tzinfo=timezone.utc),
    }


def test_every_type_of_mariadb_is_exact(mariadb: MariaDb, unique: str) -> None:
    types: list[tuple[str, Any, Any]] = [
        ("TINYINT UNSIGNED", 255, 255),
        ("BIGINT UNSIGNED", 18446744073709551615, "18446744073709551615"),
        ("DECIMAL(30, 10)", "1.0000000001", "1.0000000001"),
        ("DECIMAL(5, 0) UNSIGNED", "77", "77"),
        ("DOUBLE", 0.1, 0.1),
        ("FLOAT", 16777215, 16777215),
        ("FLOAT NULL", 0.123456789, 0.12345679),
        ("DATE", "2024-02-29", "2024-02-29"),
        ("DATETIME(6)", "2024-01-01 12:00:00.123456", "2024-01-01T12:00:00.123456"),
        ("TIMESTAMP NULL", "2024-01-01 12:00:00", "2024-01-01T12:00:00.000000Z"),
        ("TIME", "-12:34:56", "-12:34:56"),
        ("YEAR", 2024, 2024),
        ("VARCHAR(20)", 'é"\\', 'é"\\'),
        ("VARBINARY(4)", b"\x00\xff", base64.b64encode(b"\x00\xff").decode()),
        ("BLOB", b"'%", base64.b64encode(b"'%").decode()),
        ("JSON", '{"a": 1.10}', '{"a": 1.10}'),
        ("ENUM('x', 'y')", "y", "y"),
        ("BIT(8)", b"\x05", "BQ=="),
        ("VARCHAR(3)", None, None),
    ]
    table = unique.replace("-", "_")
    columns = ", ".join(f"c{at} {kind}" for at, (kind, _, _) in enumerate(types))
    with mariadb.connect() as session:
        cursor = session.cursor()
        cursor.execute("SET time_zone = '+00:00'")
        cursor.execute(f"CREATE TABLE {table} ({columns})")
        marks = ", ".join(["%s"] * len(types))
        cursor.execute(f"INSERT INTO {table} VALUES ({marks})", [given for _, given, _ in types])
    options = {"url": mariadb.url, "password": mariadb_server.PASSWORD, "tables": table}
    with Rounds(mode="bulk", **options) as rounds:
        assert rounds.run() == 1, rounds.bad
        (row,) = rounds.rows
        found = {kind: row[f"c{at}"] for at, (kind, _, _) in enumerate(types)}
        assert found == {kind: wanted for kind, _, wanted in types}


def test_values_of_sqlite_by_declared_type_or_as_they_are(tmp_path: Path) -> None:
    file = tmp_path / "data.db"
    with sqlite3.connect(file) as session:
        session.execute(
            "CREATE TABLE t (a INTEGER, b REAL, c TEXT, d BLOB, e BOOLEAN, f DECIMAL(9,2), g)"
        )
        session.execute("INSERT INTO t VALUES (9007199254740993, 0.5, 'x', x'00', 1, 12.5, 7)")
        session.execute("INSERT INTO t VALUES ('no number', NULL, 5, NULL, NULL, '1.10', NULL)")
    session.close()
    with Rounds(url=f"sqlite:///{file}", tables="t", mode="bulk") as rounds:
        assert rounds.run() == 1
        assert rounds.rows == [
            {"a": 9007199254740993, "b": 0.5, "c": "x", "d": "AA==", "e": True, "f": "12.5", "g": 7}
        ]
        (bad,) = rounds.bad
        assert json.loads(bad.value or b"")["a"] == "no number"
