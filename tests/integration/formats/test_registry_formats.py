"""Avro, Protobuf and JSON Schema through a real topic, with a real schema registry."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timezone
from decimal import Decimal
from typing import Any

import pytest

from penstock.config import Connection
from penstock.embedded import SchemaRegistry
from penstock.errors import ConfigError, FormatError, TransientError
from penstock.formats.avro import Avro
from penstock.formats.json_schema import JsonSchema
from penstock.formats.protobuf import Protobuf
from penstock.formats.registry import Reference, Registry, Schema
from penstock.kafka import Consumer, Producer
from penstock.testing import read_all

MakeTopic = Callable[..., str]
MakeTrade = Callable[..., Any]


def avro(*fields: Any, name: str = "Trade") -> dict[str, Any]:
    made = [
        {"name": f[0], "type": f[1], **({"default": f[2]} if len(f) > 2 else {})} for f in fields
    ]
    return {"type": "record", "name": name, "namespace": "shop", "fields": made}


def json_schema(*required: str, **properties: str) -> dict[str, Any]:
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Trade",
        "type": "object",
        "properties": {name: {"type": kind} for name, kind in properties.items()},
        "required": list(required),
    }


def through(connection: Connection, topic: str, key: bytes | None, value: bytes) -> Any:
    with Producer(connection) as producer:
        producer.produce(topic, key=key, value=value)
    (record,) = read_all(connection, topic)
    return record


def test_avro_goes_through_a_topic_as_key_and_value(
    connection: Connection, registry: Registry, topic: MakeTopic
) -> None:
    name = topic()
    keys = Avro(registry, '"string"', part="key")
    price = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
    at = {"type": "long", "logicalType": "timestamp-micros"}
    values = Avro(registry, avro(("price", price), ("at", at), ("note", ["null", "string"], None)))
    value = {"price": Decimal("1.50"), "at": datetime(2026, 1, 2, tzinfo=timezone.utc), "note": "é"}

    record = through(connection, name, keys.encode("A", name), values.encode(value, name))

    assert keys.decode(record.key, name) == "A"
    assert Avro(registry).decode(record.value, name) == value
    assert {f"{name}-key", f"{name}-value"} <= set(registry.subjects())
    assert registry.versions(f"{name}-value") == [1]


def test_protobuf_goes_through_a_topic_and_is_read_without_its_class(
    connection: Connection, registry: Registry, topic: MakeTopic, trade_class: MakeTrade
) -> None:
    name, trade = topic(), trade_class("id", "name", "money")
    value = trade(id=5, name="é", money={"cents": 7})
    protobuf = Protobuf(registry, trade)

    record = through(connection, name, None, protobuf.encode(value, name))

    assert protobuf.decode(record.value, name) == value
    found = Protobuf(registry).decode(record.value, name)
    assert (found.id, found.name, found.money.cents) == (5, "é", 7)
    assert registry.latest(f"{name}-value").schema.references == (
        Reference("shop/money.proto", "shop/money.proto", 1),
    )


def test_json_schema_goes_through_a_topic(
    connection: Connection, registry: Registry, topic: MakeTopic
) -> None:
    name = topic()
    form = JsonSchema(registry, json_schema("price", price="number"))

    record = through(connection, name, None, form.encode({"price": 1.5}, name))

    assert JsonSchema(registry).decode(record.value, name) == {"price": 1.5}
    with pytest.raises(FormatError, match="'price' is a required property"):
        form.encode({}, name)


def test_without_registering_the_error_names_the_subject_and_what_to_do(
    registry: Registry, topic: MakeTopic, trade_class: MakeTrade
) -> None:
    trade = trade_class("id", "price")
    for form, value in (
        (Avro(registry, avro(("new", "int")), auto_register=False), {"new": 1}),
        (JsonSchema(registry, json_schema(new="number"), auto_register=False), {}),
        (Protobuf(registry, trade, auto_register=False), trade(id=1)),
    ):
        name = topic(form.name)
        with pytest.raises(ConfigError) as caught:
            form.encode(value, name)
        assert f"not registered under subject '{name}-value'" in str(caught.value)
        assert "Registry.register" in str(caught.value)
        assert "auto_register=True" in str(caught.value)


def test_what_was_registered_by_hand_is_used_without_registering(
    registry: Registry, topic: MakeTopic
) -> None:
    name, schema = topic(), Schema('{"type": "string"}')
    made = registry.register(f"{name}-value", schema)

    data = Avro(registry, schema, auto_register=False).encode("x", name)

    assert data == b"\0" + made.to_bytes(4, "big") + b"\x02x"
    assert Avro(registry, use_latest=True).encode("x", name) == data


def test_a_schema_that_is_not_compatible_is_refused_with_the_registrys_reason(
    registry: Registry, topic: MakeTopic
) -> None:
    name = topic()
    subject, wrong = f"{name}-value", avro(("price", "double"), ("size", "int"))
    Avro(registry, avro(("price", "double"))).encode({"price": 1.5}, name)
    registry.set_compatibility("BACKWARD", subject)

    with pytest.raises(ConfigError, match=r"HTTP 409.*size at /fields/1.*stays compatible"):
        Avro(registry, wrong).encode({"price": 1.5, "size": 1}, name)

    assert registry.compatibility(subject) == "BACKWARD"
    (problem,) = registry.problems(subject, Schema(json.dumps(wrong)))
    assert "size at /fields/1" in problem
    assert registry.versions(subject) == [1]
    registry.set_compatibility("NONE", subject)
    Avro(registry, wrong).encode({"price": 1.5, "size": 1}, name)
    assert registry.versions(subject) == [1, 2]


def test_a_text_that_is_no_schema_is_refused_by_the_registry(
    registry: Registry, topic: MakeTopic
) -> None:
    with pytest.raises(ConfigError, match=r"HTTP 422.*correct them"):
        registry.register(f"{topic()}-value", Schema("{nonsense"))


def test_avro_evolves_in_both_directions(registry: Registry, topic: MakeTopic) -> None:
    name = topic()
    old = avro(("id", "int"), ("gone", "string", "-"))
    new = avro(("id", "long"), ("added", ["null", "string"], None))
    older = Avro(registry, old)
    from_old = older.encode({"id": 1, "gone": "x"}, name)
    registry.set_compatibility("BACKWARD", f"{name}-value")
    newer = Avro(registry, new)
    from_new = newer.encode({"id": 2**40, "added": "y"}, name)

    assert newer.decode(from_old, name) == {"id": 1, "added": None}
    assert Avro(registry).decode(from_new, name) == {"id": 2**40, "added": "y"}
    only_added = avro(("added", ["null", "string"], None), ("gone", "string", "-"))
    assert Avro(registry, only_added).decode(from_new, name) == {"added": "y", "gone": "-"}
    with pytest.raises(FormatError, match="long was written, and int is wanted"):
        older.decode(from_new, name)


def test_protobuf_evolves_in_both_directions(
    registry: Registry, topic: MakeTopic, trade_class: MakeTrade
) -> None:
    name, old, new = topic(), trade_class("id"), trade_class("id", "name")

    from_old = Protobuf(registry, old).encode(old(id=1), name)
    from_new = Protobuf(registry, new).encode(new(id=2, name="x"), name)

    assert Protobuf(registry, new).decode(from_old, name) == new(id=1)
    assert Protobuf(registry, old).decode(from_new, name).id == 2


def test_json_schema_evolves_in_both_directions(registry: Registry, topic: MakeTopic) -> None:
    name = topic()
    old = JsonSchema(registry, json_schema("id", id="integer"))
    new = JsonSchema(registry, json_schema("id", id="integer", note="string"))

    from_old, from_new = old.encode({"id": 1}, name), new.encode({"id": 2, "note": "x"}, name)

    assert new.decode(from_old, name) == {"id": 1}
    assert old.decode(from_new, name) == {"id": 2, "note": "x"}
    strict = JsonSchema(registry, json_schema("note", note="string"))
    with pytest.raises(FormatError, match="'note' is a required property"):
        strict.decode(from_old, name)


def test_a_referenced_schema_is_found_in_the_registry(registry: Registry, topic: MakeTopic) -> None:
    name = topic()
    money = f"{name}-money"
    registry.register(money, Schema(json.dumps(avro(("cents", "long"), name="Money"))))
    order = Schema(
        json.dumps(avro(("total", "shop.Money"), name="Order")),
        references=(Reference("shop.Money", money, 1),),
    )

    data = Avro(registry, order).encode({"total": {"cents": 5}}, name)

    assert Avro(Registry(registry.url)).decode(data, name) == {"total": {"cents": 5}}


def test_an_id_that_the_registry_does_not_have_is_an_error_of_the_record(
    registry: Registry,
) -> None:
    for schema_id in (b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff"):
        with pytest.raises(FormatError, match="does not have"):
            Avro(registry).decode(b"\0" + schema_id + b"x", "t")


def test_what_is_known_needs_no_registry_and_what_is_not_waits_for_it(
    topic: MakeTopic, trade_class: MakeTrade
) -> None:
    name, trade = topic(), trade_class("id", "money")
    with SchemaRegistry() as started:
        registry = Registry(started.url, timeout=2)
        cases = [
            (Avro(registry, avro(("id", "int"))), {"id": 1}),
            (JsonSchema(registry, json_schema(id="integer")), {"id": 1}),
            (Protobuf(registry, trade), trade(id=1)),
        ]
        known = [(form, value, form.encode(value, name + form.name)) for form, value in cases]
        assert all(form.decode(data, "t") == value for form, value, data in known)

    for form, value, data in known:
        assert form.encode(value, name + form.name) == data
        assert form.decode(data, "t") == value
        with pytest.raises(TransientError, match="is away or busy"):
            form.encode(value, "another-topic")
        with pytest.raises(TransientError, match="is away or busy"):
            form.decode(b"\0\0\0\x03\x09x", "t")


def test_producer_and_consumer_take_them_as_any_format(
    connection: Connection, registry: Registry, topic: MakeTopic
) -> None:
    name = topic()
    keys, values = Avro(registry, '"long"', part="key"), Avro(registry, avro(("id", "int")))

    with Producer(connection, format=values, key_format=keys) as producer:
        producer.produce(name, 7, {"id": 1})

    with Consumer(connection, format=values, key_format=keys) as consumer:
        consumer.assign({(name, 0): 0})
        record = consumer.poll(20)
    assert record
    assert (record.key, record.value) == (7, {"id": 1})
