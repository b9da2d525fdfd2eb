"""Records with the converters of Connect are columns of Spark; bad ones are failures with a reason."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from penstock.config import Connection
from penstock.decode.connect_decode import RECORD_COLUMNS, ConnectDecode
from penstock.decode.newest_schemas import newest_schema
from penstock.formats.connect import INT32, INT64, STRING, Schema, SchemaBuilder, decimal, timestamp
from penstock.formats.connect.json_schemas import to_document
from penstock.kafka import Admin, Producer
from penstock.pipeline import FAILED, ORIGIN

RECORD = (
    "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, "
    "timestampType int, headers array<struct<key:string,value:binary>>"
)
ORDER = (
    SchemaBuilder.struct("Order")
    .field("id", INT64)
    .field("a.b `c`", STRING.or_null())
    .field("price", decimal(2).or_null())
    .field("at", timestamp().or_null())
    .field("none", SchemaBuilder.struct().optional().build())
    .field("counts", SchemaBuilder.map(INT32, INT32).optional().build())
    .build()
)


@pytest.fixture(scope="session")
def spark() -> Any:
    from penstock.engine import spark_session

    return spark_session()


def frame(spark: Any, *records: tuple[bytes | None, bytes | None]) -> Any:
    rows = [(key, value, "t", 0, at, None, 0, None) for at, (key, value) in enumerate(records)]
    return spark.createDataFrame(rows, RECORD)


def envelope(schema: Schema, payload: Any) -> bytes:
    return json.dumps({"schema": to_document(schema), "payload": payload}).encode()


def rows(decode: Any, records: Any) -> list[tuple[Any, Any]]:
    decoded = decode.decode(records)
    assert decoded.columns == [*RECORD_COLUMNS, FAILED]
    good = decoded.where(f"{FAILED} is null").orderBy("offset").collect()
    traced = decode.traced(records)
    assert traced.columns == [*RECORD_COLUMNS, *ORIGIN, FAILED]
    assert traced.where(f"{FAILED} is null").count() == len(good)
    return [(row.key, row.value) for row in good]


def failures(decode: Any, records: Any) -> list[tuple[int, str]]:
    failed = decode.failures(records)
    assert set(records.columns) | {"error_type", "error", FAILED} == set(failed.columns)
    found = failed.orderBy("offset").collect()
    marks = sorted(
        row[FAILED] for row in decode.decode(records).where(f"{FAILED} is not null").collect()
    )
    assert marks == sorted(row[FAILED] for row in found)
    return [(row.offset, row.error) for row in found]


def test_text_and_bytes_are_read_without_python(spark: Any) -> None:
    decode = ConnectDecode(value={"form": "string"}).bind(["t"])
    records = frame(spark, (b"\xff", "é".encode()), (None, None), (b"k", b"a\xffb"), (b"", b""))
    assert rows(decode, records) == [(b"\xff", "é"), (None, None), (b"k", "a\ufffdb"), (b"", "")]
    assert failures(decode, records) == []
    assert "Python" not in decode.decode(records)._jdf.queryExecution().executedPlan().toString()


def test_json_without_schemas_is_its_text(spark: Any) -> None:
    decode = ConnectDecode(key={"form": "int"}, value={"form": "json", "schemas": False}).bind(
        ["t"]
    )
    one = b"\0\0\0\1"
    good = [
        b'{"b":1.10,"a":123456789012345678901}',
        b"[1]",
        b'"x"',
        b"7",
        b" null ",
        b"\tnull\r\n",
        b"",
        None,
    ]
    bad = [b"{", b"\xff", b"'a'", b'{"a":1} x', b"1,2", b'1,"b":2']
    records = frame(spark, *((one, value) for value in good + bad), (b"x", b"1"))
    read = [each.decode() for each in good[:4]]
    assert rows(decode, records) == [(1, value) for value in [*read, None, None, None, None]]
    found = failures(decode, records)
    assert [at for at, _ in found] == [*range(8, 15)]
    assert "value: it is not JSON" in found[0][1]
    assert "key: integer is 4 bytes long, not 1" in found[-1][1]
    assert decode.value_schema is None


def test_json_with_one_schema_for_all(spark: Any) -> None:
    options = {"form": "json", "schema": to_document(ORDER)}
    decode = ConnectDecode(key={"form": "string"}, value=options).bind(["t"])
    full = {"id": 1, "a.b `c`": "x", "price": "AN8=", "at": 1, "none": {}, "counts": [[1, 2]]}
    records = frame(spark, (b"a", json.dumps(full).encode()), (b"b", None), (b"c", b'{"id":"1"}'))
    (_, first), second = rows(decode, records)
    assert first.asDict(recursive=True) | {"price": str(first.price), "at": str(first["at"])} == {
        "id": 1,
        "a.b `c`": "x",
        "price": "2.23",
        "at": str(first["at"]),
        "none": {},
        "counts": {1: 2},
    }
    assert second == ("b", None)
    assert failures(decode, records)[0][0] == 2


def test_the_newest_records_decide_the_columns(
    spark: Any, connection: Connection, topic: Callable[..., str]
) -> None:
    name = topic("newest")
    old = SchemaBuilder.struct().field("id", INT32).field("gone", STRING).build()
    with Admin(connection) as admin:
        admin.create_topic(name, partitions=2)
    assert newest_schema(connection, [name, "does-not-exist"], "value").schema is None
    with Producer(connection) as producer:
        producer.produce(name, b"k", envelope(old, {"id": 1, "gone": "x"}), partition=0)
        producer.produce(name, b"k", envelope(ORDER, {"id": 2}), partition=0)
        for _ in range(30):
            producer.produce(name, b"k", None, partition=0)
            producer.produce(name, b"k", b"not JSON", partition=1)
    decode = ConnectDecode(
        key={"form": "string"}, value={"form": "json"}, connection=connection
    ).bind([name])
    assert decode.value_schema is not None
    assert decode.value_schema.name == "Order"
    assert {each.name for each in decode.value_schema.fields} == {
        "gone",
        *(each.name for each in ORDER.fields),
    }
    records = frame(spark, (b"k", envelope(old, {"id": 1, "gone": "x"})), (b"k", b"not JSON"))
    ((_, row),) = rows(decode, records)
    assert (row.id, row.gone, row.price) == (1, "x", None)
    assert failures(decode, records)[0][0] == 1


def test_a_pattern_of_topics(connection: Connection, topic: Callable[..., str]) -> None:
    name = topic("by-pattern")
    with Admin(connection) as admin:
        admin.create_topic(name)
    with Producer(connection) as producer:
        producer.produce(name, envelope(INT32, 7), envelope(INT64, 1))
    found = newest_schema(connection, name.replace("by-", "b.-"), "key")
    assert found.schema == INT32
    assert found.ends == {(name, 0): 1}
