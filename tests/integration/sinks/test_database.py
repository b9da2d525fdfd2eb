"""What the sink database promises, on every database that it can write to."""

from __future__ import annotations

import json
import math
from datetime import date, datetime, timezone
from decimal import Context, Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Observation
from pyspark.sql import functions as f
from tests.integration.sinks.databases import DatabaseTable, database_table

from penstock.engine.dead_letter_batch import TABLE, write_bad_records
from penstock.errors import ConfigError, RefusedError
from penstock.pipeline import FAILED, Delivery, LastWrite, Mark

KINDS = ["postgres", "mariadb", "sqlite"]
TYPES = (
    "id bigint, truth boolean, tiny tinyint, small smallint, whole int, single float, real double, "
    "exact decimal(38,10), words string, bytes binary, day date, at timestamp, wall timestamp_ntz, "
    "tags array<string>, quote struct<bid:double,ask:double>, extra map<string,int>"
)
MOMENT = datetime(2024, 1, 2, 3, 4, 5, 678901, tzinfo=timezone.utc)
WALL = datetime(1999, 12, 31, 23, 59, 59, 1)
HUGE = Context(prec=50)
ODD_TEXTS = [
    "",
    "NULL",
    "\\N",
    'a "b", c',
    "tab\tline\nreturn\r",
    "back\\slash",
    "üñí 🦆",
    "\\.",
    " ",
]


@pytest.fixture(scope="session")
def spark() -> Any:
    from penstock.engine import spark_session

    return spark_session()


@pytest.fixture(params=KINDS)
def db(request: Any, spark: Any, unique: str, tmp_path: Path) -> DatabaseTable:
    kind = request.param
    server = None if kind == "sqlite" else request.getfixturevalue(kind)
    return database_table(kind, server, unique.replace("-", "_"), spark, tmp_path)


@pytest.fixture
def pg(spark: Any, unique: str, tmp_path: Path, postgres: Any) -> DatabaseTable:
    return database_table("postgres", postgres, unique.replace("-", "_"), spark, tmp_path)


def moment(found: Any) -> datetime:
    """Return a moment as the database keeps it, in UTC where it says nothing."""
    read = datetime.fromisoformat(found.replace("Z", "+00:00")) if isinstance(found, str) else found
    return read if read.tzinfo else read.replace(tzinfo=timezone.utc)


def nested(found: Any) -> Any:
    return json.loads(found) if isinstance(found, (str, bytes)) else found


@pytest.mark.by_turns
def test_values_of_every_type_arrive_as_they_are(db: DatabaseTable) -> None:
    row = (
        1, True, -1, -2, -3, 0.5, 0.1, Decimal("-12345678901234567890.0000000001"), "x",
        b"\x00\xff", date(1, 1, 1), MOMENT, WALL, ["a", None, ""], {"bid": 1.0, "ask": None}, {"x": 1},
    )  # fmt: skip
    empty = (2, *[None] * 15)
    bare = (
        3,
        False,
        0,
        0,
        0,
        0.0,
        0.0,
        Decimal(0),
        "",
        b"",
        date(9999, 12, 31),
        MOMENT,
        WALL,
        [],
        None,
        {},
    )
    writer = db.prepared(TYPES)
    writer.write(db.batch(TYPES, [row, empty, bare]))

    first, second, third = db.ask("SELECT * FROM {t} ORDER BY id")

    assert first[:7] == row[:7]
    assert Decimal(first[7]) == row[7]
    assert first[8:10] == ("x", b"\x00\xff")
    assert str(first[10]) == "0001-01-01"
    assert moment(first[11]) == MOMENT
    assert moment(first[12]).replace(tzinfo=None) == WALL
    assert [nested(value) for value in first[13:]] == [
        ["a", None, ""],
        {"bid": 1.0, "ask": None},
        {"x": 1},
    ]
    assert second == empty
    assert third[8:10] == ("", b"")
    assert str(third[10]) == "9999-12-31"
    assert [nested(third[13]), third[14], nested(third[15])] == [[], None, {}]


def test_odd_texts_arrive_as_they_are(db: DatabaseTable) -> None:
    schema = "id int, words string"
    writer = db.prepared(schema)
    writer.write(db.batch(schema, list(enumerate([*ODD_TEXTS, None]))))
    assert [words for _, words in db.ask("SELECT * FROM {t} ORDER BY id")] == [*ODD_TEXTS, None]


@pytest.mark.by_turns
def test_odd_numbers_arrive_or_are_refused(db: DatabaseTable) -> None:
    schema = "id int, real double"
    odd = [(1, math.nan), (2, math.inf), (3, -math.inf)]
    writer = db.prepared(schema)
    if db.kind == "postgres":
        writer.write(db.batch(schema, odd))
        found = db.ask("SELECT * FROM {t} ORDER BY id")
        assert [str(real) for _, real in found] == ["nan", "inf", "-inf"]
    else:
        with pytest.raises(RefusedError):
            writer.write(db.batch(schema, odd[:1]))
        assert db.ask("SELECT * FROM {t}") == []


@pytest.mark.by_turns
def test_rows_of_all_tasks_of_all_batches_arrive_once(db: DatabaseTable) -> None:
    writer = db.prepared("id bigint, words string")
    for number in range(3):
        rows = db.spark.range(number * 3000, (number + 1) * 3000, numPartitions=4)
        writer.write(db.of(rows.select("id", f.lit("x").alias("words")), number))
    writer.write(db.of(db.spark.createDataFrame([], "id bigint, words string"), 3))

    found = db.ask("SELECT COUNT(*), COUNT(DISTINCT id), MIN(id), MAX(id) FROM {t}")

    assert found == [(9000, 9000, 0, 8999)]


@pytest.mark.by_turns
def test_the_newest_row_of_a_key_stays_and_deletes_take_it_away(db: DatabaseTable) -> None:
    schema = "region string, id bigint, words string, gone boolean"
    writer = db.prepared(schema, mode="upsert", key=["region", "id"], delete_when="gone")

    writer.write(
        db.batch(schema, [("a", 1, "old", False), ("a", 2, "b", None), ("a", 1, "new", False)])
    )
    assert db.ask("SELECT * FROM {t} ORDER BY id") == [("a", 1, "new"), ("a", 2, "b")]

    writer.write(
        db.batch(
            schema,
            [
                ("a", 1, "newer", False), ("a", 2, None, True), ("b", 2, "other", False),
                ("a", 3, "x", True), ("a", 3, "back", False),
                ("a", 4, "never", False), ("a", 4, "", True),
            ],
            1,
        )
    )  # fmt: skip
    found = db.ask("SELECT * FROM {t} ORDER BY region, id")
    assert found == [("a", 1, "newer"), ("a", 3, "back"), ("b", 2, "other")]


@pytest.mark.by_turns
def test_a_row_that_breaks_another_unique_index_is_refused_and_changes_no_other_row(
    db: DatabaseTable,
) -> None:
    schema = "id bigint, mail string, gone boolean"
    mail = "varchar(50)" if db.kind == "mariadb" else "text"
    db.ask(f"CREATE TABLE {{t}} (id bigint PRIMARY KEY, mail {mail} UNIQUE)")
    writer = db.prepared(schema, mode="upsert", key="id", delete_when="gone")
    writer.write(db.batch(schema, [(1, "a", False), (2, "b", False)]))

    with pytest.raises(RefusedError, match=r"(?i)unique|duplicate"):
        writer.write(db.batch(schema, [(3, "a", False)], 1))
    assert db.ask("SELECT * FROM {t} ORDER BY id") == [(1, "a"), (2, "b")]

    # What is deleted makes room in the same batch; the key's own row is replaced as ever.
    writer.write(db.batch(schema, [(3, "a", False), (1, None, True), (2, "c", False)], 2))
    assert db.ask("SELECT * FROM {t} ORDER BY id") == [(2, "c"), (3, "a")]


def test_a_text_that_the_database_cannot_store_is_refused(pg: DatabaseTable) -> None:
    for schema, value in [
        ("id bigint, w string", "a\x00b"),
        ("id bigint, w array<string>", ["\x00"]),
    ]:
        writer = pg.prepared(schema)
        with pytest.raises(RefusedError):
            writer.write(pg.batch(schema, [(1, value)]))
        assert pg.ask("SELECT COUNT(*) FROM {t}") == [(0,)]
        pg.ask("DROP TABLE {t}")


BAD = (
    "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, "
    f"headers array<struct<key:string,value:binary>>, {FAILED} bigint, stage string, "
    "error_type string, error string"
)


def test_dead_letters_with_nul_in_their_texts_are_stored_with_a_sign_for_it(
    pg: DatabaseTable,
) -> None:
    writer = pg.open(pg.sink())
    writer.prepare(TABLE)
    headers = [("h\x00", bytearray(b"\x00v")), ("plain", None)]
    bad = (b"\x00k", b"\x00", "t", 0, 7, MOMENT, headers, None, "step", "Odd\x00", "a \x00 b")
    also = (None, None, "t", 0, 8, MOMENT, None, None, "step", None, None)

    write_bad_records(
        [pg.spark.createDataFrame([bad, also], BAD)], pg.of(pg.spark.range(0)), writer
    )

    first, second = sorted(writer.read_back(TABLE).collect(), key=lambda row: row["offset"])
    assert (first["error_type"], first["error"]) == ("Odd\u2400", "a \u2400 b")
    assert (first["key"], first["value"]) == (b"\x00k", b"\x00")
    assert [tuple(header) for header in first["headers"]] == [
        ("h\u2400", b"\x00v"),
        ("plain", None),
    ]
    assert (second["error"], second["headers"]) == (None, None)


def test_marks_of_an_older_release_are_known_and_gain_ranges(db: DatabaseTable) -> None:
    text = "varchar(255)" if db.kind == "mariadb" else "text"
    db.ask("DROP TABLE IF EXISTS penstock_offsets")
    db.ask(
        f"CREATE TABLE penstock_offsets (pipeline {text} NOT NULL, target {text} NOT NULL, "
        "epoch bigint NOT NULL, batch bigint NOT NULL, part bigint NOT NULL, written_at timestamp "
        "NOT NULL DEFAULT CURRENT_TIMESTAMP, PRIMARY KEY (pipeline, target))"
    )
    db.ask("INSERT INTO penstock_offsets (pipeline, target, epoch, batch, part) "
           "VALUES ('p', '{t}', 5, 3, 0), ('q', '{t}', 9, 9, 9)")  # fmt: skip
    assert db.open(db.sink()).last_write() == LastWrite(Mark(5, 3, 0))

    writer = db.prepared("id bigint")
    writer.write(db.batch("id bigint", [(1,)], 3, epoch=5))
    ranges = {("t", 0): (7, 8)}
    writer.write(db.batch("id bigint", [(2,)], 4, epoch=5, ranges=ranges))

    assert db.ask("SELECT id FROM {t}") == [(2,)]
    assert writer.claim(6) == LastWrite(Mark(5, 4, 0), ranges)
    assert db.ask("SELECT epoch FROM penstock_offsets WHERE pipeline = 'q'") == [(9,)]


def test_keys_that_differ_in_case_or_blanks_are_different(db: DatabaseTable) -> None:
    writer = db.prepared("name string", mode="upsert", key="name")
    writer.write(db.batch("name string", [("a",), ("A",), ("a ",), ("a",)]))
    assert sorted(name for (name,) in db.ask("SELECT name FROM {t}")) == ["A", "a", "a "]


def test_a_table_gains_columns_and_wider_types(db: DatabaseTable) -> None:
    db.prepared("id int, price float, exact decimal(5,2)").write(
        db.batch("id int, price float, exact decimal(5,2)", [(1, 0.5, Decimal("1.25"))])
    )
    wider = "exact decimal(12,4), note string, id bigint, price double"
    writer = db.prepared(wider)
    writer.write(db.batch(wider, [(Decimal("12345678.1234"), "new", 2**40, 0.1)], 1))

    rows = db.ask("SELECT id, price, exact, note FROM {t} ORDER BY id")

    assert [(id_, price, Decimal(exact), note) for id_, price, exact, note in rows] == [
        (1, 0.5, Decimal("1.25"), None),
        (2**40, 0.1, Decimal("12345678.1234"), "new"),
    ]


def test_narrower_rows_fit_a_wider_table(db: DatabaseTable) -> None:
    db.prepared("id bigint, price double")
    writer = db.prepared("ID int, price float")
    writer.write(db.batch("ID int, price float", [(1, 0.1)]))
    ((id_, price),) = db.ask("SELECT id, price FROM {t}")
    assert (id_, round(price, 6)) == (1, 0.1)


def test_any_other_change_is_refused_and_changes_nothing(db: DatabaseTable) -> None:
    db.prepared("id bigint, words string")
    with pytest.raises(ConfigError, match=r"column 'words' as .*cast it in a step"):
        db.prepared("id bigint, words binary, more int")
    assert db.ask("SELECT * FROM {t}") == []
    with pytest.raises(Exception, match="more"):
        db.ask("SELECT more FROM {t}")


def test_a_table_of_someone_else_is_taken_where_it_fits(db: DatabaseTable) -> None:
    db.ask("CREATE TABLE {t} (own INTEGER DEFAULT 7, name VARCHAR(3), id BIGINT PRIMARY KEY)")
    schema = "id bigint, name string"
    writer = db.prepared(schema, mode="upsert", key="id")
    writer.write(db.batch(schema, [(1, "abc")]))
    assert db.ask("SELECT * FROM {t}") == [(7, "abc", 1)]


def test_a_table_that_needs_more_than_the_rows_have_is_refused(db: DatabaseTable) -> None:
    db.ask("CREATE TABLE {t} (id BIGINT, name VARCHAR(3) NOT NULL)")
    with pytest.raises(ConfigError, match=r"needs a value in 'name'.*rows bring 'id'"):
        db.prepared("id bigint")


def test_upsert_into_a_table_without_that_key_is_refused(db: DatabaseTable) -> None:
    db.ask("CREATE TABLE {t} (id BIGINT, name VARCHAR(3))")
    with pytest.raises(ConfigError, match=r"no primary key or unique index.*ADD PRIMARY KEY"):
        db.prepared("id bigint, name string", mode="upsert", key="id")


@pytest.mark.by_turns
def test_a_write_that_is_run_again_is_skipped_and_counted(db: DatabaseTable) -> None:
    writer = db.prepared("id bigint")
    writer.write(db.batch("id bigint", [(1,)], 5))
    counting = Observation()
    again = db.spark.range(7).observe(counting, f.count(f.lit(1)).alias("rows"))
    writer.write(db.of(again, 5))
    assert counting.get == {"rows": 7}
    writer.write(db.batch("id bigint", [(2,)], 5, part=1))
    writer.write(db.batch("id bigint", [(3,)], 0, epoch=1))
    writer.write(db.batch("id bigint", [(4,)], 0, pipeline="p.dead-letters"))
    assert sorted(db.ask("SELECT id FROM {t}")) == [(1,), (2,), (3,), (4,)]


def test_rows_are_counted_in_the_pass_that_writes_them(db: DatabaseTable) -> None:
    writer = db.prepared("id bigint")
    counting = Observation()
    rows = db.spark.range(1000).observe(counting, f.count(f.lit(1)).alias("rows"))
    writer.write(db.of(rows))
    assert counting.get == {"rows": 1000}


def test_at_least_once_keeps_no_marks(db: DatabaseTable) -> None:
    writer = db.prepared("id bigint")
    for _ in range(2):
        writer.write(db.batch("id bigint", [(1,)], delivery=Delivery.AT_LEAST_ONCE))
    assert db.ask("SELECT id FROM {t}") == [(1,), (1,)]


@pytest.mark.by_turns
def test_a_refused_row_leaves_nothing_of_its_write(db: DatabaseTable) -> None:
    db.ask("CREATE TABLE {t} (id BIGINT NOT NULL CHECK (id <> 13), name VARCHAR(20))")
    writer = db.prepared("id bigint, name string")
    rows = db.spark.range(0, 20_000, numPartitions=3).select("id", f.lit("x").alias("name"))

    with pytest.raises(RefusedError, match=r"(?i)check|constraint"):
        writer.write(db.of(rows, 0))
    assert db.ask("SELECT COUNT(*) FROM {t}") == [(0,)]

    writer.write(db.of(rows.where("id <> 13"), 0, part=1))
    assert db.ask("SELECT COUNT(*) FROM {t}") == [(19_999,)]


def test_a_null_key_is_refused(db: DatabaseTable) -> None:
    writer = db.prepared("id bigint, name string", mode="upsert", key="id")
    with pytest.raises(RefusedError, match=r"(?i)null"):
        writer.write(db.batch("id bigint, name string", [(1, "a"), (None, "b")]))
    assert db.ask("SELECT * FROM {t}") == []


def test_a_step_that_fails_leaves_nothing_and_keeps_its_own_error(db: DatabaseTable) -> None:
    writer = db.prepared("id bigint")
    rows = db.spark.range(0, 20_000, numPartitions=2)
    broken = f.when(f.col("id") == 15_000, f.raise_error(f.lit("the step is broken")))
    with pytest.raises(Exception, match="the step is broken"):
        writer.write(db.of(rows.select(f.coalesce(broken.cast("bigint"), "id").alias("id"))))
    assert db.ask("SELECT COUNT(*) FROM {t}") == [(0,)]


def test_columns_may_have_any_name(db: DatabaseTable) -> None:
    schema = '`select` bigint, `per%cent` string, `quo"te` string, `a b` binary'
    writer = db.prepared(schema, mode="upsert", key="select")
    writer.write(db.batch(schema, [(1, "a", "b", b"c")]))
    assert db.ask("SELECT * FROM {t}") == [(1, "a", "b", b"c")]


def test_postgresql_checks_texts_for_types_of_its_own(pg: DatabaseTable) -> None:
    pg.ask("CREATE TYPE {t}_mood AS ENUM ('good', 'bad')")
    pg.ask("CREATE TABLE {t} (id uuid, mood {t}_mood, data json, many numeric)")
    schema = "id string, mood string, data string, many decimal(20,3)"
    writer = pg.prepared(schema)
    known = "12345678-1234-5678-1234-567812345678"
    writer.write(pg.batch(schema, [(known, "good", '{"a": 1}', Decimal("1.500"))]))
    found = pg.ask("SELECT id::text, mood::text, data, many FROM {t}")
    assert found == [(known, "good", {"a": 1}, Decimal("1.500"))]
    with pytest.raises(RefusedError, match="invalid input syntax for type uuid"):
        writer.write(pg.batch(schema, [("no", "good", "{}", None)], 1))


def test_postgresql_upserts_by_a_key_of_its_own_type(pg: DatabaseTable) -> None:
    pg.ask("CREATE TABLE {t} (id uuid PRIMARY KEY, words varchar(5))")
    schema = "id string, words string, gone boolean"
    writer = pg.prepared(schema, mode="upsert", key="id", delete_when="gone")
    one, two = ("12345678-1234-5678-1234-56781234567" + last for last in "89")
    writer.write(pg.batch(schema, [(one, "a", False), (two, "b", False), (one, "c", False)]))
    writer.write(pg.batch(schema, [(two, "b", True)], 1))
    assert pg.ask("SELECT id::text, words FROM {t}") == [(one, "c")]


def test_postgresql_gets_every_digit_of_every_decimal(pg: DatabaseTable) -> None:
    shapes = [
        (1, 0),
        (1, 1),
        (5, 2),
        (9, 9),
        (10, 0),
        (18, 18),
        (19, 4),
        (38, 0),
        (38, 37),
        (38, 38),
    ]
    schema = ", ".join(f"d{at} decimal({p},{s})" for at, (p, s) in enumerate(shapes))
    greatest = tuple(Decimal(10**p - 1).scaleb(-s, HUGE) for p, s in shapes)
    least = tuple(Decimal(1).scaleb(-s, HUGE) for _, s in shapes)
    rows = [
        greatest,
        tuple(value.copy_negate() for value in greatest),
        least,
        tuple(value.copy_negate() for value in least),
        tuple(Decimal(0) for _ in shapes),
        tuple(None if at % 2 else value for at, value in enumerate(greatest)),
    ]
    writer = pg.prepared(schema)
    writer.write(pg.batch(schema, rows))
    assert pg.ask("SELECT * FROM {t}") == rows


def test_postgresql_refuses_a_text_with_a_nul(pg: DatabaseTable) -> None:
    writer = pg.prepared("words string")
    with pytest.raises(RefusedError, match="0x00"):
        writer.write(pg.batch("words string", [("a",), ("b\0c",)]))
    assert pg.ask("SELECT * FROM {t}") == []


def test_tables_lie_in_the_schema_that_is_named(pg: DatabaseTable) -> None:
    pg.ask("CREATE SCHEMA s_{t}")
    writer = pg.prepared("id bigint", table=f"s_{pg.table}.{pg.table}")
    writer.write(pg.batch("id bigint", [(1,)]))
    assert pg.ask("SELECT id FROM s_{t}.{t}") == [(1,)]
    assert pg.ask("SELECT target, epoch, batch, part FROM s_{t}.penstock_offsets") == [
        (pg.table, 0, 0, 0)
    ]
