"""The sink `kafka`: what becomes of a row, and each row once, whatever dies, fails or comes twice."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import orjson
import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as f
from pyspark.sql.types import StructType

from penstock import Admin, Connection, Consumer, start
from penstock.embedded import Broker, Security
from penstock.errors import ConfigError, FencedError, RefusedError, TerminalError
from penstock.kafka import Acl
from penstock.kafka.producing.record_transaction import Transaction
from penstock.pipeline import CLAIMED, Batch, Delivery, Mark, Opening, Reading, Writer
from penstock.record import Record
from penstock.sinks.kafka import KafkaSink, through_spark
from penstock.sources.kafka import KafkaSource
from penstock.testing import eventually, fill, read_all

PER_PARTITION = 10
BOTH = pytest.mark.parametrize("delivery", [Delivery.AT_LEAST_ONCE, Delivery.EXACTLY_ONCE])


@pytest.fixture(scope="module")
def spark() -> Any:
    from penstock.engine import spark_session

    return spark_session()


def write(sink: KafkaSink, batch: Batch) -> None:
    opening = Opening(batch.rows.sparkSession, batch.pipeline, batch.connection, batch.delivery)
    with sink.open(opening) as writer:
        writer.write(batch)


class Copy:
    """From a topic of two partitions, ten records each, to another topic, batch by batch."""

    def __init__(self, spark: Any, connection: Connection, name: str) -> None:
        self.spark = spark
        self.connection = connection
        self.name = name
        self.source = f"{name}-source"
        self.target = f"{name}-target"
        self.ranges = {(self.source, at): (0, PER_PARTITION) for at in (0, 1)}
        numbers = [{"n": n} for n in range(2 * PER_PARTITION)]
        fill(connection, self.source, numbers, partitions=2)
        fill(connection, self.target, [], partitions=2)

    def batch(self, rows: Any = None, number: int = 0, **more: Any) -> Batch:
        ranges = more.pop("ranges", self.ranges)
        whole = Batch(
            self.rows(ranges), self.name, 0, number, self.connection, ranges=ranges,
            delivery=Delivery.EXACTLY_ONCE,
        )  # fmt: skip
        return replace(whole, rows=whole.rows if rows is None else rows, **more)

    def rows(self, ranges: dict[tuple[str, int], tuple[int, int]] | None = None) -> Any:
        ranges = ranges or self.ranges
        start = {place: ends[0] for place, ends in ranges.items()}
        end = {place: ends[1] for place, ends in ranges.items()}
        reading = Reading(self.spark, self.connection, start)
        records = KafkaSource(topics=[self.source]).read_range(reading, end)
        return records.selectExpr("CAST(value AS STRING) AS value", "partition", "offset")

    def write(self, batch: Batch, **options: Any) -> None:
        write(KafkaSink(**{"topic": self.target, "value": "value", **options}), batch)

    def open(self, *partitions: tuple[str, int]) -> Writer:
        """Open the sink for records of these partitions."""
        exact = Delivery.EXACTLY_ONCE
        opening = Opening(self.spark, self.name, self.connection, exact, partitions)
        return KafkaSink(topic=self.target, value="value").open(opening)

    def numbers(self) -> list[int]:
        return sorted(orjson.loads(record.value)["n"] for record in self.written())

    def written(self) -> list[Record]:
        return read_all(self.connection, self.target)


EVERY = list(range(2 * PER_PARTITION))


@pytest.fixture
def copy(spark: Any, connection: Connection, unique: str) -> Copy:
    return Copy(spark, connection, unique)


# -- what becomes of a row

SCHEMA = (
    "id bigint, name string, place string, part int, "
    "notes array<struct<key:string,value:binary>>, body string"
)
ROWS = [
    (1, "a", None, 1, [("x", b"1"), ("y", None)], "one"),
    (2, None, "other", None, [], None),
    (3, "c", None, 0, None, "three"),
]


@BOTH
def test_columns_become_key_headers_topic_and_partition_and_a_null_value_is_a_tombstone(
    spark: Any, connection: Connection, unique: str, delivery: Delivery
) -> None:
    other = f"{unique}-other"
    fill(connection, unique, [], partitions=2)
    fill(connection, other, [])
    sink = KafkaSink(
        topic=unique,
        topic_column="place",
        partition="part",
        key="id",
        value="body",
        headers="notes",
    )
    rows = spark.createDataFrame(ROWS, SCHEMA).withColumn(
        "place", f.when(f.col("place") == "other", other)
    )

    write(sink, Batch(rows, unique, 0, 0, connection, delivery=delivery))

    here = {record.key: record for record in read_all(connection, unique)}
    assert {key: (each.value, each.partition) for key, each in here.items()} == {
        b"1": (b"one", 1),
        b"3": (b"three", 0),
    }
    assert list(here[b"1"].headers) == [("x", b"1"), ("y", None)]
    (tombstone,) = read_all(connection, other)
    assert (tombstone.key, tombstone.value) == (b"2", None)


@BOTH
def test_without_a_value_column_all_others_are_one_json_object(
    spark: Any, connection: Connection, unique: str, delivery: Delivery
) -> None:
    fill(connection, unique, [])
    rows = spark.createDataFrame([(1, "a", None)], "id int, name string, `odd.name` string")

    batch = Batch(rows, unique, 0, 0, connection, delivery=delivery)
    write(KafkaSink(topic=unique, key="id"), batch)

    (record,) = read_all(connection, unique)
    assert (record.key, orjson.loads(record.value)) == (b"1", {"name": "a", "odd.name": None})


def test_times_in_json_have_their_microseconds(
    spark: Any, connection: Connection, unique: str
) -> None:
    fill(connection, unique, [])
    rows = spark.sql(
        "SELECT TIMESTAMP '2024-01-31 12:00:00.123456Z' AS at, "
        "array(TIMESTAMP_NTZ '0001-01-01 00:00:00.000001') AS local"
    )

    write(KafkaSink(topic=unique), Batch(rows, unique, 0, 0, connection))

    (record,) = read_all(connection, unique)
    assert orjson.loads(record.value) == {
        "at": "2024-01-31T12:00:00.123456Z",
        "local": ["0001-01-01T00:00:00.000001"],
    }


def test_a_key_goes_to_the_same_partition_whatever_the_delivery(
    spark: Any, connection: Connection, unique: str
) -> None:
    fill(connection, unique, [], partitions=7)
    rows = spark.createDataFrame([(f"key {n}",) for n in range(50)], "name string")
    for delivery in (Delivery.AT_LEAST_ONCE, Delivery.EXACTLY_ONCE):
        batch = Batch(rows, unique, 0, 0, connection, delivery=delivery)
        write(KafkaSink(topic=unique, key="name", value="name"), batch)

    places: dict[bytes, list[int]] = {}
    for record in read_all(connection, unique):
        places.setdefault(record.key, []).append(record.partition)
    assert len(places) == 50
    assert all(len(found) == 2 and len(set(found)) == 1 for found in places.values())


@pytest.mark.parametrize(
    ("options", "reported"),
    [
        ({"key": "nam"}, "did you mean 'name'"),
        ({"partition": "name"}, "'name', which is string: it must be a whole number"),
        ({"topic_column": "id"}, "'id', which is bigint: it must be a string"),
        ({"headers": "name"}, "must be array<struct<key:string,value:binary>>"),
    ],
)
def test_a_column_that_cannot_be_what_it_is_named_for_is_refused_at_the_start(
    spark: Any, connection: Connection, unique: str, options: dict[str, str], reported: str
) -> None:
    sink = KafkaSink.model_validate({"topic": unique, **options})
    with pytest.raises(ConfigError, match=reported):
        sink.open(Opening(spark, unique, connection)).prepare(StructType.fromDDL(SCHEMA))


def test_a_topic_that_is_missing_is_made_at_the_start(
    spark: Any, connection: Connection, unique: str
) -> None:
    writer = KafkaSink(topic=unique).open(Opening(spark, unique, connection))
    writer.prepare(StructType.fromDDL("a int"))
    with Admin(connection) as admin:
        assert len(admin.partitions([unique])) == 1


@pytest.mark.by_turns
@BOTH
@pytest.mark.parametrize("what", ["size", "partition", "topic"])
def test_a_row_that_kafka_refuses_is_refused_and_nothing_of_it_is_seen(
    spark: Any,
    connection: Connection,
    unique: str,
    delivery: Delivery,
    what: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Java's producer waits a minute for a partition that is not there.
    options = through_spark._options
    brief = {"kafka.max.block.ms": "5000"}
    monkeypatch.setattr(through_spark, "_options", lambda *given: options(*given) | brief)
    with Admin(connection) as admin:
        admin.create_topic(unique, config={"max.message.bytes": 3000})
    bad = {
        "size": ("x" * 5000, None, None),
        "partition": ("bad", 77, None),
        "topic": ("bad", None, "no topic's name!"),
    }[what]
    rows = spark.createDataFrame([("good", None, None), bad], "v string, p int, t string")
    sink = KafkaSink(topic=unique, value="v", partition="p", topic_column="t")
    writer = sink.open(Opening(spark, unique, connection, delivery))
    writer.prepare(rows.schema)

    with pytest.raises(RefusedError):
        writer.write(Batch(rows.coalesce(1), unique, 0, 0, connection, delivery=delivery))

    assert b"bad" not in {record.value for record in read_all(connection, unique)}
    if delivery is Delivery.EXACTLY_ONCE:
        assert read_all(connection, unique) == []


# -- exactly once


def test_a_batch_that_comes_again_is_skipped(copy: Copy) -> None:
    copy.write(copy.batch())
    copy.write(copy.batch())

    assert copy.numbers() == EVERY
    with Admin(copy.connection) as admin:
        ends = {place: end for place, (_, end) in copy.ranges.items()}
        assert admin.committed(f"{copy.name}.sink") == ends


def test_of_a_batch_that_was_half_written_only_the_rest_is_written(copy: Copy) -> None:
    copy.write(copy.batch(copy.rows().where("partition = 1")))
    assert len(copy.numbers()) == PER_PARTITION

    copy.write(copy.batch())

    assert copy.numbers() == EVERY


def test_rows_that_break_off_because_a_step_failed_are_never_committed(copy: Copy) -> None:
    broken = copy.rows().selectExpr(
        "IF(offset = 7, raise_error('boom'), value) AS value", "partition"
    )
    for _ in range(3):
        with pytest.raises(PySparkException, match="boom"):
            copy.write(copy.batch(broken))
    assert copy.numbers() == []

    copy.write(copy.batch())

    assert copy.numbers() == EVERY


def test_a_batch_in_parts_has_what_came_through_before_it_was_divided(copy: Copy) -> None:
    copy.write(copy.batch(copy.rows().where("partition = 0")))
    first, second = sorted(copy.ranges)
    parts = [{first: (0, 4)}, {first: (4, 10)}, {second: (0, 4)}, {second: (5, 10)}]
    for _ in range(2):
        for number, ranges in enumerate(parts, 1):
            copy.write(copy.batch(ranges=ranges, part=number))

    assert copy.numbers() == [n for n in EVERY if n != 9]  # offset 4 of partition 1 was refused


def test_steps_that_shuffle_are_one_transaction(copy: Copy) -> None:
    wide = copy.rows().repartition(5, "value")
    copy.write(copy.batch(wide))
    copy.write(copy.batch(wide))

    assert copy.numbers() == EVERY
    with Admin(copy.connection) as admin:
        # A transaction leaves one sign of its end in each partition that it wrote to.
        ends = admin.latest(admin.partitions([copy.target]))
    written = [end for end in ends.values() if end]
    assert sum(written) == len(EVERY) + len(written)


def test_a_definition_that_was_changed_in_the_middle_of_a_batch_is_refused(copy: Copy) -> None:
    copy.write(copy.batch(copy.rows().where("partition = 0")))

    with pytest.raises(TerminalError, match="changed in the middle of a batch"):
        copy.write(copy.batch(copy.rows().repartition(2, "value")))

    copy.write(copy.batch())
    assert copy.numbers() == EVERY


def test_a_new_epoch_is_written_again(copy: Copy) -> None:
    copy.write(copy.batch())
    copy.write(copy.batch(epoch=1))
    assert copy.numbers() == sorted(EVERY * 2)


def test_a_later_batch_is_written_from_where_the_earlier_one_ended(copy: Copy) -> None:
    halves = [dict.fromkeys(copy.ranges, (0, 4)), dict.fromkeys(copy.ranges, (4, 10))]
    for number, ranges in enumerate(halves):
        copy.write(copy.batch(number=number, ranges=ranges))
    assert copy.numbers() == EVERY


def test_a_zombie_is_fenced_and_what_it_left_open_is_not_seen(copy: Copy) -> None:
    name = f"{copy.name}.sink.{copy.source}-0"
    with Transaction(copy.connection, name, {}) as zombie:
        zombie.begin()
        zombie.send(pa.record_batch({"value": pa.array([b"half"])}), copy.target)
        zombie._client.flush(10)

        copy.write(copy.batch())

        with pytest.raises(FencedError):
            zombie._transactions.commit(10)
    assert copy.numbers() == EVERY
    assert b"half" in uncommitted(copy)


def test_the_epoch_is_known_after_the_topic_that_was_read_is_recreated(copy: Copy) -> None:
    """Kafka removes the marks at its partitions with it."""
    writer = copy.open(*copy.ranges)
    writer.claim(7)
    with Admin(copy.connection) as admin:
        admin.delete_topic(copy.source)
        admin.create_topic(copy.source, 2)
        eventually(lambda: admin.committed(f"{copy.name}.sink").keys() == {(copy.target, 0)})

    known = writer.last_write()

    assert known is not None
    assert known.mark == Mark(7, CLAIMED, 0)
    assert not known.ranges
    with pytest.raises(FencedError):
        writer.claim(7)


def test_a_record_that_was_refused_before_is_not_taken_for_written(copy: Copy) -> None:
    """The parts after it were written meanwhile; only its own mark shows that it was written."""
    first = (copy.source, 0)
    after = copy.batch(ranges={first: (5, 10)}, part=3)
    copy.write(after)
    writer = copy.open(first)
    refused = copy.batch(ranges={first: (2, 3)}, part=9, again=True)

    assert writer.has(after)
    assert not writer.has(refused)
    copy.write(refused)
    assert writer.has(refused)
    copy.write(refused)
    assert len(copy.written()) == 6


def uncommitted(copy: Copy) -> set[bytes | None]:
    with Consumer(copy.connection, isolation_level="read_uncommitted") as consumer:
        consumer.assign({(copy.target, at): 0 for at in (0, 1)})
        found: set[bytes | None] = set()
        while len(found) < len(EVERY) + 1 and (record := consumer.poll(10)):
            found.add(record.value)
    return found


def test_on_another_cluster_the_marks_hang_on_the_topic_that_is_written(copy: Copy) -> None:
    abroad = {"connection": copy.connection}
    copy.write(copy.batch(copy.rows().where("partition = 0")), **abroad)
    copy.write(copy.batch(), **abroad)
    copy.write(copy.batch(), **abroad)

    assert copy.numbers() == EVERY
    with Admin(copy.connection) as admin:
        marked = admin.committed(f"{copy.name}.sink.{copy.source}-0")
    assert marked == {(copy.target, 0): PER_PARTITION}


def test_shuffled_steps_on_another_cluster_and_parts_of_them(copy: Copy) -> None:
    abroad = {"connection": copy.connection}
    first, second = sorted(copy.ranges)
    for number, ranges in enumerate([{first: (0, 10)}, {second: (0, 10)}], 1):
        wide = copy.rows(ranges).repartition(3, "value")
        for _ in range(2):
            copy.write(copy.batch(wide, ranges=ranges, part=number), **abroad)
    assert copy.numbers() == EVERY


# -- as a pipeline


def test_a_pipeline_puts_what_is_too_large_aside_and_has_all_else_once(
    connection: Connection, topic: Any, pipeline: Any, unique: str
) -> None:
    with Admin(connection) as admin:
        admin.create_topic(topic("out"), config={"max.message.bytes": 3000})
    texts = ["x" * 5000 if n in (3, 17) else f"text {n}" for n in range(24)]
    values = [b"no json" if n == 9 else {"n": n, "text": text} for n, text in enumerate(texts)]
    fill(connection, topic(), values, partitions=3)

    with start(
        pipeline(
            source={"kafka": topic()},
            decode={"json": {"schema": "n int, text string"}},
            sink={"kafka": topic("out")},
            delivery="exactly-once",
        ),
        once=True,
    ) as running:
        running.wait(240)
        progress = running.progress()

    found = sorted(orjson.loads(each.value)["n"] for each in read_all(connection, topic("out")))
    assert found == [n for n in range(24) if n not in (3, 9, 17)]
    letters = {
        dict(each.headers)["penstock.stage"]: each.value
        for each in read_all(connection, f"{unique}.dead-letters")
    }
    assert set(letters) == {b"decode", b"write"}
    assert (progress.rows, progress.failed) == (21, 3)
    with Admin(connection) as admin:
        assert admin.committed(f"{unique}.dead-letters.sink") != {}


# -- who may


@pytest.fixture(scope="module")
def guarded() -> Iterator[Broker]:
    users = {"writer": "let me in"}
    with Broker(security=Security(protocol="sasl_ssl", acls=True, users=users)) as broker:
        yield broker


def test_transactions_of_tasks_log_in_as_the_connection_says(
    spark: Any, guarded: Broker, unique: str
) -> None:
    copy = Copy(spark, guarded.connection, unique)
    copy.write(copy.batch())
    copy.write(copy.batch())
    assert copy.numbers() == EVERY


def test_rights_that_are_missing_are_named_and_those_of_the_docs_are_enough(
    spark: Any, guarded: Broker, unique: str
) -> None:
    copy = Copy(spark, guarded.connection, unique)
    copy.connection = guarded.connection_as("writer")
    user = "User:writer"
    rules = [
        Acl(user, "read", "topic", copy.source),
        Acl(user, "write", "topic", copy.target),
        Acl(user, "read", "group", f"{unique}.sink", pattern="prefixed"),
    ]
    with Admin(guarded.connection) as admin:
        admin.create_acls(rules)
        with pytest.raises(ConfigError, match="TRANSACTIONAL_ID_AUTHORIZATION_FAILED") as raised:
            copy.write(copy.batch())
        assert "let me in" not in str(raised.value)
        admin.create_acls(
            [Acl(user, "write", "transactional_id", f"{unique}.sink", pattern="prefixed")]
        )
    copy.write(copy.batch())

    copy.connection = guarded.connection
    assert copy.numbers() == EVERY
