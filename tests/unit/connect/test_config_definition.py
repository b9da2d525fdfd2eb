"""Values are checked, and errors are written, as Kafka Connect does it."""

from __future__ import annotations

import pytest

from penstock.connect.common_keys import COMMON, SINK, SOURCE
from penstock.connect.config_definition import Key, Type, as_text

NULL_TASKS = "Invalid value null for configuration tasks.max: Value must be non-null"


@pytest.mark.parametrize(
    ("given", "errors"),
    [
        ({}, ['Missing required configuration "name" which has no default value.']),
        ({"name": ""}, ["Invalid value  for configuration name: String may not be empty"]),
        (
            {"name": "a\tb"},
            [
                "Invalid value a\tb for configuration name: String may not contain control sequences "
                "but had the following ASCII chars: 9"
            ],
        ),
        (
            {"name": "a", "tasks.max": "0"},
            ["Invalid value 0 for configuration tasks.max: Value must be at least 1"],
        ),
        (
            {"name": "a", "tasks.max": "many"},
            [
                "Invalid value many for configuration tasks.max: Not a number of type INT",
                NULL_TASKS,
            ],
        ),
        (
            {"name": "a", "tasks.max": str(2**31)},
            [
                f"Invalid value {2**31} for configuration tasks.max: Not a number of type INT",
                NULL_TASKS,
            ],
        ),
        (
            {"name": "a", "errors.tolerance": "maybe"},
            [
                "Invalid value maybe for configuration errors.tolerance: String must be one of: none, all"
            ],
        ),
        (
            {"name": "a", "errors.retry.timeout": "soon"},
            [
                "Invalid value soon for configuration errors.retry.timeout: Not a number of type LONG"
            ],
        ),
        (
            {"name": "a", "errors.log.enable": "yes"},
            [
                "Invalid value yes for configuration errors.log.enable: "
                "Expected value to be either true or false"
            ],
        ),
        ({"name": "a", "tasks.max": " 3 ", "something.else": "x"}, []),
    ],
)
def test_errors_are_those_of_connect(given: dict[str, str], errors: list[str]) -> None:
    found = COMMON.checked({"connector.class": "FileStreamSink", **given})
    assert [error for each in found for error in each.errors] == errors


def test_the_reply_has_the_value_that_was_parsed() -> None:
    (found,) = [each for each in SINK.checked({"topics": " a , b "}) if each.key.name == "topics"]
    assert found.described()["value"] == {
        "name": "topics",
        "value": "a,b",
        "recommended_values": [],
        "errors": [],
        "visible": True,
    }
    assert found.described()["definition"]["order_in_group"] == 4


def test_a_password_is_never_shown() -> None:
    key = Key("connection.password", Type.PASSWORD, None)
    assert (
        key.checked({"connection.password": "s3cret"}).described()["value"]["value"] == "[hidden]"
    )
    assert "s3cret" not in repr(key.checked({"connection.password": "s3cret"}).described())


def test_groups_come_in_the_order_of_connect() -> None:
    common = ["Common", "Transforms", "Predicates", "Error Handling"]
    assert SINK.groups == common
    assert SOURCE.groups == [*common, "Topic Creation", "Exactly Once Support", "offsets.topic"]


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (None, Type.STRING, None),
        (1.5, Type.DOUBLE, "1.5"),
        ([], Type.LIST, ""),
        (False, Type.BOOLEAN, "false"),
    ],
)
def test_values_are_texts(value: object, kind: Type, text: str | None) -> None:
    assert as_text(value, kind) == text
