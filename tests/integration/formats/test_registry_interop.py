"""The bytes are those of confluent-kafka's own serializers: each side reads what the other wrote."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from penstock.formats.avro import Avro
from penstock.formats.json_schema import JsonSchema
from penstock.formats.protobuf import Protobuf
from penstock.formats.registry import Registry

MakeTopic = Callable[..., str]
MakeTrade = Callable[..., Any]

AVRO = {
    "type": "record",
    "name": "Trade",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "note", "type": ["null", "string"], "default": None},
        {
            "name": "price",
            "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
        },
    ],
}
JSON = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "title": "Trade",
    "type": "object",
    "properties": {"id": {"type": "integer"}},
    "required": ["id"],
}


@pytest.fixture
def client(registry: Registry) -> SchemaRegistryClient:
    return SchemaRegistryClient({"url": registry.url})


def value_of(topic: str) -> SerializationContext:
    return SerializationContext(topic, MessageField.VALUE)


def test_avro_is_the_same_on_both_sides(
    registry: Registry, client: SchemaRegistryClient, topic: MakeTopic
) -> None:
    name = topic()
    value = {"id": 2**40, "note": "é", "price": Decimal("-1.50")}
    ours, theirs = Avro(registry, json.dumps(AVRO)), AvroSerializer(client, json.dumps(AVRO))

    data = ours.encode(value, name)

    assert theirs(value, value_of(name)) == data
    assert AvroDeserializer(client)(data, value_of(name)) == value
    assert Avro(registry).decode(data, name) == value
    assert registry.versions(f"{name}-value") == [1]


def test_protobuf_is_the_same_on_both_sides(
    registry: Registry, client: SchemaRegistryClient, topic: MakeTopic, trade_class: MakeTrade
) -> None:
    name, trade = topic(), trade_class("id", "name", "money")
    value = trade(id=5, name="é", money={"cents": 7})

    theirs = ProtobufSerializer(trade, client)(value, value_of(name))
    data = Protobuf(registry, trade).encode(value, name)

    assert data == theirs
    assert ProtobufDeserializer(trade, {}, client)(data, value_of(name)) == value
    assert Protobuf(registry, trade).decode(theirs, name) == value
    assert registry.versions(f"{name}-value") == [1]


def test_json_schema_is_the_same_on_both_sides(
    registry: Registry, client: SchemaRegistryClient, topic: MakeTopic
) -> None:
    name, text = topic(), json.dumps(JSON)

    theirs = JSONSerializer(text, client)({"id": 5}, value_of(name))
    data = JsonSchema(registry, text).encode({"id": 5}, name)

    assert data[:5] == theirs[:5]
    assert JsonSchema(registry, text).decode(theirs, name) == {"id": 5}
    assert JSONDeserializer(text)(data, value_of(name)) == {"id": 5}
