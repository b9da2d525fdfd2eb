"""Converters are found by Connect's names, and a connector has its own or the worker's."""

from __future__ import annotations

import pytest

from penstock.connect.converters import CONVERTERS, find_converter, for_connector
from penstock.errors import ConfigError

WORKER = {
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
}


@pytest.mark.parametrize("converter", CONVERTERS, ids=lambda each: each.form)
def test_a_converter_has_a_long_and_two_short_names(converter) -> None:
    for name in converter.names:
        assert find_converter(name, converter.uses[-1]) is converter


def test_an_unknown_converter_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(ConfigError, match=r"Class JsonConvertor could not be found.*JsonConverter"):
        find_converter("JsonConvertor")


def test_a_converter_of_headers_is_not_for_values() -> None:
    with pytest.raises(ConfigError, match="is for header only"):
        find_converter("SimpleHeaderConverter", "value")


def test_a_connector_without_converters_has_those_of_the_worker() -> None:
    found = for_connector({}, WORKER)
    assert found.key.options.form == "string"
    assert found.value.options.is_schemaless
    assert found.header.converter.form == "simple"
    assert found.header.options is None
    assert found.notes == ()


def test_keys_of_the_worker_do_not_count_for_a_converter_of_the_connector() -> None:
    found = for_connector({"value.converter": "JsonConverter"}, WORKER)
    assert found.value.options.has_envelope


def test_keys_without_the_class_have_no_effect_and_that_is_reported() -> None:
    found = for_connector({"value.converter.schemas.enable": "true"}, WORKER)
    assert found.value.options.is_schemaless
    assert "value.converter.schemas.enable: no effect without value.converter" in found.notes[0]


def test_a_missing_converter_is_connects_own_error() -> None:
    with pytest.raises(ConfigError, match=r'Missing required configuration "key.converter"'):
        for_connector({}, {})


@pytest.mark.parametrize(
    ("own", "message"),
    [
        ({"schemas.enable": "maybe"}, "Expected value to be either true or false"),
        ({"decimal.format": "HEX"}, "String must be one of .case insensitive.: BASE64, NUMERIC"),
        ({"schemas.cache.size": "many"}, "Not a number of type INT"),
        ({"schema.content": "{"}, "schema.content is not a schema"),
        ({"schema.content": '{"type": "int7"}'}, "the schema type 'int7' is not known"),
    ],
)
def test_wrong_options_of_json_are_errors(own: dict[str, str], message: str) -> None:
    config = {f"value.converter.{name}": value for name, value in own.items()}
    with pytest.raises(ConfigError, match=message):
        for_connector(config | {"value.converter": "JsonConverter"}, WORKER)


def test_a_schema_for_all_records_replaces_envelopes() -> None:
    content = '{"type": "int32", "optional": true}'
    config = {"value.converter": "JsonConverter", "value.converter.schema.content": content}
    found = for_connector(config, WORKER).value.options
    assert found.schema_ == {"type": "int32", "optional": True}
    assert not found.has_envelope


def test_a_character_set_that_is_not_known_is_refused() -> None:
    config = {"key.converter": "StringConverter", "key.converter.converter.encoding": "UTF-5"}
    with pytest.raises(ConfigError, match="the character set 'UTF-5' is not known"):
        for_connector(config, WORKER)


def test_avro_has_its_registry_with_user_and_strategy() -> None:
    given = {
        "": "io.confluent.connect.avro.AvroConverter",
        "schema.registry.url": "http://a:8081,http://b:8081",
        "basic.auth.credentials.source": "USER_INFO",
        "basic.auth.user.info": "me:secret:word",
        "auto.register.schemas": "false",
        "value.subject.name.strategy": "io.confluent.kafka.serializers.subject.RecordNameStrategy",
        "enhanced.avro.schema.support": "true",
    }
    config = {f"value.converter.{name}".rstrip("."): value for name, value in given.items()}
    found = for_connector(config, WORKER)
    options = found.value.options
    assert options.registry.url == "http://a:8081,http://b:8081"
    assert options.registry.username == "me"
    assert options.registry.password.get_secret_value() == "secret:word"
    assert (options.register_, options.subject) == (False, "record")
    assert found.notes == ("value.converter.enhanced.avro.schema.support: no effect here",)
    assert "secret" not in repr(options)


@pytest.mark.parametrize(
    ("own", "message"),
    [
        ({}, 'Missing required configuration "schema.registry.url"'),
        (
            {"schema.registry.url": "http://a", "basic.auth.credentials.source": "USER_INFO"},
            "USER:PASS",
        ),
        (
            {"schema.registry.url": "http://a", "value.subject.name.strategy": "x.Y"},
            "not known here",
        ),
    ],
)
def test_wrong_options_of_a_registry_are_errors(own: dict[str, str], message: str) -> None:
    config = {f"value.converter.{name}": value for name, value in own.items()}
    with pytest.raises(ConfigError, match=message):
        for_connector(config | {"value.converter": "AvroConverter"}, WORKER)
