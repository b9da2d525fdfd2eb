"""Keys of transforms and predicates are listed and checked as Kafka Connect does it."""

from __future__ import annotations

import pytest

from penstock.connect.transforms.configured_chain import configured_chain
from penstock.connect.transforms.plugin_keys import list_errors, plugin_keys
from penstock.connect.transforms.plugins import PREDICATES, TRANSFORMS
from penstock.errors import ConfigError
from penstock.steps.connect_transforms.chain import PredicateSpec
from penstock.steps.connect_transforms.date_pattern import tokens
from penstock.steps.connect_transforms.field_path import field_path

PACKAGE = "org.apache.kafka.connect.transforms."


def errors(**config: str) -> dict[str, tuple[str, ...]]:
    given = {key.replace("_", "."): value for key, value in config.items()}
    return {each.key.name: each.errors for each in plugin_keys(given) if each.errors}


def test_there_are_all_classes_of_kafka() -> None:
    assert len(TRANSFORMS) == 26
    assert [plugin.kind for plugin in PREDICATES] == [
        "HasHeaderKey", "RecordIsTombstone", "TopicNameMatches",
    ]  # fmt: skip


def test_keys_are_in_the_order_of_connect() -> None:
    config = {"transforms": "a", "transforms.a.type": f"{PACKAGE}InsertField$Value"}
    found = [each.key for each in plugin_keys(config)]
    assert [key.name.removeprefix("transforms.a.") for key in found] == [
        "type", "plugin.version", "negate", "offset.field", "partition.field", "predicate",
        "replace.null.with.default", "static.field", "static.value", "timestamp.field", "topic.field",
    ]  # fmt: skip
    assert [key.order for key in found] == [*range(11)]
    assert {key.group for key in found} == {"Transforms: a"}
    assert found[0].display_name == "Transformation type for a"
    assert found[3].display_name == "offset.field"
    assert found[0].recommended[:2] == (f"{PACKAGE}Cast$Key", f"{PACKAGE}Cast$Value")


@pytest.mark.parametrize(
    ("config", "problems"),
    [
        (
            {"transforms": "a"},
            {
                "transforms.a.type": (
                    'Missing required configuration "transforms.a.type" which has no default value.',
                    "Invalid value null for configuration transforms.a.type: Not a Transformation",
                )
            },
        ),
        (
            {"transforms": "a", "transforms_a_type": "RegexRouter", "transforms_a_regex": "x"},
            {
                "transforms.a.replacement": (
                    'Missing required configuration "transforms.a.replacement" which has no default '
                    "value.",
                )
            },
        ),
        (
            {"transforms": "a", "transforms_a_type": "Cast$Key", "transforms_a_spec": "a:uuid"},
            {
                "transforms.a.spec": (
                    "Invalid value java.lang.IllegalArgumentException: No enum constant "
                    "org.apache.kafka.connect.data.Schema.Type.UUID for configuration "
                    "Invalid type found in casting spec: uuid",
                )
            },
        ),
        (
            {"transforms": "a", "transforms_a_type": "DropHeaders", "transforms_a_headers": "x,x"},
            {
                "transforms.a.headers": (
                    "Configuration 'transforms.a.headers' values must not be duplicated.",
                )
            },
        ),
    ],
)
def test_errors_are_those_of_connect(
    config: dict[str, str], problems: dict[str, tuple[str, ...]]
) -> None:
    assert errors(**config) == problems


def test_a_name_is_given_once() -> None:
    text = "Invalid value [a, b, a] for configuration transforms: Duplicate alias provided."
    assert list_errors({"transforms": "a,b,a"}) == {"transforms": text}


def test_a_chain_has_its_options_and_predicates() -> None:
    config = {
        "transforms": "drop, rename",
        "transforms.drop.type": "Filter",
        "transforms.drop.predicate": "old",
        "transforms.drop.negate": "true",
        "transforms.rename.type": "ReplaceField$Key",
        "transforms.rename.renames": "a:b",
        "predicates": "old",
        "predicates.old.type": "HasHeaderKey",
        "predicates.old.name": "x",
    }
    drop, rename = configured_chain(config)
    assert drop.predicate == PredicateSpec("old", "HasHeaderKey", {"name": "x"})
    assert drop.negate and drop.part is None
    assert rename.options["renames"] == {"a": "b"}
    assert (rename.part, rename.predicate) == ("key", None)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"type": "InsertField$Value"}, "No field insertion configured"),
        ({"type": "InsertField$Value", "static.field": "a!"}, "No value specified for static field: a"),
        ({"type": "SetSchemaMetadata$Key"}, "Neither schema name nor version configured"),
        (
            {"type": "HeaderFrom$Key", "fields": "a,b", "headers": "a", "operation": "copy"},
            "same number of elements",
        ),
        ({"type": "TimestampConverter$Key", "target.type": "string"}, "requires format option"),
        ({"type": "TimestampConverter$Key", "target.type": "date"}, "String must be one of"),
        ({"type": "Nope"}, "Class Nope could not be found."),
        ({"type": "Filter", "predicate": "nope"}, "nope"),
    ],
)  # fmt: skip
def test_options_that_cannot_be_used_are_refused(options: dict[str, str], why: str) -> None:
    config = {f"transforms.a.{key}": value for key, value in options.items()}
    with pytest.raises(ConfigError, match=why):
        configured_chain({"transforms": "a", **config})


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a", ["a"]),
        ("a.b", ["a", "b"]),
        ("`a.b`", ["a.b"]),
        ("a.`b.c`.d", ["a", "b.c", "d"]),
        ("a`b.c", ["a`b", "c"]),
        ("`a\\`.b`.c", ["a`.b", "c"]),
        ("", [""]),
    ],
)
def test_paths_are_split_at_dots(text: str, names: list[str]) -> None:
    assert field_path(text, "V2") == names


def test_a_path_with_half_a_pair_of_backticks_is_refused() -> None:
    with pytest.raises(ConfigError, match="Incomplete backtick pair"):
        field_path("a.`b.c", "V2")


@pytest.mark.parametrize("pattern", ["yyyy-'T", "b", "XXXX", "e"])
def test_patterns_that_java_refuses_are_refused(pattern: str) -> None:
    with pytest.raises(ConfigError, match="pattern"):
        tokens(pattern)
