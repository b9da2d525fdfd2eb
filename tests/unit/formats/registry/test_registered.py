"""The id in front of a value, the name of its subject, and whose schema is used."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from penstock.errors import ConfigError, FormatError, TransientError
from penstock.formats import Format
from penstock.formats.avro import Avro
from penstock.formats.json_schema import JsonSchema
from penstock.formats.protobuf import Protobuf
from penstock.formats.registry import Schema

New = Callable[[], Any]

TRADE = {
    "type": "record",
    "name": "Trade",
    "namespace": "shop",
    "fields": [{"name": "price", "type": "double"}],
}


@pytest.mark.parametrize(
    ("options", "subject"),
    [
        ({}, "trades-value"),
        ({"part": "key"}, "trades-key"),
        ({"subject": "record"}, "shop.Trade"),
        ({"subject": "topic-record"}, "trades-shop.Trade"),
        (
            {"subject": lambda topic, name, part: f"{part}/{name}/{topic}"},
            "value/shop.Trade/trades",
        ),
    ],
)
def test_the_schema_is_registered_under_the_subject_of_the_strategy(
    new_registry: New, options: Any, subject: str
) -> None:
    registry = new_registry()

    Avro(registry, TRADE, **options).encode({"price": 1.5}, "trades")

    assert [kept.subject for kept in registry.kept] == [subject]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"subject": "topc"}, "subject='topc': did you mean 'topic'?"),
        ({"part": "body"}, "part='body': allowed: key, value"),
    ],
)
def test_an_unknown_option_is_refused_with_what_is_allowed(
    new_registry: New, options: Any, reason: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        Avro(new_registry(), TRADE, **options)

    assert str(caught.value) == reason


def test_a_subject_by_topic_needs_the_topic(new_registry: New) -> None:
    with pytest.raises(ConfigError, match=r"needs the topic: encode\(value, topic\)"):
        Avro(new_registry(), TRADE).encode({"price": 1.5})


def test_a_subject_by_record_needs_a_name(new_registry: New) -> None:
    with pytest.raises(ConfigError, match=r"needs an Avro schema with a name .* not string"):
        Avro(new_registry(), '"string"', subject="record").encode("x", "t")


def test_what_is_not_registered_is_refused_where_it_may_not_be_registered(
    new_registry: New,
) -> None:
    registry = new_registry()

    with pytest.raises(ConfigError, match="'trades-value'"):
        Avro(registry, TRADE, auto_register=False).encode({"price": 1.5}, "trades")

    assert registry.kept == []


def test_what_is_registered_is_found_without_registering(new_registry: New) -> None:
    registry = new_registry()
    Avro(registry, TRADE).encode({"price": 1.5}, "trades")

    data = Avro(registry, TRADE, auto_register=False).encode({"price": 1.5}, "trades")

    assert data[:5] == b"\0\0\0\0\1"
    assert len(registry.kept) == 1


def test_the_latest_schema_writes_and_a_later_one_takes_its_place(new_registry: New) -> None:
    registry = new_registry()
    registry.register("t-value", Schema('"string"'))
    avro = Avro(registry, use_latest=True)
    assert avro.encode("x", "t") == b"\0\0\0\0\1\x02x"
    assert avro.encode("y", "t") == b"\0\0\0\0\1\x02y"
    registry.register("t-value", Schema('"int"'))

    assert avro.encode(1, "t") == b"\0\0\0\0\2\x02"


@pytest.mark.parametrize("kind", [Avro, JsonSchema, Protobuf])
def test_without_a_schema_nothing_is_written(new_registry: New, kind: Any) -> None:
    with pytest.raises(ConfigError, match="can only read"):
        kind(new_registry()).encode({}, "t")


@pytest.mark.parametrize("data", [b"", b"\0", b"\0\0\0\1", b"\1\0\0\0\1x", b'{"a": 1}'])
@pytest.mark.parametrize("kind", [Avro, JsonSchema, Protobuf])
def test_bytes_without_an_id_are_refused(new_registry: New, kind: Any, data: bytes) -> None:
    with pytest.raises(FormatError, match="carry no schema id"):
        kind(new_registry()).decode(data, "t")


@pytest.mark.parametrize("kind", [Avro, JsonSchema, Protobuf])
def test_an_id_that_the_registry_does_not_have_is_an_error_of_the_record(
    new_registry: New, kind: Any
) -> None:
    with pytest.raises(FormatError, match="schema 9, which the registry at http://memory does not"):
        kind(new_registry()).decode(b"\0\0\0\0\x09x", "t")


@pytest.mark.parametrize("kind", [Avro, JsonSchema, Protobuf])
def test_a_registry_that_is_away_is_not_the_fault_of_the_record(
    new_registry: New, kind: Any
) -> None:
    registry = new_registry()
    registry.away = True

    with pytest.raises(TransientError, match="away"):
        kind(registry).decode(b"\0\0\0\0\x09x", "t")


def test_a_schema_of_another_kind_is_refused(new_registry: New) -> None:
    registry = new_registry()
    registry.register("t-value", Schema("{}", "JSON"))

    with pytest.raises(FormatError, match="schema 1 is JSON, and this format is for AVRO"):
        Avro(registry).decode(b"\0\0\0\0\1x", "t")
    with pytest.raises(ConfigError, match="subject 't-value' is JSON, and this format is for AVRO"):
        Avro(registry, use_latest=True).encode("x", "t")


def test_the_registry_is_asked_once_for_a_schema(new_registry: New) -> None:
    registry = new_registry()
    avro = Avro(registry, TRADE)
    data = avro.encode({"price": 1.5}, "t")
    avro.decode(data, "t")
    asked = registry.asked

    registry.away = True

    assert avro.decode(avro.encode({"price": 1.5}, "t"), "t") == {"price": 1.5}
    assert registry.asked == asked


def test_each_is_a_format_with_a_name(new_registry: New) -> None:
    formats: list[Format] = [kind(new_registry()) for kind in (Avro, Protobuf, JsonSchema)]

    assert [found.name for found in formats] == ["avro", "protobuf", "json_schema"]
