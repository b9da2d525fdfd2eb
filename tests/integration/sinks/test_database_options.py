"""The forms of writing of the sink database: insert, upsert, update, delete, keys, create, evolve."""

from __future__ import annotations

from datetime import datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from numpy import float32
from pydantic import ValidationError
from sqlalchemy.dialects.sqlite.base import SQLiteDialect
from sqlalchemy.engine import CursorResult
from tests.integration.sinks.databases import DatabaseTable, database_table

import penstock
from penstock import Admin, Connection, Delivery, Pipeline, Producer
from penstock.errors import ConfigError, DefinitionError, RefusedError, TransientError
from penstock.sinks.database.database_sink import DatabaseSink

SCHEMA = "id int, name string, n bigint"
GONE = f"{SCHEMA}, gone boolean"


@pytest.fixture(scope="session")
def spark() -> Any:
    from penstock.engine import spark_session

    return spark_session()


@pytest.fixture(params=["postgres", "mariadb", "sqlite", "dialect"])
def db(request: Any, spark: Any, unique: str, tmp_path: Path) -> DatabaseTable:
    server = request.getfixturevalue(request.param) if request.param in SERVERS else None
    return database_table(request.param, server, unique.replace("-", "_"), spark, tmp_path)


SERVERS = ("postgres", "mariadb")


def rows_in(db: DatabaseTable, columns: str = "*") -> list[tuple[Any, ...]]:
    return db.ask(f"SELECT {columns} FROM {{t}} ORDER BY 1")


@pytest.mark.by_turns
def test_insert_makes_the_primary_key_and_refuses_a_key_that_exists(db: DatabaseTable) -> None:
    writer = db.prepared(SCHEMA, mode="insert", key="id")
    writer.write(db.batch(SCHEMA, [(1, "a", 1), (2, "b", 2)]))
    with pytest.raises(RefusedError):
        writer.write(db.batch(SCHEMA, [(3, "c", 3), (1, "again", 9)], 1))
    assert rows_in(db) == [(1, "a", 1), (2, "b", 2)]


def test_upsert_changes_inserts_and_deletes(db: DatabaseTable) -> None:
    writer = db.prepared(GONE, mode="upsert", key=["id", "name"], delete_when="gone")
    writer.write(db.batch(GONE, [(1, "a", 1, False), (1, "b", 2, None), (2, "a", 3, False)]))
    changes = [
        (1, "a", 10, False), (1, "a", 11, False), (1, "b", None, True), (3, "z", None, True),
        (4, "d", 4, False), (4, "d", None, True), (5, "e", None, True), (5, "e", 5, False),
    ]  # fmt: skip
    writer.write(db.batch(GONE, changes, 1))
    assert sorted(rows_in(db)) == [(1, "a", 11), (2, "a", 3), (5, "e", 5)]


@pytest.mark.by_turns
def test_update_changes_and_deletes_what_exists_and_adds_nothing(db: DatabaseTable) -> None:
    db.prepared(SCHEMA).write(db.batch(SCHEMA, [(1, "a", 1), (2, "b", 2), (3, "c", 3)]))
    db.ask("ALTER TABLE {t} ADD COLUMN own VARCHAR(9) DEFAULT 'kept'")
    writer = db.prepared(
        "id int, n bigint, gone boolean", mode="update", key="id", delete_when="gone"
    )
    changes = [(1, 10, False), (1, 11, False), (2, None, True), (9, 9, False), (8, None, True)]
    writer.write(db.batch("id int, n bigint, gone boolean", changes, 1))
    assert rows_in(db) == [(1, "a", 11, "kept"), (3, "c", 3, "kept")]
    only_keys = db.prepared("id int", mode="update", key="id")
    only_keys.write(db.batch("id int", [(1,), (7,)], 2))
    assert len(rows_in(db)) == 2


def test_update_needs_no_value_for_columns_that_it_leaves_alone(db: DatabaseTable) -> None:
    db.ask("CREATE TABLE {t} (id int PRIMARY KEY, n bigint, own VARCHAR(9) NOT NULL)")
    db.ask("INSERT INTO {t} VALUES (1, 1, 'mine')")
    schema = "id int, n bigint"
    writer = db.prepared(schema, mode="update", key="id", evolve=False)
    writer.write(db.batch(schema, [(1, 5)]))
    assert rows_in(db) == [(1, 5, "mine")]
    with pytest.raises(ConfigError, match="needs a value in 'own'"):
        db.prepared(schema, mode="upsert", key="id")


def test_a_table_is_not_made_unless_that_is_wanted(db: DatabaseTable) -> None:
    with pytest.raises(
        ConfigError, match=r"no table '.*', and 'create' is false: create it for the col"
    ):
        db.prepared(SCHEMA, create=False)
    db.prepared(SCHEMA)
    db.prepared(SCHEMA, create=False).write(db.batch(SCHEMA, [(1, "a", 1)]))
    assert rows_in(db) == [(1, "a", 1)]


def test_a_table_is_not_altered_unless_that_is_wanted(db: DatabaseTable) -> None:
    db.prepared("id int, name string")
    with pytest.raises(
        ConfigError, match="has no column 'n', and 'evolve' is false: alter the table"
    ):
        db.prepared(SCHEMA, evolve=False)
    # Rows may have fewer columns.
    writer = db.prepared("id int", evolve=False)
    writer.write(db.batch("id int", [(1,)]))
    db.prepared(SCHEMA).write(db.batch(SCHEMA, [(2, "b", 2)], 1))
    assert rows_in(db) == [(1, None, None), (2, "b", 2)]
    if db.kind in SERVERS:
        with pytest.raises(
            ConfigError, match="has too narrow a type in 'id', and 'evolve' is false"
        ):
            db.prepared("id bigint", evolve=False)
        db.prepared("id bigint")


def test_a_repeated_write_of_an_update_does_nothing(db: DatabaseTable) -> None:
    db.prepared(SCHEMA).write(db.batch(SCHEMA, [(1, "a", 1)]))
    writer = db.prepared(SCHEMA, mode="update", key="id")
    writer.write(db.batch(SCHEMA, [(1, "a", 2)], 1))
    db.ask("UPDATE {t} SET n = 100")
    writer.write(db.batch(SCHEMA, [(1, "a", 2)], 1))
    # At-least-once writes it again.
    assert rows_in(db) == [(1, "a", 2 if db.kind == "dialect" else 100)]


def test_a_dialect_stores_every_type(spark: Any, tmp_path: Path) -> None:
    db = database_table("dialect", None, "Order lines", spark, tmp_path)
    types = (
        "id bigint, truth boolean, small smallint, real double, exact decimal(20,5), words string, "
        "bytes binary, day date, at timestamp, tags array<string>"
    )
    moment = datetime(2024, 1, 2, 3, 4, 5, 678901, tzinfo=timezone.utc)
    row = (
        1,
        True,
        -2,
        0.5,
        Decimal("1.50000"),
        "ü",
        b"\x00\xff",
        moment.date(),
        moment,
        ["a", None],
    )
    writer = db.prepared(types, mode="upsert", key="id")
    writer.write(db.batch(types, [row, (2, *[None] * 9)]))
    found = db.ask('SELECT * FROM "Order lines" ORDER BY id')
    assert found[0][:4] == (1, 1, -2, 0.5)
    assert found[0][5:7] == ("ü", b"\x00\xff")
    assert found[0][9] == '["a",null]'
    assert found[1] == (2, *[None] * 9)
    # What is read back is what was written.
    back = writer.read_back(db.schema("id bigint, words string, day date")).orderBy("id").collect()
    assert tuple(back[0]) == (1, "ü", moment.date())
    assert db.sink().delivery_obstacle(Delivery.AT_LEAST_ONCE) is None


def test_a_dialect_that_is_missing_or_away(spark: Any, tmp_path: Path) -> None:
    def prepare(url: str) -> None:
        db = DatabaseTable("dialect", None, "t", spark, {"url": url})
        db.prepared(SCHEMA)

    with pytest.raises(
        ConfigError, match=r"SQLAlchemy cannot use nosuch://h/d: .*install the driver"
    ):
        prepare("nosuch://h/d")
    with pytest.raises(TransientError, match="is away or refuses"):
        prepare(f"sqlite+pysqlite:///{tmp_path}/no/such/folder/x.db")


WRONG = [
    ({"mode": "upsert"}, "mode is 'upsert': say which columns are the key"),
    ({"mode": "update"}, "mode is 'update': say which columns are the key"),
    ({"mode": "update", "key": []}, "mode is 'update': say which columns are the key"),
    ({"delete_when": "gone"}, "'delete_when' is for mode 'upsert' or 'update'; given 'append'"),
    ({"mode": "insert", "key": "id", "delete_when": "g"}, "'delete_when' is for mode 'upsert'"),
    (
        {"mode": "update", "key": "id", "delete_when": "id"},
        "cannot be part of the key and say what",
    ),
    ({"mode": "replace"}, "Input should be 'append', 'insert', 'upsert' or 'update'"),
    ({"create": "perhaps"}, "should be a valid boolean"),
    ({"evolve": 7}, "should be a valid boolean"),
    ({"url": "mysql://h/d"}, "write 'mysql+pymysql://...' for SQLAlchemy's, at-least-once"),
    ({"url": "no address"}, "given 'no address'; allowed: postgresql://"),
    ({"url": "mariadb://h"}, "names no database"),
    ({"url": "oracle://u:secret@h/d", "password": "other"}, "is in 'url' and in 'password'"),
    ({"auto_create": True}, "Extra inputs are not permitted"),
]


@pytest.mark.parametrize(("options", "message"), WRONG, ids=lambda each: str(each)[:40])
def test_wrong_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError) as raised:
        DatabaseSink(**{"url": "postgresql://h/d", "table": "t"} | options)
    assert message in str(raised.value)
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize("delivery", ["exactly-once", "at-most-once"])
def test_more_than_at_least_once_is_refused_for_a_dialect(delivery: str) -> None:
    sink = {"database": {"url": "duckdb:///x.db", "table": "t"}}
    definition = {"name": "p", "source": {"kafka": "t"}, "decode": "text", "sink": sink}
    with pytest.raises(
        DefinitionError, match=r"'duckdb' is a dialect of SQLAlchemy.*it can promise at-least-once"
    ):
        Pipeline(**definition, delivery=delivery)
    assert Pipeline(**definition, delivery="at-least-once").sink.name == "database"


@pytest.mark.by_turns
@pytest.mark.parametrize("kind", ["postgres", "mariadb", "sqlite", "dialect"])
def test_tombstones_delete_and_coordinates_are_keys(
    kind: str, connection: Connection, unique: str, spark: Any, tmp_path: Path, request: Any
) -> None:
    server = request.getfixturevalue(kind) if kind in SERVERS else None
    db = database_table(kind, server, unique.replace("-", "_"), spark, tmp_path)
    one, two = b'{"id": 1}', b'{"id": 2}'
    records = [(one, b'{"n": 1}'), (two, b'{"n": 2}'), (one, b'{"n": 3}'), (two, None)]
    with Admin(connection) as admin:
        admin.create_topic(unique, 1)
    with Producer(connection) as producer:
        for key, value in records:
            producer.produce(unique, key, value)

    def run(name: str, metadata: list[str], **options: Any) -> None:
        key = {"key": {"json": {"schema": "id int"}}, "key_prefix": ""}
        decode = {"schema": "n int", "metadata": metadata, **key}
        definition = Pipeline(
            name=f"{unique}-{name}",
            connection=connection,
            source={"kafka": unique},
            decode={"json": decode},
            sink={"database": db.options | options},
            delivery=db.delivery,
        )
        with penstock.start(definition, once=True) as running:
            assert running.wait(120)

    by_key = {"table": db.table, "mode": "upsert", "key": "id", "delete_when": "kafka_tombstone"}
    run("deletes", ["tombstone"], **by_key)
    assert db.ask("SELECT id, n FROM {t}") == [(1, 3)]
    coordinates = ["kafka_topic", "kafka_partition", "kafka_offset"]
    table = f"{db.table}_all"
    run(
        "places", ["topic", "partition", "offset", "tombstone"],
        table=table, mode="upsert", key=coordinates,
    )  # fmt: skip
    found = db.ask(f"SELECT kafka_topic, kafka_offset, n FROM {table} ORDER BY kafka_offset")
    assert found == [(unique, 0, 1), (unique, 1, 2), (unique, 2, 3), (unique, 3, None)]


def test_a_delete_needs_no_values_in_columns_that_must_have_one(db: DatabaseTable) -> None:
    db.ask(
        "CREATE TABLE {t} (id int PRIMARY KEY, name VARCHAR(9) NOT NULL, n bigint NOT NULL UNIQUE)"
    )
    writer = db.prepared(GONE, mode="upsert", key="id", delete_when="gone")
    writer.write(db.batch(GONE, [(1, "a", 1, False), (2, "b", 2, False)]))
    writer.write(db.batch(GONE, [(1, None, None, True), (3, None, None, True)], 1))
    assert rows_in(db) == [(2, "b", 2)]
    for at, mode in enumerate(("upsert", "update"), 2):
        writer = db.prepared(GONE, mode=mode, key="id", delete_when="gone")
        with pytest.raises(RefusedError):
            writer.write(db.batch(GONE, [(2, None, 2, False)], at))
    assert rows_in(db) == [(2, "b", 2)]


@pytest.mark.parametrize("mode", ["upsert", "update"])
def test_a_row_without_a_value_in_its_key_is_refused(db: DatabaseTable, mode: str) -> None:
    db.ask("CREATE TABLE {t} (id int, name VARCHAR(9), n bigint, UNIQUE (id, name))")
    writer = db.prepared(GONE, mode=mode, key=["id", "name"], delete_when="gone")
    for batch, row in enumerate([(1, None, 5, False), (1, None, None, True)]):
        with pytest.raises(RefusedError, match="null in the column 'name', which is part of the"):
            writer.write(db.batch(GONE, [(1, "a", 1, False), row], batch))
    assert rows_in(db) == []


def test_floats_are_read_back_with_all_digits(db: DatabaseTable) -> None:
    schema = "id int, r float"
    writer = db.prepared(schema)
    writer.write(db.batch(schema, [(1, 16777215.0), (2, 0.12345679)]))
    found = writer.read_back(db.schema(schema)).orderBy("id").collect()
    assert [row.r for row in found] == [16777215.0, float32(0.12345679)]


def test_a_decimal_that_a_dialect_would_change_is_refused(spark: Any, tmp_path: Path) -> None:
    db = database_table("dialect", None, "t", spark, tmp_path)
    schema = "id int, exact decimal(38,18)"
    writer = db.prepared(schema)
    writer.write(db.batch(schema, [(1, Decimal("1.5")), (2, None)]))
    with pytest.raises(RefusedError, match="'exact' has more digits than a floating-point"):
        writer.write(db.batch(schema, [(3, Decimal("12345678901234567890.123456789"))], 1))
    assert db.ask("SELECT id FROM {t} ORDER BY 1") == [(1,), (2,)]


@pytest.mark.parametrize("mode", ["upsert", "update"])
def test_a_dialect_that_does_not_count_changed_rows(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    monkeypatch.setattr(SQLiteDialect, "supports_sane_rowcount", False)
    monkeypatch.setattr(CursorResult, "rowcount", -1)
    db = database_table("dialect", None, "t", spark, tmp_path)
    db.prepared(SCHEMA, mode="insert", key="id").write(db.batch(SCHEMA, [(1, "a", 1)]))
    writer = db.prepared(SCHEMA, mode=mode, key="id")
    writer.write(db.batch(SCHEMA, [(1, "b", 2), (2, "c", 3)], 1))
    assert rows_in(db) == [(1, "b", 2), *([(2, "c", 3)] if mode == "upsert" else [])]
