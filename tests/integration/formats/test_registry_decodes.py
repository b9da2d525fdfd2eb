"""Pipelines over records with registered schemas: versions mixed, columns that follow, keys."""

from __future__ import annotations

import json
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import fastavro
import pyarrow.dataset as ds
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

from penstock import Admin, Connection, Producer, memory_table, start
from penstock.embedded import SchemaRegistry
from penstock.errors import ConfigError, PipelineFailedError
from penstock.formats.avro import Avro
from penstock.formats.json_schema import JsonSchema
from penstock.formats.protobuf import Protobuf
from penstock.formats.registry import Registry
from penstock.testing import eventually, read_all

PRICE: dict[str, Any] = {"name": "price", "type": "double"}


def trade(*fields: dict[str, Any]) -> dict[str, Any]:
    symbol = {"name": "symbol", "type": "string"}
    return {"type": "record", "name": "Trade", "fields": [symbol, *fields]}


@pytest.fixture
def send(connection: Connection, registry: Registry, topic: Any) -> Callable[..., None]:
    """Sends rows to the topic, in Avro of a schema."""

    def put(schema: dict[str, Any], *rows: dict[str, Any], key: bytes | None = None) -> None:
        encode = Avro(registry, schema).encode
        with Producer(connection) as producer:
            for row in rows:
                producer.produce(topic(), key, encode(row, topic()))

    return put


@pytest.fixture
def avro(schema_registry: SchemaRegistry) -> Callable[..., dict[str, Any]]:
    return lambda **options: {"avro": {"registry": schema_registry.url, **options}}


def run_once(definition: Any) -> Any:
    with start(definition, once=True) as running:
        assert running.wait(240), running.progress()
        return running.progress()


def rows_of(name: str) -> list[dict[str, Any]]:
    return memory_table(name).to_arrow().to_pylist()


def test_twenty_versions_in_one_topic_are_rows_of_the_latest(
    send: Any,
    avro: Any,
    pipeline: Any,
    topic: Any,
    unique: str,
    connection: Connection,
    registry: Any,
) -> None:
    fields = [{"name": f"f{n}", "type": ["null", "long"], "default": None} for n in range(20)]
    for n in range(40):
        known = fields[: n % 20 + 1]
        send(trade(*known), {"symbol": f"s{n}", **{each["name"]: n for each in known}})

    progress = run_once(pipeline(source={"kafka": topic()}, decode=avro(), sink={"memory": unique}))

    assert (progress.rows, progress.failed, progress.restarts) == (40, 0, 0)
    latest = fastavro.parse_schema(trade(*fields))

    def read_by_fastavro(value: bytes) -> Any:
        written = json.loads(registry.schema(int.from_bytes(value[1:5], "big")).text)
        return fastavro.schemaless_reader(BytesIO(value[5:]), written, latest)

    expected = [read_by_fastavro(record.value) for record in read_all(connection, topic())]
    assert sorted(rows_of(unique), key=str) == sorted(expected, key=str)


def test_twenty_versions_of_a_protobuf_message_are_rows_of_the_latest(
    pipeline: Any,
    topic: Any,
    unique: str,
    connection: Connection,
    registry: Any,
    schema_registry: SchemaRegistry,
) -> None:
    classes = [_numbers_class(count) for count in range(1, 21)]
    formats = [Protobuf(registry, each) for each in classes]
    bodies = []
    with Producer(connection) as producer:
        for n in range(40):
            message = classes[n % 20](**{f"f{k}": n + k for k in range(n % 20 + 1)})
            bodies.append(message.SerializeToString())
            producer.produce(topic(), None, formats[n % 20].encode(message, topic()))

    decode = {"protobuf": {"registry": schema_registry.url}}
    progress = run_once(pipeline(source={"kafka": topic()}, decode=decode, sink={"memory": unique}))

    assert (progress.rows, progress.failed, progress.restarts) == (40, 0, 0)
    read = [classes[-1].FromString(body) for body in bodies]
    expected = [{f"f{k}": getattr(each, f"f{k}") for k in range(20)} for each in read]
    assert sorted(rows_of(unique), key=str) == sorted(expected, key=str)


def _numbers_class(count: int) -> Any:
    """Return the message shop.Numbers with that many fields."""
    file = FileDescriptorProto(name="shop/numbers.proto", package="shop", syntax="proto3")
    message = file.message_type.add(name="Numbers")
    for number in range(count):
        message.field.add(name=f"f{number}", number=number + 1, type=3, label=1)
    pool = DescriptorPool()
    pool.Add(file)
    return GetMessageClass(pool.FindMessageTypeByName("shop.Numbers"))


def test_a_new_version_becomes_columns_while_the_pipeline_runs(
    send: Any, avro: Any, pipeline: Any, topic: Any, tmp_path: Path
) -> None:
    send(trade(PRICE), {"symbol": "A", "price": 1.0})
    table = tmp_path / "t"
    made = pipeline(
        source={"kafka": topic()},
        decode=avro(),
        sink={"delta": str(table)},
        delivery="exactly-once",
    )
    size = {"name": "size", "type": ["null", "long"], "default": None}
    with start(made) as running:
        eventually(lambda: running.progress().rows == 1, 120)
        send(trade(PRICE, size), {"symbol": "B", "price": 2.0, "size": 7})
        send(trade(PRICE), {"symbol": "C", "price": 3.0})
        eventually(lambda: running.progress().rows == 3, 120)
        assert running.progress().restarts == 0

    from penstock.engine import spark_session

    found = spark_session().read.format("delta").load(str(table)).orderBy("symbol").collect()
    assert [tuple(row) for row in found] == [("A", 1.0, None), ("B", 2.0, 7), ("C", 3.0, None)]


def test_a_new_version_stops_a_pipeline_that_may_not_follow(
    send: Any, avro: Any, pipeline: Any, topic: Any, unique: str
) -> None:
    send(trade(PRICE), {"symbol": "A", "price": 1.0})
    made = pipeline(source={"kafka": topic()}, decode=avro(evolve="fail"), sink={"memory": unique})
    size = {"name": "size", "type": ["null", "long"], "default": None}
    with start(made) as running:
        eventually(lambda: running.progress().rows == 1, 120)
        send(trade(PRICE, size), {"symbol": "B", "price": 2.0, "size": 7})
        with pytest.raises((PipelineFailedError, ConfigError), match="size bigint is new"):
            running.wait(120)
    assert [row["symbol"] for row in rows_of(unique)] == ["A"]


def test_records_whose_schema_does_not_fit_are_dead_letters(
    send: Any, avro: Any, pipeline: Any, registry: Registry, topic: Any, unique: str,
    connection: Connection,
) -> None:  # fmt: skip
    send(trade(PRICE), {"symbol": "A", "price": 1.0})
    registry.set_compatibility("NONE", f"{topic()}-value")
    other = {"type": "record", "name": "Trade", "fields": [{"name": "symbol", "type": "long"}]}
    send(other, {"symbol": 5})
    with Producer(connection) as producer:
        producer.produce(topic(), None, b"no schema id")
        producer.produce(topic(), None, b"\0\x7f\xff\xff\xff unknown")

    progress = run_once(
        pipeline(source={"kafka": topic()}, decode=avro(version=1), sink={"memory": unique})
    )

    assert (progress.rows, progress.failed) == (1, 3)
    letters = [dict(each.headers) for each in read_all(connection, f"{unique}.dead-letters")]
    kinds = {each["penstock.offset"]: each["penstock.error_type"] for each in letters}
    assert kinds == {b"1": b"IncompatibleSchema", b"2": b"NoSchemaId", b"3": b"UnknownSchema"}


def test_keys_become_columns(
    avro: Any, pipeline: Any, registry: Registry, topic: Any, unique: str, connection: Connection
) -> None:
    value = Avro(registry, trade(PRICE))
    name = {"type": "record", "name": "Id", "fields": [{"name": "id", "type": "int"}]}
    key = Avro(registry, name, part="key")
    with Producer(connection) as producer:
        body = value.encode({"symbol": "A", "price": 1.0}, topic())
        producer.produce(topic(), key.encode({"id": 9}, topic()), body)
        producer.produce(topic(), None, body)
        producer.produce(topic(), b"bad key", body)

    progress = run_once(
        pipeline(
            source={"kafka": topic()},
            decode=avro(key=avro(), metadata=["offset"]),
            sink={"memory": unique},
        )
    )

    assert (progress.rows, progress.failed) == (2, 1)
    found = sorted((row["kafka_offset"], row["key_id"], row["symbol"]) for row in rows_of(unique))
    assert found == [(0, 9, "A"), (1, None, "A")]


def test_bodies_without_a_registry_have_the_schema_of_a_file(
    pipeline: Any,
    registry: Registry,
    topic: Any,
    unique: str,
    connection: Connection,
    tmp_path: Path,
) -> None:
    file = tmp_path / "trade.avsc"
    file.write_text(json.dumps(trade(PRICE)))
    body = Avro(registry, trade(PRICE)).encode({"symbol": "A", "price": 1.0}, topic())[5:]
    with Producer(connection) as producer:
        producer.produce(topic(), None, body)
        producer.produce(topic(), None, body[:-1])

    progress = run_once(
        pipeline(
            source={"kafka": topic()},
            decode={"avro": {"schema": str(file)}},
            sink={"files": str(tmp_path / "t")},
        )
    )

    assert (progress.rows, progress.failed) == (1, 1)
    assert ds.dataset(tmp_path / "t", exclude_invalid_files=True).to_table().to_pylist() == [
        {"symbol": "A", "price": 1.0}
    ]


def test_a_subject_that_does_not_exist_is_reported_before_spark_starts(
    avro: Any, pipeline: Any, topic: Any, unique: str, connection: Connection
) -> None:
    with Admin(connection) as admin:
        admin.create_topic(topic())
    made = pipeline(source={"kafka": topic()}, decode=avro(), sink={"memory": unique})
    with pytest.raises(ConfigError, match=f"{topic()}-value"):
        start(made, once=True)


def test_protobuf_and_json_schema_follow_their_subjects_too(
    registry: Registry, schema_registry: SchemaRegistry, pipeline: Any, topic: Any, unique: str,
    connection: Connection, trade_class: Any,
) -> None:  # fmt: skip
    small, large = trade_class("id", "price"), trade_class("id", "price", "name")
    number = {"type": "number"}
    plain = {"type": "object", "properties": {"id": {"type": "integer"}, "price": number}}
    named = {**plain, "properties": {**plain["properties"], "name": {"type": "string"}}}  # type: ignore[dict-item]
    written = {
        "protobuf": [
            (Protobuf(registry, small), small(id=1, price=1.5)),
            (Protobuf(registry, large), large(id=2, price=2.5, name="B")),
        ],
        "json_schema": [
            (JsonSchema(registry, plain), {"id": 1, "price": 1.5}),
            (JsonSchema(registry, named), {"id": 2, "price": 2.5, "name": "B"}),
        ],
    }
    for decode, versions in written.items():
        source = topic(decode)
        made = pipeline(
            name=f"{unique}-{decode}",
            source={"kafka": source},
            decode={decode: {"registry": schema_registry.url}},
            sink={"memory": source},
        )
        for format_, value in versions:
            with Producer(connection) as producer:
                producer.produce(source, None, format_.encode(value, source))
                producer.produce(source, None, format_.encode(value, source)[:-1])
            run_once(made)
        rows = sorted(tuple(row.values()) for row in rows_of(source))
        assert rows[0][:2] == (1, 1.5)
        assert rows[1] == (2, 2.5, "B")
        assert len(read_all(connection, f"{unique}-{decode}.dead-letters")) == 2


def test_a_descriptor_of_protoc_is_a_schema_without_a_registry(
    pipeline: Any, topic: Any, unique: str, connection: Connection, trade_class: Any, tmp_path: Path
) -> None:
    trade_type = trade_class("id", "money")
    files = FileDescriptorSet()
    for file in (*trade_type.DESCRIPTOR.file.dependencies, trade_type.DESCRIPTOR.file):
        file.CopyToProto(files.file.add())
    descriptor = tmp_path / "trade.desc"
    descriptor.write_bytes(files.SerializeToString())
    value = trade_type(id=7)
    value.money.cents = 99
    with Producer(connection) as producer:
        producer.produce(topic(), None, value.SerializeToString())

    decode = {"protobuf": {"descriptor": str(descriptor), "message": "shop.Trade"}}
    run_once(pipeline(source={"kafka": topic()}, decode=decode, sink={"memory": unique}))

    assert rows_of(unique) == [{"id": 7, "money": {"cents": 99}}]
