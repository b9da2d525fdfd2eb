"""Configurations are checked with their transforms and converters; no key is ignored silently."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.own_package import installed

from penstock.connect.connector_class import Catalog
from penstock.connect.connectors import CATALOG
from penstock.connect.installed_classes import installed_classes
from penstock.connect.validation import Validation, validate

SINK = {"name": "out", "connector.class": "FileStreamSink", "file": "/data/out", "topics": "a"}
SOURCE = {"name": "in", "connector.class": "FileStreamSource", "file": "/data/in", "topic": "a"}
ROUTE = {"transforms": "r", "transforms.r.type": "RegexRouter", "transforms.r.regex": "a"}


def check(base: dict[str, str], **more: str) -> Validation:
    return validate(CATALOG, {**base, **more})


def test_keys_of_transforms_predicates_and_converters_are_listed_as_connect_does() -> None:
    given = {
        **SINK,
        **ROUTE,
        "predicates": "p",
        "predicates.p.type": "RecordIsTombstone",
        "value.converter": "JsonConverter",
        "value.converter.schemas.enable": "false",
    }
    found = validate(CATALOG, given).described()
    values = {each["value"]["name"]: each["value"] for each in found["configs"]}
    names = [*values]
    assert names[:2] == ["name", "connector.class"]
    assert (
        names.index("predicates.p.type")
        < names.index("file")
        < names.index("value.converter.schemas.enable")
    )
    assert values["value.converter"]["value"] == "org.apache.kafka.connect.json.JsonConverter"
    assert values["value.converter.schemas.enable"]["value"] == "false"
    assert values["transforms.r.replacement"]["errors"] == [
        'Missing required configuration "transforms.r.replacement" which has no default value.'
    ]
    assert found["groups"][-4:] == ["Transforms: r", "Predicates: p", "Schemas", "Serialization"]
    assert found["error_count"] == 1


@pytest.mark.parametrize(
    ("more", "errors"),
    [
        (
            {"value.converter": "org.example.Nope"},
            ["Invalid value org.example.Nope for configuration value.converter: Class org.example.Nope "
             "could not be found."],
        ),
        (
            {"transforms": "r", "transforms.r.type": "Nope"},
            ["Invalid value Nope for configuration transforms.r.type: Class Nope could not be found.",
             "Invalid value null for configuration transforms.r.type: Not a Transformation"],
        ),
        (
            {"transforms": "f", "transforms.f.type": "Filter", "transforms.f.predicate": "p"},
            ["transforms.f: Unknown configuration 'predicates.p.type'; the list `predicates` has: none"],
        ),
        (
            {"transforms": "h", "transforms.h.type": "InsertHeader", "transforms.h.header": "x",
             "transforms.h.value.literal": "1", "header.converter": "JsonConverter"},
            ["Invalid value org.apache.kafka.connect.json.JsonConverter for configuration "
             "header.converter: the transform h makes headers, which are text here; use "
             "SimpleHeaderConverter or StringConverter"],
        ),
        (
            {"value.converter": "AvroConverter"},
            ['Missing required configuration "value.converter.schema.registry.url" which has no default '
             "value."],
        ),
        (
            {"value.converter": "AvroConverter", "value.converter.schema.registry.url": "http://r",
             "value.converter.value.subject.name.strategy":
             "io.confluent.kafka.serializers.subject.RecordNameStrategy", "topics": "a,b"},
            ["Invalid value for configuration value.converter.value.subject.name.strategy: the schema of "
             "the column is that of the subject TOPIC-value; give TopicNameStrategy, or leave it out",
             "Invalid value a,b for configuration topics: with the registry of value.converter a "
             "connector reads one topic, whose subject has the schema; make one connector for each "
             "topic"],
        ),
        (
            {"consumer.override.auto.offset.reset": "by_duration:PT1H"},
            ["Invalid value by_duration:PT1H for configuration consumer.override.auto.offset.reset: "
             "String must be one of: earliest, latest, none"],
        ),
        (
            {"file": ""},
            ["Invalid value  for configuration file: a connector runs in a worker, whose standard input "
             "and output no one reads; give the path of a file"],
        ),
        ({"transforms": "a,a", "transforms.a.type": "Filter"},
         ["Invalid value [a, a] for configuration transforms: Duplicate alias provided."]),
    ],
)  # fmt: skip
def test_what_is_wrong_with_parts_is_an_error(more: dict[str, str], errors: list[str]) -> None:
    assert check(SINK, **more).errors == errors


def test_keys_without_effect_are_warnings() -> None:
    more: dict[str, str] = {
        "flie": "x",
        "value.converter.schemas.enable": "false",
        "transforms.r.type": "Filter",
        "producer.override.linger.ms": "5",
        "consumer.override.auto.offset.reset": "latest",
    }
    found = check(SINK, **more)
    assert found.errors == []
    assert {key for key, _ in found.warnings} == {
        "flie",
        "value.converter.schemas.enable",
        "transforms.r.type",
        "producer.override.linger.ms",
    }
    texts = dict(found.warnings)
    expected = "flie is not known to this connector, and has no effect; did you mean 'file'?"
    assert texts["flie"] == expected
    assert check(SOURCE, **{"value.converter": "JsonConverter"}).warnings == ()


def test_keys_of_all_connectors_whose_value_changes_nothing_are_warnings() -> None:
    defaults = {"tasks.max.enforce": "true", "config.action.reload": "restart"}
    assert check(SINK, **defaults, **{"connector.plugin.version": "4.3.1"}).warnings == ()
    found = check(
        SINK,
        **ROUTE,
        **{
            "transforms.r.replacement": "b",
            "transforms.r.plugin.version": "[4.0,5.0)",
            "connector.plugin.version": "3.9",
            "value.converter.plugin.version": "3.9",
            "tasks.max.enforce": "false",
            "config.action.reload": "none",
            "errors.deadletterqueue.topic.name": "bad",
        },
    )
    assert found.errors == []
    version = "has no effect: there is one version of each class"
    assert dict(found.warnings) == {
        key: f"{key} {text}"
        for key, text in {
            "transforms.r.plugin.version": version,
            "connector.plugin.version": version,
            "value.converter.plugin.version": version,
            "tasks.max.enforce": "has no effect: never more tasks are shown than tasks.max",
            "config.action.reload": "has no effect: references to secrets are read when a connector "
            "starts",
            "errors.deadletterqueue.topic.name": "has no effect: errors.tolerance is none, and the "
            "first bad record ends the connector; give errors.tolerance=all",
        }.items()
    }
    source = check(SOURCE, **{"topic.creation.groups": "x", "offsets.storage.topic": "mine"})
    assert {key for key, _ in source.warnings} == {"topic.creation.groups", "offsets.storage.topic"}


def test_exactly_once_is_refused_where_a_source_cannot_promise_it() -> None:
    required = {"exactly.once.support": "required"}
    rabbitmq = {"name": "in", "connector.class": "PenstockRabbitmqSource", "topic": "a"}
    address = {"url": "amqp://localhost", "queues": "orders"}
    assert check(SOURCE, **required).errors == []
    assert check(rabbitmq, **address).errors == []
    (error,) = check(rabbitmq, **address, **required).errors
    assert error.startswith("Invalid value required for configuration exactly.once.support: ")
    assert error.endswith("; give requested, or leave it out")


def test_patterns_of_topics_take_no_exponential_time() -> None:
    slow = {"transforms.r.regex": "(a+)+b", "transforms.r.replacement": "b"}
    table = {"connector.class": "JdbcSink", "connection.url": "jdbc:postgresql://db/shop"}
    assert check({**SINK, **table, **ROUTE}, **slow, topics="a" * 200).errors == []
    mirror = {"source.cluster.alias": "b", "source.cluster.bootstrap.servers": "b:9092"}
    given = {"name": "m", "connector.class": "MirrorSource", "topics": "a" * 200, **mirror}
    assert check(given, **{"topics.exclude": "(a+)+b"}).errors == []


def test_a_topic_that_only_java_can_rename_needs_a_name_of_the_table() -> None:
    table = {"connector.class": "JdbcSink", "connection.url": "jdbc:postgresql://db/shop"}
    route = {"transforms.r.regex": "(?!b)(.*)", "transforms.r.replacement": "$1"}
    (error,) = check({**SINK, **table, **ROUTE}, **route).errors
    assert "what the transform 'r' makes of the topic 'a' is not known before it runs" in error
    assert check({**SINK, **table, **ROUTE}, **route, **{"table.name.format": "t"}).errors == []


def test_connectors_of_other_packages_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    with installed(tmp_path, monkeypatch):
        catalog = Catalog(installed_classes())
        given = {"connector.class": "Lines", "name": "x", "topics": "a", "path": "b.txt"}
        assert validate(catalog, given).errors == [
            "Invalid value b.txt for configuration path: it ends with .json"
        ]
        (tmp_path / "acme_components-1.0.dist-info" / "entry_points.txt").write_text(
            "[penstock.connectors]\nwrong = json:dumps\nmissing = acme_nothing:X\n"
        )
        assert installed_classes() == ()
    reasons = [each.reason for each in caplog.records if each.message == "connector_not_loaded"]
    assert reasons[0] == "No module named 'acme_nothing'"
    assert reasons[1].startswith("it is not a class of connectors")
