"""Records behind transforms as rows for sinks: what each shape has, and which records it refuses."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.errors import ConfigError
from penstock.formats.connect import INT32, STRING, Schema, SchemaBuilder
from penstock.pipeline import ORIGIN
from penstock.steps.connect_transforms.connect_step import BoundConnectStep
from penstock.steps.connect_transforms.row_shapes import Documents, Fields, Record, Shape, Text

ORDER = SchemaBuilder.struct().field("id", INT32).field("note", STRING.or_null()).build()
FRAME = (
    "topic string, partition int, offset bigint, timestamp timestamp, "
    "headers array<struct<key:string,value:binary>>, key int, value struct<id:int,note:string>, "
    "_penstock_topic string, _penstock_partition int, _penstock_offset bigint"
)


@pytest.fixture(scope="session")
def spark() -> Any:
    from penstock.engine import spark_session

    return spark_session()


def frame(spark: Any, *records: tuple[int | None, tuple[int, str | None] | None]) -> Any:
    rows = [("t", 0, n, None, None, k, v, "t", 0, n) for n, (k, v) in enumerate(records)]
    return spark.createDataFrame(rows, FRAME)


def rows(
    records: Any, shape: Shape, key: Schema | None = INT32, value: Schema | None = ORDER
) -> list[dict[str, Any]]:
    """Return the rows; those of each shape have their origin."""
    made = BoundConnectStep(shape=shape, key_schema=key, value_schema=value).traced(records)
    assert made.columns[-3:] == [*ORIGIN]
    return [row.asDict() for row in made.drop(*ORIGIN).collect()]


def test_documents_and_texts(spark: Any) -> None:
    records = frame(spark, (7, (1, "n")), (None, None))
    first, second = rows(records, Documents())
    assert (first["key"], first["value"]) == ("7", '{"id":1,"note":"n"}')
    assert (second["key"], second["value"], second["offset"]) == (None, None, 1)
    texts = [each["value"] for each in rows(records, Text())]
    assert texts == ["Struct{id=1,note=n}", None]
    assert rows(records, Record())[0]["value"]["id"] == 1


def test_fields_have_what_tells_rows_apart(spark: Any) -> None:
    records = frame(spark, (7, (1, "n")), (8, None))
    keyed = Fields("record_key", ("key",), only=("note",), tombstones="delete")
    assert rows(records, keyed) == [
        {"note": "n", "key": 7, "kafka_tombstone": False},
        {"note": None, "key": 8, "kafka_tombstone": True},
    ]
    placed = Fields("kafka", ("t", "p", "o"), coordinates={"_from": "topic"}, tombstones="skip")
    expected = {"id": 1, "note": "n", "t": "t", "p": 0, "o": 0, "_from": "t"}
    assert rows(records, placed) == [expected]


@pytest.mark.parametrize(
    ("shape", "record", "reason"),
    [
        (Fields(), (1, None), "the value is null"),
        (Fields("record_key", ("id",)), (None, (1, "n")), "the key is null"),
    ],
)
def test_a_null_where_one_is_needed_refuses_the_record(
    spark: Any, shape: Fields, record: Any, reason: str
) -> None:
    with pytest.raises(Exception, match=reason):
        rows(frame(spark, record), shape)


@pytest.mark.parametrize(
    ("shape", "value", "reason"),
    [
        (Fields(), None, "the values are JSON without a schema: choose a converter with schemas"),
        (Fields(), STRING, "the values are string"),
        (
            Fields("record_key"),
            ORDER,
            "one int32, which needs one name for its column; given: none",
        ),
        (Fields("record_value", ("uid",)), ORDER, "the value has no field 'uid'"),
    ],
)
def test_what_cannot_be_columns_is_refused_before_a_record_is_read(
    spark: Any, shape: Fields, value: Schema | None, reason: str
) -> None:
    with pytest.raises(ConfigError, match=reason):
        rows(frame(spark), shape, value=value)
