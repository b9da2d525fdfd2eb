"""Typical configurations of connectors: they are valid, and become the pipelines that they should."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.services.connect_classes import EXAMPLES, Example

from penstock.config.secrets import is_secret_key
from penstock.connect.common_keys import COMMON
from penstock.connect.config_definition import Type
from penstock.connect.connector_class import UnknownClassError
from penstock.connect.connector_rows import Imported
from penstock.connect.connectors import CATALOG
from penstock.connect.translation import definition_of
from penstock.connect.validation import validate, with_name
from penstock.formats.connect.converter_options import ConverterOptions
from penstock.pipeline import Pipeline
from penstock.pipeline.registry import names

BYTES = {"value.converter": "ByteArrayConverter"}
BY_PART = pytest.mark.parametrize("example", EXAMPLES.values(), ids=[*EXAMPLES])


def made(config: dict[str, str]) -> dict[str, Any]:
    kind = CATALOG.find(config["connector.class"])
    return kind().pipeline(CATALOG.config(with_name(config, "c")))


def camel(name: str) -> str:
    return "".join(word.capitalize() for word in name.split("_"))


@BY_PART
def test_a_typical_configuration_is_valid_and_becomes_its_component(example: Example) -> None:
    given = with_name(example.config, "c")

    assert validate(CATALOG, given).errors == []
    found = made(example.config)

    assert found.get("source") == example.source
    assert found.get("sink") == example.sink
    assert found.get("delivery", "at-least-once") == example.delivery
    if example.steps is not None:
        assert found["steps"] == example.steps


@BY_PART
def test_the_definition_is_one_that_the_parser_takes(
    example: Example, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_KAFKA_BOOTSTRAP_SERVERS", "localhost:9092")
    monkeypatch.setenv("DB_PASSWORD", "hunter2-secret")

    pipeline = Pipeline(**definition_of("c", "c", with_name(example.config, "c"), CATALOG))

    part = example.source or example.sink or {}
    assert [*part] == [pipeline.source.name if example.source else pipeline.sink.name]
    assert "hunter2" not in repr(pipeline)


def test_secrets_are_keys_of_passwords() -> None:
    for example in EXAMPLES.values():
        definition = CATALOG.find(example.config["connector.class"]).definition()
        for name, value in example.config.items():
            if value == "hunter2-secret" and name in definition.by_name:
                assert definition.by_name[name].type.value == "PASSWORD", name


def test_every_component_has_a_class_under_its_own_name() -> None:
    classes = {name for each in CATALOG.classes for name in each.names}
    not_connectors = {"source": {"kafka"}, "sink": {"memory", "stop"}}

    missing = [
        name
        for kind, without in not_connectors.items()
        for name in set(names(kind)) - without
        if f"penstock.connect.Penstock{camel(name)}{camel(kind)}Connector" not in classes
    ]
    assert missing == []


def test_names_are_found_in_full_by_their_last_part_and_without_connector() -> None:
    for name in (
        "io.confluent.connect.jdbc.JdbcSinkConnector",
        "io.aiven.connect.jdbc.JdbcSinkConnector",
        "JdbcSinkConnector",
        "JdbcSink",
    ):
        assert CATALOG.find(name).__name__ == "JdbcSink"
    assert (
        CATALOG.find("io.debezium.connector.jdbc.JdbcSinkConnector").__name__ == "DebeziumJdbcSink"
    )
    with pytest.raises(
        UnknownClassError, match=r"available connectors are: .*MirrorSourceConnector"
    ):
        CATALOG.find("NoSuchConnector")


@pytest.mark.parametrize("kind", CATALOG.classes, ids=lambda kind: str(kind.__name__))
def test_no_key_of_a_class_has_two_meanings(kind: Any) -> None:
    own = [key.name for key in kind.keys]

    assert len(own) == len(set(own))
    assert not set(own) & set(COMMON.by_name)
    assert not set(own) & {*kind.refused, *kind.without_effect}
    assert all(key.documentation or "." in key.name for key in kind.keys)
    assert all(key.described()["name"] == key.name for key in kind.definition().keys)


@pytest.mark.parametrize(
    ("example", "more", "expected"),
    [
        ("penstock-http-source", {}, Imported.final()),
        ("penstock-http-source", {"value.converter": "StringConverter"}, Imported.final()),
        (
            "penstock-http-source",
            {"value.converter": "JsonConverter"},
            replace(Imported.json(), key=ConverterOptions(form="string")),
        ),
        (
            "penstock-rabbitmq",
            {"transforms": "t", "transforms.t.type": "HoistField$Value", **BYTES},
            Imported(ConverterOptions(form="bytes"), ConverterOptions(form="string")),
        ),
        ("jdbc-source-query", {"value.converter": "JsonConverter"}, Imported.any_format()),
        ("mirror", {}, Imported.final()),
    ],
)
def test_records_stay_as_they_are_unless_converters_or_transforms_read_them(
    example: str, more: dict[str, str], expected: Imported
) -> None:
    given = with_name({**EXAMPLES[example].config, **more}, "c")

    assert CATALOG.find(given["connector.class"])().imported(CATALOG.config(given)) == expected


def test_transforms_after_a_source_promise_what_the_source_can() -> None:
    config = EXAMPLES["penstock-rabbitmq"].config
    transforms = {"transforms": "t", "transforms.t.type": "Filter"}

    made = definition_of("c", "c", with_name({**config, **transforms}, "c"), CATALOG)

    assert made["delivery"] == "at-least-once"


def test_the_store_knows_secrets_by_the_names_of_their_keys() -> None:
    keys = [key for kind in CATALOG.classes for key in kind.keys if key.type is Type.PASSWORD]

    assert len(keys) > 20
    assert [key.name for key in keys if not is_secret_key(key.name)] == []
