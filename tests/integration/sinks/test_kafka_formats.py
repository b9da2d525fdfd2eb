"""The sink `kafka` in other formats than JSON: Confluent's deserializers read them, each row once."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext

from penstock import Connection
from penstock.embedded import SchemaRegistry
from penstock.engine.reasons import refusal
from penstock.errors import ConfigError, RefusedError, TransientError
from penstock.formats.protobuf import Protobuf
from penstock.formats.registry import Registry, Schema
from penstock.pipeline import Batch, Delivery, Opening, Writer
from penstock.sinks.kafka import KafkaSink
from penstock.testing import fill, read_all

BOTH = pytest.mark.parametrize("delivery", [Delivery.AT_LEAST_ONCE, Delivery.EXACTLY_ONCE])
ROWS = [(1, "tea", [1, 2], {"a": 1.5}), (2, None, None, None)]
COLUMNS = "id bigint, name string, sizes array<int>, prices map<string,double>"
EXPECTED = [
    {"id": 1, "name": "tea", "sizes": [1, 2], "prices": {"a": 1.5}},
    {"id": 2, "name": None, "sizes": None, "prices": None},
]


@pytest.fixture(scope="module")
def spark() -> Any:
    from penstock.engine import spark_session

    return spark_session()


@pytest.fixture
def client(schema_registry: SchemaRegistry) -> SchemaRegistryClient:
    return SchemaRegistryClient({"url": schema_registry.url})


def opened(sink: KafkaSink, batch: Batch) -> Writer:
    spark = batch.rows.sparkSession
    return sink.open(Opening(spark, batch.pipeline, batch.connection, batch.delivery))


def write(sink: KafkaSink, batch: Batch) -> None:
    with opened(sink, batch) as writer:
        writer.prepare(batch.rows.schema)
        writer.write(batch)


def value_of(topic: str) -> SerializationContext:
    return SerializationContext(topic, MessageField.VALUE)


@BOTH
@pytest.mark.parametrize("name", ["avro", "json_schema", "protobuf"])
def test_confluents_deserializers_read_the_rows(
    spark: Any, connection: Connection, unique: str, client: SchemaRegistryClient,
    schema_registry: SchemaRegistry, name: str, delivery: Delivery,
) -> None:  # fmt: skip
    fill(connection, unique, [])
    batch = Batch(spark.createDataFrame(ROWS, COLUMNS), unique, 1, 0, connection, delivery=delivery)

    write(KafkaSink(topic=unique, value_format={name: {"registry": schema_registry.url}}), batch)

    values = [record.value for record in read_all(connection, unique)]
    if name == "protobuf":
        read = [Protobuf(Registry(schema_registry.url)).decode(value) for value in values]
        assert sorted((each.id, list(each.sizes), dict(each.prices)) for each in read) == [
            (1, [1, 2], {"a": 1.5}),
            (2, [], {}),
        ]
        return
    if name == "avro":
        deserializer = AvroDeserializer(client)
    else:
        schema = client.get_latest_version(f"{unique}-value").schema.schema_str
        deserializer = JSONDeserializer(schema, schema_registry_client=client)
    rows = [deserializer(value, value_of(unique)) for value in values]
    assert sorted(rows, key=lambda row: row["id"]) == EXPECTED


@BOTH
def test_keys_and_values_of_other_formats(
    spark: Any, connection: Connection, unique: str, delivery: Delivery
) -> None:
    fill(connection, unique, [])
    rows = spark.createDataFrame([(1, "a,b", 2), (None, None, 3)], "k bigint, s string, n int")
    batch = Batch(rows, unique, 1, 0, connection, delivery=delivery)

    write(KafkaSink(topic=unique, key="k", key_format="long", value_format="csv"), batch)

    written = sorted((r.value, r.key) for r in read_all(connection, unique))
    assert written == [(b'"a,b",2', (1).to_bytes(8, "big")), (b",3", None)]


@BOTH
def test_a_row_that_does_not_fit_is_refused(
    spark: Any, connection: Connection, unique: str, delivery: Delivery
) -> None:
    fill(connection, unique, [])
    rows = spark.createDataFrame([(2**40,)], "n bigint")
    batch = Batch(rows, unique, 1, 0, connection, delivery=delivery)

    with pytest.raises(Exception) as raised:
        write(KafkaSink(topic=unique, value_format="int"), batch)

    message = f"column 'n': {2**40} is beyond the range of int"
    assert refusal(raised.value) == ("write", RefusedError.__name__, message)


def test_a_schema_that_is_not_compatible_is_refused_before_the_first_record(
    spark: Any, connection: Connection, unique: str, schema_registry: SchemaRegistry
) -> None:
    registry = Registry(schema_registry.url)
    old = {"type": "record", "name": "R", "fields": [{"name": "n", "type": "string"}]}
    registry.register(f"{unique}-value", Schema(json.dumps(old)))
    registry.set_compatibility("BACKWARD", f"{unique}-value")
    new = {"type": "record", "name": "R", "fields": [{"name": "n", "type": "long"}]}
    options = {"registry": schema_registry.url, "schema": new}
    batch = Batch(spark.createDataFrame([(1,)], "n bigint"), unique, 1, 0, connection)

    sink = KafkaSink(topic=unique, value_format={"avro": options})
    with opened(sink, batch) as writer, pytest.raises(ConfigError, match="HTTP 409"):
        writer.prepare(batch.rows.schema)

    assert read_all(connection, unique) == []


def test_a_registry_that_is_away_is_waited_for(
    spark: Any, connection: Connection, unique: str
) -> None:
    options = {"registry": {"url": "http://127.0.0.1:9", "timeout": 0.5}}
    batch = Batch(spark.createDataFrame([(1,)], "n bigint"), unique, 1, 0, connection)

    sink = KafkaSink(topic=unique, value_format={"avro": options})
    with opened(sink, batch) as writer, pytest.raises(TransientError):
        writer.prepare(batch.rows.schema)


def test_a_batch_that_is_repeated_after_a_restart_is_written_once(
    spark: Any, connection: Connection, unique: str, schema_registry: SchemaRegistry
) -> None:
    fill(connection, unique, [])
    rows = spark.createDataFrame(ROWS, COLUMNS)
    batch = Batch(rows, unique, 1, 0, connection, delivery=Delivery.EXACTLY_ONCE)
    sink = KafkaSink(topic=unique, value_format={"avro": {"registry": schema_registry.url}})

    write(sink, batch)
    write(sink, replace(batch, may_repeat=True))

    assert len(read_all(connection, unique)) == len(ROWS)
    assert Registry(schema_registry.url).versions(f"{unique}-value") == [1]
